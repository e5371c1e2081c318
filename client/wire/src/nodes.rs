//! The nodes of a delay center, and which of them has which shard.

use serde::{Deserialize, Serialize};

use crate::object::objects;
use crate::time::Time;

/// The nodes on the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeList {
    /// By name. A node that has not been heard of for a while stays until its shards are with others.
    pub nodes: Vec<NodeInfo>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeInfo {
    /// Its name.
    pub name: String,
    /// Where clients reach it, if it says so: its setting `node.advertise`.
    pub url: Option<String>,
    /// Whether it is the one that answers.
    pub is_this: bool,
    /// Whether it has been heard of within the time for which a node's word counts.
    pub is_there: bool,
    /// When it was started, if it says so.
    pub since: Option<Time>,
    /// Until when its word counts, by the store's clock.
    pub until: Time,
    /// Whether its shards are being given to others, because an operator wants so or it is about to stop.
    pub is_draining: bool,
    /// How many shards it has.
    pub shards: u16,
    /// By how many milliseconds its machine's clock is ahead of the store's, if it says so; behind if it is negative.
    pub skew_ms: Option<i64>,
    /// The version of its software, if it says so.
    pub version: Option<String>,
}

/// The shards of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShardList {
    /// By number.
    pub shards: Vec<ShardInfo>,
}

/// A shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShardInfo {
    /// Its number, from 0.
    pub shard: u16,
    /// The node that has it, or is about to.
    pub node: Option<String>,
    /// The node to which an operator has pinned it.
    pub pinned_to: Option<String>,
    /// Rises with each change of its owner.
    pub fence: u64,
}

/// Where a shard is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct PinShard {
    /// The name of the node that is to have it.
    pub node: String,
}

objects!(PinShard);
