//! What can go wrong with a request or a start, and what to do about it.

use punctual_core::store::{ShardId, StoreError};
use punctual_core::{Name, OpenError, Refused, Timestamp};

/// Why a request was not carried out, by what the caller should do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request cannot be carried out as it is. Nothing was changed.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Too much is waiting. Nothing was changed: try again later, and more slowly.
    #[error("the node is overloaded: nothing was done, try again later")]
    Overloaded,
    /// The store has no room for more tasks, topics or queues. Nothing was changed: make room as the
    /// text says. Everything else goes on: firing, consuming, cancelling.
    #[error("no room: {0}; nothing was done")]
    Full(String),
    /// The store did not answer, or the shard is not here for now. Unless the text says that nothing
    /// was done, it may have been done or not: ask, or send the same request with the same id again.
    #[error("{0}")]
    Unavailable(String),
    /// The node is about to stop. Nothing was changed: go to another one, or wait until it is back.
    #[error("the node is stopping: nothing was done")]
    Stopping,
}

impl Error {
    /// The word for it in metrics and on the wire. It never changes.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Refused(refused) => refused.code(),
            Error::Overloaded => "overloaded",
            Error::Full(_) => "store-full",
            Error::Unavailable(_) => "unavailable",
            Error::Stopping => "stopping",
        }
    }

    /// The request was under way when the shard's memory was lost.
    pub(crate) fn unknown_outcome(why: &str) -> Error {
        Error::Unavailable(format!("{why}; the outcome is unknown: ask, or try again with the same id"))
    }

    /// The request was not looked at.
    pub(crate) fn nothing_done(why: &str) -> Error {
        Error::Unavailable(format!("{why}; nothing was done: try again later"))
    }
}

/// Why a node did not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The configuration contradicts itself.
    #[error("the configuration cannot be kept: {0}")]
    Config(String),
    /// Another node owns a shard.
    #[error("{shard:?} is owned by node {by} until {until}: stop that node, or wait until its lease is over")]
    Held {
        /// The shard.
        shard: ShardId,
        /// The owner.
        by: Name,
        /// The end of its lease, by the store's clock.
        until: Timestamp,
    },
    /// The store's tasks are divided into another number of shards.
    #[error("{}", OpenError::Shards { noted: *noted, configured: *configured })]
    Shards {
        /// Into how many they are divided.
        noted: u16,
        /// The number in the configuration.
        configured: u16,
    },
    /// The store does not answer, or cannot vouch for its data.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The machine gives no more threads.
    #[error("a thread could not be started: {0}")]
    Thread(String),
}

impl From<OpenError> for StartError {
    fn from(error: OpenError) -> StartError {
        match error {
            OpenError::Store(error) => StartError::Store(error),
            OpenError::Shards { noted, configured } => StartError::Shards { noted, configured },
        }
    }
}
