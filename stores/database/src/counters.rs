//! How it goes between us and the database, for metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What was done so far. Counting waits for nothing.
#[derive(Debug, Default)]
pub struct Counters {
    round_trips: AtomicU64,
    retries: AtomicU64,
    failures: AtomicU64,
}

/// What a store has done so far, and how it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// How often a server was asked something.
    pub round_trips: u64,
    /// How often something was tried once more.
    pub retries: u64,
    /// How many calls came to nothing after all attempts.
    pub failures: u64,
    /// How many connections there are.
    pub connections: usize,
    /// How many of them are in use.
    pub busy: usize,
    /// The memory that the database takes for this, and maybe for other data too, as of a minute ago at most.
    pub memory_bytes: u64,
    /// The same on disk.
    pub disk_bytes: u64,
}

impl Counters {
    /// A server is asked something.
    pub fn count_round_trip(&self) {
        self.round_trips.fetch_add(1, Relaxed);
    }

    /// Something is tried once more.
    pub fn count_retry(&self) {
        self.retries.fetch_add(1, Relaxed);
    }

    /// A call came to nothing.
    pub fn count_failure(&self) {
        self.failures.fetch_add(1, Relaxed);
    }

    /// What was counted, with how many connections there are and how many of them are in use.
    pub fn status(&self, (connections, busy): (usize, usize)) -> Status {
        let [round_trips, retries, failures] =
            [&self.round_trips, &self.retries, &self.failures].map(|counter| counter.load(Relaxed));
        Status { round_trips, retries, failures, connections, busy, ..Status::default() }
    }
}
