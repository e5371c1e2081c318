//! Punctual's beanstalk door: the protocol of beanstalkd 1.12, to the byte, for its clients.
//!
//! A door is thin: it parses, calls the node, translates the answer. No rule about jobs is in here.
//!
//! ```text
//! bytes ─► input ─► commands, puts with their bodies ─► node ─► answer ─► bytes
//!          line     where a line ends                           yaml: stats and lists
//!          command  which command it is
//!          number   its numbers and names
//! ```
//! What is here is pure: no socket, no clock, no node. **Invariant**: what comes out of [`input::Input`] does not
//! depend on how the bytes were cut into reads. **Invariant**: a connection costs a bounded amount of memory
//! whatever it sends: memory grows with the bytes that came, never with a size that was announced.

pub mod answer;
pub mod command;
pub mod counters;
pub mod input;
pub mod kind;
pub mod line;
pub mod number;
pub mod yaml;
