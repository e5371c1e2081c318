//! What comes out of the input of a connection: fact by fact, and against an oracle. And what the whole door answers to
//! the same bytes.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod against_the_oracle;
mod arguments;
mod conversation;
mod lines;
mod memory;
mod oracle;
mod puts;
mod talk;
mod whole_door;
mod words;
