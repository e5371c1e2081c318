//! Facts about a node, and about several of them.
//!
//! All of it is one executable: what every file takes along, the shard above all, is built once.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod acts;
mod administration;
mod almanac;
mod answers;
mod archive;
mod aside;
mod changes;
mod claims;
mod consumers;
mod full;
mod lending;
mod levels;
mod life;
mod lines;
mod lives;
mod load;
mod nodes;
mod rates;
mod rows;
mod shards;
mod stage;
mod stats;
mod stop;
mod sweeps;
mod trouble;
mod turns;
mod watch;
