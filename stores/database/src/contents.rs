//! What is in a database, for who wants to see it.

use punctual_core::store::ShardId;

/// What a database holds of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The version of its layout.
    pub version: u32,
    /// What takes room: each table with its indexes, or the whole where parts cannot be told.
    pub parts: Vec<Part>,
    /// Each shard that was ever claimed, in order.
    pub shards: Vec<ShardContents>,
}

/// What takes room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub name: String,
    /// How many bytes it takes.
    pub bytes: u64,
}

/// How it stands with a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardContents {
    /// The shard.
    pub shard: ShardId,
    /// Its latest commit.
    pub serial: u64,
    /// How many rows each table has, in the order of [`Table::ALL`](punctual_core::store::Table::ALL).
    pub rows: [u64; 4],
}
