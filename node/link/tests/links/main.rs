//! Links between several nodes of one process, over the loopback and through proxies that meddle.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod bounds;
mod encryption;
mod faults;
mod meddler;
mod node;
mod rebuffs;
mod talk;
