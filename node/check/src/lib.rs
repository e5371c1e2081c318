//! The node's threads under a model checker: the real node on a memory store, with every lock, bell, atomic and thread in
//! the hands of [shuttle](https://docs.rs/shuttle), which runs each scene through thousands of interleavings.
//!
//! A scene ends well if each of its assertions holds and nobody waits for ever: time stands still unless the scene lets it
//! pass, so nothing is repaired by a time-out. `cargo xtask interleave` runs all of them.

#![cfg(all(shuttle, test))]
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

mod aside;
mod callers;
mod consumers;
mod explore;
mod handing;
mod lending;
mod other;
mod sabotage;
mod stage;
mod stopping;
mod trouble;
