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
    /// For how long schedules are counted, and at most how many in batches.
    pub scheduling: Duration,
    pub in_batches: u64,
    /// For how long the steady load lasts.
    pub steady: Duration,
    pub herd: u64,
    /// How long before it is due the herd begins to be scheduled.
    pub herd_ahead: Duration,
    pub pending: u64,
}

pub const CHOICE: Choice<Size> = Choice {
    lines: &["single", "batches", "lateness", "herd", "pending"],
    full: Size {
        rounds: 3,
        scheduling: Duration::from_secs(5),
        in_batches: 1_000_000,
        steady: Duration::from_secs(20),
        herd: 100_000,
        herd_ahead: Duration::from_secs(12),
        pending: 1_000_000,
    },
    small: Size {
        rounds: 1,
        scheduling: Duration::from_secs(1),
        in_batches: 100_000,
        steady: Duration::from_secs(4),
        herd: 10_000,
        herd_ahead: Duration::from_secs(4),
        pending: 50_000,
    },
};

pub const USAGE: &str = "  --only a,b      of punctual, redis (both), redis-everysec, redis-always, postgres
  --lines a,b     of single, batches, lateness, herd, pending
  --small         three minutes instead of a quarter of an hour, to see that it works
  PUNCTUAL_BIN names the punctual to measure; else the one of the root's release build
  PUNCTUAL_BENCH_DIR says where the servers keep their data; else in the system's directory for temporary files";
