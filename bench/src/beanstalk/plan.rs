//! How large the comparison is, and what can be chosen of it.

use std::time::Duration;

use super::contestants::Kind;
use crate::arena::plan::{self, Choice};

pub type Plan = plan::Plan<Kind, Size>;

/// How much of everything.
#[derive(Clone, Copy)]
pub struct Size {
    /// How often the short measurements are repeated, contestants taking turns; the median counts.
    pub rounds: usize,
    /// For how long puts and lives are counted, and at most how many.
    pub lasting: Duration,
    pub at_most: u64,
    /// Jobs a second of the steady loads, and for how long they last.
    pub rates: [u64; 2],
    pub steady: Duration,
    /// The delays of the steady load, in seconds.
    pub delays: (u64, u64),
    pub herd: u64,
    pub pending: u64,
    /// How long the memory stays the same before it counts.
    pub settled: Duration,
}

pub const CHOICE: Choice<Size> = Choice {
    lines: &["puts", "pipelined", "lives", "lateness", "herd", "pending"],
    full: Size {
        rounds: 3,
        lasting: Duration::from_secs(5),
        at_most: 1_000_000,
        rates: [200, 5_000],
        steady: Duration::from_secs(20),
        delays: (1, 9),
        herd: 100_000,
        pending: 1_000_000,
        settled: Duration::from_secs(12),
    },
    small: Size {
        rounds: 1,
        lasting: Duration::from_millis(500),
        at_most: 20_000,
        rates: [200, 1_000],
        steady: Duration::from_secs(1),
        delays: (1, 2),
        herd: 500,
        pending: 2_000,
        settled: Duration::from_millis(500),
    },
};

pub const USAGE: &str = "  --only a,b      of punctual, beanstalkd (both), beanstalkd-memory, beanstalkd-synced
  --lines a,b     of puts, pipelined, lives, lateness, herd, pending
  --small         a minute or two instead of half an hour, to see that it works
  PUNCTUAL_BIN and PUNCTUAL_BENCH_DIR as for server";
