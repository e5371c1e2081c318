//! What comes out of the input of a connection: fact by fact, and against an oracle.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod against_the_oracle;
mod arguments;
mod lines;
mod memory;
mod oracle;
mod puts;
mod talk;
mod words;
