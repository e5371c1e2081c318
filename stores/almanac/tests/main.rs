//! Facts about the almanac.
//!
//! All of it is one executable: what every file takes along, the shard above all, is built once.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod backup;
mod bounds;
mod check;
mod cluster;
mod conformance;
mod contract;
mod crashes;
mod damage;
mod faults;
mod formats;
mod full;
mod kill;
mod lost;
mod stage;
