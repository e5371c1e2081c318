//! The web console in the real server: what is served, and the console in a real browser.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

#[path = "../stage/mod.rs"]
mod stage;

mod browser;
mod served;
