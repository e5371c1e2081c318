//! What a piece of work came to: how fast it was, and what it cost the database.

use std::io;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::engine::Used;
use crate::table::{decimals, grouped};

/// How much was done, and how long each call took that its caller waits for, in microseconds.
pub struct Done {
    pub count: u64,
    pub calls_us: Histogram<u64>,
}

impl Done {
    pub fn nothing() -> Done {
        Done { count: 0, calls_us: Histogram::new(3).expect("three digits are allowed") }
    }

    pub fn add(&mut self, count: usize, took: Duration) -> io::Result<()> {
        self.count += count as u64;
        self.calls_us.record(took.as_micros() as u64).map_err(io::Error::other)
    }

    pub fn join(&mut self, other: &Done) -> io::Result<()> {
        self.count += other.count;
        self.calls_us.add(&other.calls_us).map_err(io::Error::other)
    }
}

#[derive(Clone, Copy)]
pub struct Measured {
    pub a_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Processor time of the database for each task, in microseconds.
    pub cpu_us: f64,
    /// Bytes of its log for each task.
    pub log_bytes: f64,
}

pub const HEADINGS: [&str; 5] = ["a second", "p50 ms", "p99 ms", "database CPU µs each", "log bytes each"];

impl Measured {
    pub fn new(count: u64, took: Duration, p50_ms: f64, p99_ms: f64, before: Used, after: Used) -> Measured {
        let each = 1.0 / count.max(1) as f64;
        Measured {
            a_second: count as f64 / took.as_secs_f64(),
            p50_ms,
            p99_ms,
            cpu_us: after.cpu.saturating_sub(before.cpu).as_secs_f64() * 1e6 * each,
            log_bytes: after.log.saturating_sub(before.log) as f64 * each,
        }
    }

    pub fn of(done: &Done, took: Duration, before: Used, after: Used) -> Measured {
        let at = |share: f64| done.calls_us.value_at_quantile(share) as f64 / 1e3;
        Measured::new(done.count, took, at(0.5), at(0.99), before, after)
    }

    pub fn cells(&self) -> [String; 5] {
        [
            grouped(self.a_second.round() as u64),
            decimals(self.p50_ms, 2),
            decimals(self.p99_ms, 2),
            decimals(self.cpu_us, 1),
            grouped(self.log_bytes.round() as u64),
        ]
    }
}
