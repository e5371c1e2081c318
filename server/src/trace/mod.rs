//! Traces: each request that the door logs becomes a span, and spans are sent to an OpenTelemetry collector.
//!
//! ```text
//! door ── event "request" ─► layer.rs: a span ─► channel, bounded ─► send.rs: OTLP over HTTP (otlp.rs)
//! ```
//! The door's own event is all that is needed, so nothing is done for spans unless somebody wants them. A few
//! messages are written by hand in `otlp.rs`: the usual libraries would bring six crates and a code generator for them.
//!
//! **Invariant**: exporting never holds up a request. A full channel drops spans, a collector that does not answer
//! loses them, and the log says how many, once a minute.

mod context;
mod layer;
mod otlp;
mod send;
#[cfg(test)]
mod tests;

use std::time::SystemTime;

pub use send::Export;

/// A request as a span.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
    /// The span of whoever sent the request.
    pub parent_id: Option<[u8; 8]>,
    pub state: String,
    pub name: String,
    pub start: SystemTime,
    pub end: SystemTime,
    pub attributes: Vec<(&'static str, Value)>,
    /// The server is to blame for how it ended.
    pub is_error: bool,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    Number(i64),
}
