//! The way to other nodes, as a node sees it: what it asks of the links, and what it hears from them.
//!
//! A link is dialled by the node that asks (see [`Message`]). Each one that ever is has an id of its own, so that what comes
//! late from one that is gone is not taken for word of the next. The server's links are connections; those of the
//! simulation are queues.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use punctual_core::store::Incarnation;

use crate::message::Message;

/// One link, told apart from all others that this node has or had, dialled by it or by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u64);

/// Another node, and where it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Who it is. Whoever else answers at the address is not spoken to.
    pub who: Incarnation,
    /// Where it says that it listens: host and port.
    pub address: String,
}

/// What the other end of a link says of itself when the link comes up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Who it is.
    pub who: Incarnation,
    /// The version of its software, to be shown.
    pub software: String,
    /// The levels of what is stored that it can read and write.
    pub levels: RangeInclusive<u32>,
}

/// The way to other nodes.
pub trait Links: Send + Sync {
    /// Begins: from now on others are let in, and these ears hear. Called once.
    fn open(&self, me: &Incarnation, ears: Arc<dyn Ears>);

    /// Who else is there, and where. A link to each of them is dialled, and dialled again whenever it breaks; links that were
    /// dialled to others are closed, as after [`unlinked`](Ears::unlinked).
    fn keep(&self, peers: &[Peer]);

    /// Puts a message on its way on a link that this node dialled. Given back if the link is gone, or can take no more
    /// for now: then it was not said, and never will be.
    fn ask(&self, on: LinkId, message: Message) -> Result<(), Unsent>;

    /// Puts a message on its way on a link that another node dialled; dropped if that is gone. A link on which more
    /// waits than is good, because the other node does not read, is closed.
    fn answer(&self, on: LinkId, message: Message);

    /// Whether so much waits on a link that what can be left out should be.
    fn is_congested(&self, on: LinkId) -> bool;

    /// Ends: what waits is still written, for a moment, and then all links are closed. Does not wait for that. The ears
    /// hear of the end of each link, and nothing afterwards.
    fn close(&self);
}

impl fmt::Debug for dyn Links + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Links")
    }
}

/// What comes of links. Called by whoever carries the links, and must not block. What is said of one link is said in
/// order and by one caller at a time; what is said of several comes from several.
pub trait Ears: Send + Sync {
    /// A link that this node dialled is up. There is at most one to each node at a time: the end of the one before was told.
    fn linked(&self, on: LinkId, to: &Greeting);

    /// What came on a link that this node dialled: all that there was at once, in order.
    fn told(&self, on: LinkId, messages: Vec<Message>);

    /// A link that this node dialled is down. These messages were never written: nobody has heard them. What else
    /// was asked on it and not answered may have been heard or not. Nothing is told of this link afterwards.
    fn unlinked(&self, on: LinkId, unsent: Vec<Message>);

    /// Another node has dialled this one.
    fn joined(&self, on: LinkId, by: &Greeting);

    /// What came on a link that another node dialled: all that there was at once, in order.
    fn asked(&self, on: LinkId, messages: Vec<Message>);

    /// A link that another node dialled is gone, and nobody is there to be answered on it.
    fn left(&self, on: LinkId);
}

/// A message that was not put on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsent {
    /// The message, given back.
    pub message: Box<Message>,
    /// Why.
    pub why: Why,
}

/// Why a message was not put on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The link is gone.
    Gone,
    /// Too much waits on it already.
    Full,
}
