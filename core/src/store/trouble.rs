//! What can go wrong with a store, by what the caller should do.

use std::fmt;

use super::{Fence, ShardId};

/// Why a store does not do what a shard's writer wants. Nothing of it was done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The writer lost the shard to another: it drops its memory and may claim the shard again.
    #[error("the writer no longer owns the shard: fence {} is in force", current.0)]
    Fenced {
        /// The fence that is in force now.
        current: Fence,
    },
    /// The store does not know of commits any more that it has confirmed, as after a failover to a copy that was behind.
    /// The writer drops its memory, claims the shard again, and says so where people look.
    #[error("the store has lost what it confirmed: it stands at commit {found}, where {expected} was confirmed")]
    Lost {
        /// The commit that was confirmed, or has to be there before the next one.
        expected: u64,
        /// The latest commit that is there.
        found: u64,
    },
    /// The rows are not where the writer says: it drops its memory and reads again.
    #[error("the store does not have the rows that were to change: {0}")]
    Astray(String),
}

/// What can go wrong with a store, by what the caller should do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It is not for this writer to do.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store did not answer in time. A commit may have happened or not: drop the shard's state,
    /// claim it again and read what is there.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The store cannot vouch for its data any more: stop answering.
    #[error("the store has stopped: {0}")]
    Poisoned(String),
}

impl StoreError {
    /// The store has something that no store like it has written. It says what that is, and where.
    pub fn damaged(what: impl fmt::Display, why: impl fmt::Display) -> StoreError {
        StoreError::Poisoned(format!("{what} is damaged: {why}; `punctual store check` says more"))
    }

    /// The same with the shard in which that is.
    #[must_use]
    pub fn in_shard(self, shard: ShardId) -> StoreError {
        match self {
            StoreError::Poisoned(what) => StoreError::Poisoned(format!("shard {}, {what}", shard.0)),
            error => error,
        }
    }
}

/// Why a store takes no more for now. What it holds stays, and can be read and changed. Each says what to
/// do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hardship {
    /// There is no room. It goes by itself when rows are removed, or more room is made.
    NoRoom(String),
    /// What has to be written cannot be, for another reason than room.
    Failing(String),
}

impl Hardship {
    /// Why, and what to do about it.
    pub fn why(&self) -> &str {
        match self {
            Hardship::NoRoom(why) | Hardship::Failing(why) => why,
        }
    }
}

/// How much room a store has for what shards do, which is told to them before each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Room {
    /// For everything.
    #[default]
    Enough,
    /// Not for new tasks, nor for a history. What was taken in before goes its way.
    Little,
    /// For nothing that makes rows longer or more: only what ends them, or leaves them as they are, goes on as ever.
    None,
}

impl Room {
    /// What a hardship leaves, if nothing else is known.
    pub fn under(hardship: Option<&Hardship>) -> Room {
        match hardship {
            Some(Hardship::NoRoom(_)) => Room::Little,
            Some(Hardship::Failing(_)) | None => Room::Enough,
        }
    }
}
