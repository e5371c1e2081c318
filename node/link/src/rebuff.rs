//! Why two nodes do not link, or do no longer.

use std::io;

use crate::forms::Garbled;
use crate::frame::Forged;

/// Why one end of a connection does not want it to be a link. None of them passes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rebuff {
    /// The other node works with another store.
    #[error("it belongs to another center: let both nodes work with the same store, or give it an address of its own")]
    OtherCenter,
    /// The two nodes have no version of the links' language in common.
    #[error("the two nodes are of versions too far apart: upgrade the older one")]
    NoVersion,
    /// Another node, or another life of the same one, is at this address.
    #[error("somebody else listens there: each node needs an address of its own")]
    SomebodyElse,
    /// The proof is wrong.
    #[error("it does not have the center's secret")]
    Secret,
    /// For a reason of a newer version.
    #[error("it has a reason that this version does not know")]
    Other,
}

impl Rebuff {
    /// The number of each on the link. They never change.
    pub(crate) fn number(self) -> u32 {
        match self {
            Rebuff::Other => 0,
            Rebuff::OtherCenter => 1,
            Rebuff::NoVersion => 2,
            Rebuff::SomebodyElse => 3,
            Rebuff::Secret => 4,
        }
    }

    pub(crate) fn numbered(number: u32) -> Rebuff {
        use Rebuff::{NoVersion, OtherCenter, Secret, SomebodyElse};
        let known = [OtherCenter, NoVersion, SomebodyElse, Secret];
        known.into_iter().find(|rebuff| rebuff.number() == number).unwrap_or(Rebuff::Other)
    }
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("{0}")]
    Unreachable(#[from] io::Error),
    #[error("it took too long")]
    TooSlow,
    #[error("whoever is there speaks something else")]
    Strange,
    #[error("refused here: {0}")]
    Refused(Rebuff),
    /// The words are the other node's.
    #[error("refused by the other node: {1}")]
    RefusedThere(Rebuff, String),
}

impl Trouble {
    /// Whether it does not pass by itself, so that trying again soon is of no use.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(self, Trouble::Strange | Trouble::Refused(_) | Trouble::RefusedThere(..))
    }
}

/// Why a link broke.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Lost {
    #[error("the other node has hung up")]
    HungUp,
    #[error("nothing came any more")]
    Silent,
    #[error("the other node does not read its answers")]
    Overfull,
    #[error("the other node has linked anew")]
    Replaced,
    #[error("{0}")]
    Broken(io::Error),
    #[error("{0}")]
    Forged(#[from] Forged),
    #[error("{0}")]
    Garbled(#[from] Garbled),
}
