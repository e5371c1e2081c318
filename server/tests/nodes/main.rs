//! Several servers on one store, with the real binary: any of them takes any request, and each may die, stand still, or
//! be cut off from the others or from the store.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod center;
#[path = "../crowd/mod.rs"]
mod crowd;
#[path = "../databases/engine.rs"]
#[allow(dead_code, reason = "the other tests use all of it")]
mod engine;
mod failover;
mod faults;
mod reservations;
#[path = "../stage/mod.rs"]
mod stage;
mod sweeps;
mod together;
mod upgrades;
mod versions;
