//! What somebody wants from the delay center, and why.

use punctual_core::store::{Key, ShardId};
use punctual_core::{Command, Millis, Reserve};

use crate::clock::Moment;

/// A request that is to be sent.
#[derive(Clone, Debug)]
pub struct Demand {
    /// Why.
    pub purpose: Purpose,
    /// What for.
    pub what: What,
    /// So long from now.
    pub after: Moment,
    /// How often it was sent before without an answer.
    pub tries: u32,
}

/// Who gets the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A client that wants it done for certain: it asks until it is answered.
    Insists,
    /// A client that asks again after a lost answer, or not.
    Client,
    /// A consumer that wants deliveries.
    Consumer(usize),
    /// A consumer that says what became of a delivery.
    Work(usize),
    /// A node that sends a dead letter on.
    Forward {
        /// The shard that it comes from.
        origin: ShardId,
        /// The dead letter's row.
        key: Key,
        /// The number of its journey.
        journey: u64,
    },
    /// A node that says how that went.
    Note,
}

/// What is wanted.
#[derive(Clone, Debug)]
pub enum What {
    /// A command to one shard.
    Command(ShardId, Box<Command>),
    /// Deliveries, waiting so long.
    Reserve(Reserve, Millis),
}

impl Demand {
    /// A command, sent at once.
    pub fn command(purpose: Purpose, shard: ShardId, command: Command) -> Demand {
        Demand { purpose, what: What::Command(shard, Box::new(command)), after: 0, tries: 0 }
    }

    /// The same, so much later.
    #[must_use]
    pub fn after(mut self, after: Moment) -> Demand {
        self.after = after;
        self
    }
}

/// The shard of a task (FNV-1a over topic and id).
pub fn shard_of(topic: &str, id: &str, shards: u16) -> ShardId {
    let bytes = topic.bytes().chain([0]).chain(id.bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    ShardId(((hash >> 32) % u64::from(shards)) as u16)
}
