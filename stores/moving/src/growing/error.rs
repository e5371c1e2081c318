//! Why a store does not get more shards. Each says what to do.

use punctual_core::division::Division;
use punctual_core::store::ShardId;

use super::MOST_SHARDS;
use crate::error::MoveError;
use crate::marks::Barred;

/// Why a store does not get more shards. What was done stays, and the same goes on from there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrowError {
    /// It has as many.
    #[error("this store has {0} shards already: nothing is left to do")]
    Already(u16),
    /// It has more.
    #[error("this store has {has} shards: their number can grow, and cannot shrink to {to}")]
    Fewer {
        /// How many it has.
        has: u16,
        /// How many were wanted.
        to: u16,
    },
    /// Its shards would not be divided evenly.
    #[error(
        "this store has {has} shards, and each of them is divided into equally many: {to} is not a multiple of {has}, {} is",
        (to / has + 1) * has
    )]
    NotMultiple {
        /// How many it has.
        has: u16,
        /// How many were wanted.
        to: u16,
    },
    /// That is of no use.
    #[error("{to} shards are too many: each has a thread in every server, so {MOST_SHARDS} is the most")]
    TooMany {
        /// How many were wanted.
        to: u16,
    },
    /// It is being given another number of shards.
    #[error(
        "this store is being divided into {to} shards, and that comes first: run `punctual shards grow {to}`, it continues"
    )]
    UnderWay {
        /// How many it will have.
        to: u16,
    },
    /// It was never used.
    #[error("{0} has never been used: set `node.shards` before its first start instead")]
    Empty(String),
    /// There is something where a new shard will be.
    #[error("shard {}, which is to be new, has {what} already: run `punctual store check`", shard.0)]
    InTheWay {
        /// The shard.
        shard: ShardId,
        /// What it has.
        what: &'static str,
    },
    /// Its tasks are elsewhere, or on their way.
    #[error(transparent)]
    Barred(Barred),
    /// A server runs on it, or it does not answer.
    #[error(transparent)]
    Store(#[from] MoveError),
}

/// Whether a store that is divided like this can have so many shards.
pub(super) fn check(division: &Division, to: u16) -> Result<(), GrowError> {
    let has = division.shards;
    match division.growth {
        Some(growth) if growth.to == to => Ok(()),
        Some(growth) => Err(GrowError::UnderWay { to: growth.to }),
        None if to == has => Err(GrowError::Already(has)),
        None if to < has => Err(GrowError::Fewer { has, to }),
        None if to > MOST_SHARDS => Err(GrowError::TooMany { to }),
        None if !to.is_multiple_of(has) => Err(GrowError::NotMultiple { has, to }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::division::Growth;

    use super::*;

    #[test]
    fn each_refusal_says_what_would_do() {
        let refused = |to| check(&Division::of(16), to).map_err(|error| error.to_string());
        assert_eq!((refused(32), refused(48), refused(MOST_SHARDS)), (Ok(()), Ok(()), Ok(())));
        assert!(refused(40).is_err_and(|why| why.ends_with("40 is not a multiple of 16, 48 is")));
        assert!(refused(16).is_err_and(|why| why.contains("nothing is left to do")));
        assert!(refused(8).is_err_and(|why| why.contains("cannot shrink to 8")));
        assert!(refused(0).is_err_and(|why| why.contains("cannot shrink to 0")));
        assert!(refused(MOST_SHARDS + 16).is_err_and(|why| why.contains("4096 is the most")));
    }

    #[test]
    fn what_was_begun_comes_first() {
        let growth = Some(Growth { to: 32, moving: None });
        let division = Division { growth, ..Division::of(16) };
        assert_eq!(check(&division, 32), Ok(()));
        assert_eq!(check(&division, 64), Err(GrowError::UnderWay { to: 32 }));
        assert_eq!(check(&division, 16), Err(GrowError::UnderWay { to: 32 }));
    }
}
