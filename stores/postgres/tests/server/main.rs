//! What holds of the store on a real server that is raced against, cut off, hung, killed, set back and set up strangely.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod faults;
mod forged;
mod hostile;
mod killed;
mod lock;
mod migrations;
mod owner;
mod plans;
mod races;
mod setback;
mod tallies;
mod tls;
mod vacuum;
