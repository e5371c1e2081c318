//! The names of all keys that the store has in Redis.
//!
//! ```text
//! {punctual}:layout     the version of this layout
//! {punctual}:nodes      hash   node ─► "number until address"
//! {punctual}:shards     set    the shards that were ever claimed
//! {punctual}:revisions  hash   entry of the cluster ─► its revision
//! {punctual}:entries    hash   entry of the cluster ─► its value
//!
//! {punctual:7}:own      hash   fence, serial, node, number
//! {punctual:7}:live     zset   at ─► number          the same: dead, history, settings
//! {punctual:7}:names    hash   key ─► number
//! {punctual:7}:rows     hash   number ─► row         see row.rs
//! {punctual:7}:bodies   hash   number ─► body        only long ones
//! {punctual:7}:groups   zset   0 ─► table, group, number
//! {punctual:7}:tallies  hash   tally ─► count
//! ```
//! What stands in braces decides the slot, so that a shard's keys are on one server, and one script reaches all of them.
//! Numbers are 8 bytes, the highest first: members of equal score stand in the order of their bytes.

use punctual_core::store::{ShardId, Table};

use crate::slot::slot_of;

/// The version of the layout that this store writes, and the only one that it reads.
pub(crate) const LAYOUT: u32 = 1;

/// The keys of a store.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

/// The place of a shard's keys in the list that every script is given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Names = 6,
    Rows = 7,
    Bodies = 8,
    Groups = 9,
}

/// The same for the order of time of a table.
pub(crate) fn order_of(table: Table) -> u8 {
    table as u8 + 1
}

const SHARD: [&str; 10] =
    ["own", "live", "dead", "history", "settings", "names", "rows", "bodies", "groups", "tallies"];

impl Keys {
    pub(crate) fn new(prefix: &str) -> Keys {
        Keys { prefix: prefix.to_owned() }
    }

    /// All keys of a shard, in the order in which scripts take them.
    pub(crate) fn shard(&self, shard: ShardId) -> [String; 10] {
        SHARD.map(|name| format!("{{{}:{}}}:{name}", self.prefix, shard.0))
    }

    pub(crate) fn own(&self, shard: ShardId) -> String {
        format!("{{{}:{}}}:own", self.prefix, shard.0)
    }

    pub(crate) fn slot(&self, shard: ShardId) -> u16 {
        slot_of(&format!("{}:{}", self.prefix, shard.0))
    }

    /// What is not of one shard.
    pub(crate) fn shared(&self, name: &str) -> String {
        format!("{{{}}}:{name}", self.prefix)
    }

    pub(crate) fn shared_slot(&self) -> u16 {
        slot_of(&self.prefix)
    }
}
