//! Facts about the store in MariaDB.
//!
//! All of it is one executable: what every file takes along, the shard above all, is built once.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod conformance;
mod contents;
mod forged;
mod ground;
mod opening;
mod outages;
mod races;
