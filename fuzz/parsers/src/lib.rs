//! Every parser of foreign bytes, each behind one call: whatever the bytes are, it returns.
//!
//! A call panics if the parser does, or if what it says contradicts itself. `fuzz/fuzz_targets` hands these calls to
//! libFuzzer; `tests/short.rs` runs each for a moment, on its corpus and on mutations of it.

mod almanac;
mod beanstalk;
mod http;
mod link;
mod text;
mod wire;

pub use almanac::almanac;
pub use beanstalk::beanstalk;
pub use http::{http, lease};
pub use link::link;
pub use text::text;
pub use wire::wire;

/// A parser of foreign bytes.
pub struct Parser {
    /// The name of its fuzz target and of its corpus.
    pub name: &'static str,
    /// Parses, and checks what comes out.
    pub parse: fn(&[u8]),
    /// How many mutations take about a second.
    pub mutations: usize,
}

/// All of them.
pub const PARSERS: &[Parser] = &[
    Parser { name: "almanac", parse: almanac, mutations: 1_000 },
    Parser { name: "beanstalk", parse: beanstalk, mutations: 20_000 },
    Parser { name: "http", parse: http, mutations: 2_000 },
    Parser { name: "lease", parse: lease, mutations: 500 },
    Parser { name: "link", parse: link, mutations: 20_000 },
    Parser { name: "text", parse: text, mutations: 20_000 },
    Parser { name: "wire", parse: wire, mutations: 5_000 },
];
