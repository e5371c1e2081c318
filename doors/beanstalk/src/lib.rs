//! Punctual's beanstalk door: the protocol of beanstalkd 1.12, to the byte, for its clients.
//!
//! A door is thin: it parses, calls the node, translates the answer. No rule about jobs is in here.
//!
//! ```text
//! bytes ─► input ─► commands, puts with their bodies ─► connection ─► node ─► answer ─► bytes
//!          line     where a line ends                   round: many together      yaml: stats and lists
//!          command  which command it is                 reserve: what waits
//!          number   its numbers and names               look: what reads
//! ```
//! What stands left of the connection and right of the node is pure: no socket, no clock. **Invariant**: what comes out
//! of [`input::Input`] does not depend on how the bytes were cut into reads. **Invariant**: a connection costs a bounded
//! amount of memory whatever it sends: memory grows with the bytes that came, never with a size that was announced.
//! **Invariant**: answers leave in the order of their commands, each after what it says is durable.
//!
//! ```
//! use std::time::Duration;
//!
//! use punctual_beanstalk::command::Command;
//! use punctual_beanstalk::input::{Input, Next};
//!
//! let mut input = Input::new(65_536);
//! input.buffer().extend_from_slice(b"put 0 60 30 5\r\nhello\r\nreserve\r\n");
//! let Next::Put(put) = input.next() else { panic!("its body is all there") };
//! assert_eq!((put.delay, &put.body[..]), (Duration::from_secs(60), &b"hello"[..]));
//! assert_eq!(input.next(), Next::Command(Command::Reserve));
//! assert_eq!(input.next(), Next::More);
//! ```

mod after_crash;
pub mod answer;
pub mod command;
mod connection;
pub mod counters;
mod door;
mod held;
pub mod input;
pub mod kind;
mod leaving;
pub mod line;
mod listen;
mod look;
pub mod number;
mod reserve;
mod round;
mod translate;
mod tubes;
pub mod yaml;

pub use door::{Door, Limits, Machine};
pub use listen::serve;
