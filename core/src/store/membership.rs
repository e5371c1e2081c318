//! Who works with a store: nodes that show that they are there, and the shards that they own.

use std::time::Duration;

use bytes::Bytes;

use super::ShardId;
use crate::name::Name;
use crate::time::{Millis, Timestamp};

/// Rises with each change of a shard's owner; reads and writes with an old one are refused.
///
/// No fence is granted twice, also by a store that went back to an older state: a new one is greater than the last and
/// not less than the store's time in microseconds. Zero is that of a shard that nobody ever claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

impl Fence {
    /// The fence after this one, given the store's time.
    #[must_use]
    pub fn next(self, micros: u64) -> Fence {
        Fence(micros.max(self.0 + 1))
    }
}

/// How an owner holds a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tenure {
    /// The fence under which it does.
    pub fence: Fence,
    /// The shard's latest commit: see [`Batch::serial`](super::Batch::serial).
    pub serial: u64,
}

/// One life of a node, from its start to its end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation {
    /// The node's name.
    pub node: Name,
    /// Drawn anew with each start, so that a node is not taken for the one it was before, nor for another one that was
    /// given the same name.
    pub number: u64,
}

/// A node's word that it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Who says so.
    pub who: Incarnation,
    /// Where other nodes reach it; empty if nowhere.
    pub address: String,
    /// How long the word counts from now on. Zero takes it back: the node is leaving.
    pub lease: Millis,
}

impl Beat {
    /// How long its answer is worth waiting for: if it does not come, there is time for another beat within the lease. A
    /// second is what a busy store may need, and what holds up nobody who leaves.
    pub fn patience(&self) -> Duration {
        Duration::from_millis(self.lease.0 / 3).max(Duration::from_secs(1))
    }
}

/// Who is there, by the store's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roll {
    /// The store's time, in microseconds since 1970.
    pub micros: u64,
    /// The nodes by their names: the latest life of each, also if its lease is over; who has left is not among them.
    pub nodes: Vec<Present>,
    /// All shards that were ever claimed, in order.
    pub shards: Vec<Held>,
    /// The revisions of all entries of the cluster, in the order of their keys.
    pub revisions: Vec<(String, u64)>,
}

/// A node on the roll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Present {
    /// Who it is.
    pub who: Incarnation,
    /// Where other nodes reach it.
    pub address: String,
    /// Until when its word counts.
    pub until: Timestamp,
}

/// A shard on the roll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The shard.
    pub shard: ShardId,
    /// The fence in force.
    pub fence: Fence,
    /// Who has it, or is to have it next; nobody after a release to nobody in particular.
    pub by: Option<Incarnation>,
}

impl Roll {
    /// The store's time.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.micros / 1_000)
    }

    /// The fence in force for a shard.
    pub fn fence(&self, shard: ShardId) -> Fence {
        self.held(shard).map_or(Fence::default(), |held| held.fence)
    }

    /// How it stands with a shard that was ever claimed.
    pub fn held(&self, shard: ShardId) -> Option<&Held> {
        let found = self.shards.binary_search_by_key(&shard, |held| held.shard).ok()?;
        Some(&self.shards[found])
    }

    /// A node by its name.
    pub fn node(&self, name: &str) -> Option<&Present> {
        self.nodes.iter().find(|present| *present.who.node == *name)
    }

    /// The node that has a shard and whose word still counts.
    pub fn keeper(&self, shard: ShardId) -> Option<&Present> {
        let by = self.held(shard)?.by.as_ref()?;
        self.there().find(|present| present.who == *by)
    }

    /// The nodes whose word still counts.
    pub fn there(&self) -> impl Iterator<Item = &Present> {
        self.nodes.iter().filter(|present| self.now() < present.until)
    }

    /// The revision of an entry of the cluster, zero if there is none.
    pub fn revision(&self, key: &str) -> u64 {
        self.revisions.iter().find(|(known, _)| known == key).map_or(0, |(_, revision)| *revision)
    }
}

/// The answer to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The shard is the claimer's.
    Granted(Tenure),
    /// Another fence is in force than the claimer thought: somebody was quicker.
    Outrun(Fence),
}

/// Something small that all nodes share, under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Rises with each change, and is never given twice, also by a store that went back to an older state: whoever has
    /// seen one has seen what the entry says. Zero is that of an entry which nobody ever wrote.
    pub revision: u64,
    /// What it says.
    pub value: Bytes,
}

impl Entry {
    /// The revision after one that was seen, given the store's time: greater than it, and not less than the time in
    /// microseconds.
    pub fn revision_after(seen: u64, micros: u64) -> u64 {
        micros.max(seen + 1)
    }
}

/// The entry has another revision than the writer thought, zero if there is none; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the entry is at revision {current} by now")]
pub struct Outdated {
    /// The revision it has.
    pub current: u64,
}
