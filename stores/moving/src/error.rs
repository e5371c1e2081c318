//! Why a move did not come to its end. Each says what to do.

use punctual_core::Millis;
use punctual_core::store::{ShardId, StoreError, Table};

use crate::sum::Sum;

/// Why a move did not come to its end. What was copied stays, and the same move goes on from there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveError {
    /// A server works on one of the stores.
    #[error("{place} is in use by {node}, with a lease that lasts for another {left}: stop all servers on it first")]
    Busy {
        /// The store.
        place: String,
        /// The servers' names.
        node: String,
        /// For how long its word counted when it was heard last.
        left: Millis,
    },
    /// Both are the same store.
    #[error("{0} cannot be moved into itself")]
    SameStore(String),
    /// There is something in the target that does not come of this move.
    #[error("{place} is not empty: shard {} has {what}. Name an empty store", shard.0)]
    NotEmpty {
        /// The target.
        place: String,
        /// A shard that is not empty.
        shard: ShardId,
        /// What it has.
        what: &'static str,
    },
    /// The target has what a move into it left behind that is not this one, or what was moved away from there.
    #[error("{place} holds {what}, which is of no use any more: `--afresh` deletes it and begins anew")]
    Leftovers {
        /// The target.
        place: String,
        /// What it holds.
        what: String,
    },
    /// The source is not one that a server could work on.
    #[error("{place} cannot be moved: {why}")]
    NotWhole {
        /// The source.
        place: String,
        /// Why.
        why: String,
    },
    /// It has been done before.
    #[error("{from} has been moved to {to} already: nothing is left to do")]
    Done {
        /// The source.
        from: String,
        /// Where it went.
        to: String,
    },
    /// Some shards have crossed, so that it cannot be given up any more.
    #[error(
        "{crossed} of the shards of {from} are in {to} already: let the move finish, and move back afterwards if you have to"
    )]
    TooLate {
        /// The source.
        from: String,
        /// The target.
        to: String,
        /// How many.
        crossed: usize,
    },
    /// A server, or another move, has taken one of the stores meanwhile.
    #[error("{place} was taken over meanwhile, so it has changed: begin again when nothing works on it")]
    Overtaken {
        /// The store.
        place: String,
    },
    /// What is in the target is not what is in the source.
    #[error(
        "shard {} differs after copying: {table:?} has {left} in the source and {right} in the target. The source stays in \
         charge; `--afresh` deletes the copy and begins anew",
        shard.0
    )]
    Differs {
        /// The shard.
        shard: ShardId,
        /// The table.
        table: Table,
        /// What was read from the source.
        left: Box<Sum>,
        /// What was read back from the target.
        right: Box<Sum>,
    },
    /// The counts beside the rows are not the same.
    #[error("the counts of shard {} differ after copying: {what}", shard.0)]
    CountsDiffer {
        /// The shard.
        shard: ShardId,
        /// Which.
        what: String,
    },
    /// What was noted of a move cannot be read.
    #[error("{place} has a note of a move that this version cannot read ({why}): use the version that began it")]
    Unreadable {
        /// The store.
        place: String,
        /// Why.
        why: String,
    },
    /// A store does not answer, or stopped.
    #[error("{place}: {error}. The same command continues where this ended")]
    Store {
        /// The store.
        place: String,
        /// What it said.
        error: StoreError,
    },
    /// Somebody said that there is no time left.
    #[error("the move was halted; it continues with the next start of the server")]
    Halted,
    /// The system gives no random numbers.
    #[error("cannot get random numbers from the system: {0}")]
    Chance(String),
}

impl MoveError {
    /// What a store said.
    pub(crate) fn of(place: &str) -> impl Fn(StoreError) -> MoveError {
        move |error| match error {
            StoreError::Refused(_) => MoveError::Overtaken { place: place.to_owned() },
            error => MoveError::Store { place: place.to_owned(), error },
        }
    }
}
