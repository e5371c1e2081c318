//! Facts about the store in Redis.
//!
//! All of it is one executable: what every file takes along, the shard above all, is built once.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod cluster;
mod conformance;
mod failover;
mod faults;
mod forged;
mod opening;
mod owner;
mod ownership;
mod room;
