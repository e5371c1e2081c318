//! What can go wrong with a request, which is the same on all nodes, or with a start, and what to do about it.

pub use punctual_center::{Error, Outcome};
use punctual_core::store::{ShardId, StoreError};
use punctual_core::{Name, OpenError, Timestamp};

/// Why a node did not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The configuration contradicts itself.
    #[error("the configuration is not valid: {0}")]
    Config(String),
    /// Another node owns a shard.
    #[error("{shard} is owned by node {by} until {until}: stop that node, or wait until its lease ends")]
    Held {
        /// The shard.
        shard: ShardId,
        /// The owner.
        by: Name,
        /// The end of its lease, by the store's clock.
        until: Timestamp,
    },
    /// Another server works on the store under the same name.
    #[error("another server works on this store under the name {name}: stop it, or give this one another `name`")]
    NameTaken {
        /// The name.
        name: Name,
    },
    /// Others claim the shards at the same time, again and again.
    #[error("others claim the shards of this store at the same time: stop them, or try again")]
    Outrun,
    /// The store's tasks are divided into another number of shards.
    #[error(
        "{}. To have more of them, stop all servers and run `punctual shards grow`",
        OpenError::Shards { noted: *noted, configured: *configured }
    )]
    Shards {
        /// Into how many they are divided.
        noted: u16,
        /// The number in the configuration.
        configured: u16,
    },
    /// The store's tasks are being divided into more shards.
    #[error(
        "this store is being divided into {to} shards, and that is not finished: run `punctual shards grow {to}` again, it \
         continues"
    )]
    Growing {
        /// Into how many.
        to: u16,
    },
    /// What is stored is of a level that this version does not know.
    #[error(
        "what is stored is of level {in_force}, and this version knows level {highest} at most: start a newer version of the server"
    )]
    Level {
        /// The level in force.
        in_force: u32,
        /// The highest that is known here.
        highest: u32,
    },
    /// The store does not answer, or cannot vouch for its data.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The machine gives no random numbers.
    #[error("the machine gives no random numbers: {0}")]
    Chance(String),
    /// The machine gives no more threads.
    #[error("a thread could not be started: {0}")]
    Thread(String),
}

impl From<OpenError> for StartError {
    fn from(error: OpenError) -> StartError {
        match error {
            OpenError::Store(error) => StartError::Store(error),
            OpenError::Shards { noted, configured } => StartError::Shards { noted, configured },
            error @ OpenError::Growing => StartError::Store(StoreError::Unavailable(error.to_string())),
        }
    }
}
