//! Punctual's HTTP door: JSON under `/v1`.
//!
//! A door is thin: it parses, calls the node, translates the answer. No rule about tasks is in here.
//!
//! ```text
//! listen ─► answer ─► gate ─► routes/* ─► translate/* ─► node ─► translate/* ─► JSON, or a Fault
//! sockets,  packing,  who     one file    wire types                            problem details
//! limits    logging   may     per noun    to core's
//! ```
//! **Invariant**: whatever comes in, the answer is the one asked for or a problem that says what is
//! wrong and what to do. **Invariant**: a client that is slow, silent or broken costs one bounded connection.

mod answer;
mod app;
mod fault;
mod gate;
mod input;
mod lease;
mod listen;
mod openapi;
mod output;
mod routes;
mod stall;
mod trace;
mod translate;
mod unpack;

pub use app::{App, Limits};
pub use listen::serve;
pub use openapi::document;
pub use translate::task_info;
