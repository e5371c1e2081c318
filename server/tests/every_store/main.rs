//! What holds whichever store tasks are kept in. `cargo xtask test` runs it once for each: `PUNCTUAL_TEST_STORE` chooses.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod acts;
mod consumers;
mod crashes;
mod hostile;
mod manners;
mod rules;
#[path = "../stage/mod.rs"]
mod stage;
mod sweeps;
mod tasks;
mod workers;
