//! Moving the store into another one while the server runs.

use serde::{Deserialize, Serialize};

use crate::object::objects;
use crate::time::Time;

/// Where to move the store.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct MoveStore {
    /// The store to move into: the URL of a database as in the setting `store`, or `almanac:/PATH` for a data directory on
    /// the server's machine. A password that is not in the URL is the server's `store.moving_to_password`.
    pub to: String,
    /// First delete what is left there of a move that was given up or taken back, or what was moved away from there.
    #[serde(default)]
    pub afresh: bool,
}

/// Without the address, which may have a password in it.
impl std::fmt::Debug for MoveStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MoveStore").field("afresh", &self.afresh).finish_non_exhaustive()
    }
}

/// How far a move of the store is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StoreMove {
    /// What is being done.
    pub state: MoveState,
    /// The store that is moved, without secrets.
    pub from: String,
    /// The store it is moved into, without secrets.
    pub to: String,
    /// When this server began, or took up what another one had begun.
    pub begun_at: Time,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    /// Each shard, by number.
    pub shards: Vec<ShardMove>,
    /// Why it does not go on for now. It is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// What the operator has to do, or to know.
    pub advice: String,
}

/// What is being done about a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MoveState {
    /// The shards are moved, one after the other.
    Moving,
    /// It is being given up.
    Cancelling,
    /// It was given up: everything is where it was.
    Cancelled,
    /// Everything is in the other store, and the server works on that one.
    Moved,
}

/// How far a shard is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShardMove {
    /// Its number.
    pub shard: u16,
    /// What is being done with it.
    pub state: ShardMoveState,
    /// How many rows it has, by its counts when it was begun: nearly all.
    pub expected: u64,
    /// How many rows were copied while it is in use.
    pub copied: u64,
    /// How many of them were read back and compared.
    pub verified: u64,
    /// When it is moved: how many rows it has, which are the same on both sides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// The sum of the hashes of these rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// For how long its requests waited when it was handed over, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_micros: Option<u64>,
}

/// What is being done with a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ShardMoveState {
    /// It is where it was, and in use.
    Here,
    /// It is copied and verified while it is in use.
    Copying,
    /// Its requests wait while what has changed meanwhile follows.
    HandingOver,
    /// It is in the other store, and in use there.
    Moved,
}

objects!(MoveStore);
