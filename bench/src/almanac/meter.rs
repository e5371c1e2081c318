//! Time, processor time and latencies of measured work. The rows are made up between the windows, so that only
//! the contestant's work counts.

use std::time::{Duration, Instant};

use super::report::{decimals, grouped};
use super::system;

#[derive(Default)]
pub struct Meter {
    pub count: usize,
    pub wall: Duration,
    cpu: Duration,
    latencies: Vec<Duration>,
}

impl Meter {
    /// What was measured elsewhere, as a whole.
    pub fn of(count: usize, wall: Duration, cpu: Duration) -> Meter {
        Meter { count, wall, cpu, latencies: Vec::new() }
    }

    /// Runs a part of the work, of so many rows.
    pub fn window(&mut self, count: usize, work: impl FnOnce(&mut Meter)) {
        let (started, before) = (Instant::now(), system::cpu());
        work(self);
        self.wall += started.elapsed();
        self.cpu += system::cpu() - before;
        self.count += count;
    }

    /// Runs one call whose latency matters.
    pub fn call<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let outcome = call();
        self.latencies.push(started.elapsed());
        outcome
    }

    pub fn join(&mut self, other: Meter) {
        self.count += other.count;
        self.wall += other.wall;
        self.cpu += other.cpu;
        self.latencies.extend(other.latencies);
    }

    /// How many a second.
    pub fn rate(&self) -> String {
        grouped((self.count as f64 / self.wall.as_secs_f64()).round() as u64)
    }

    /// How many cores were busy.
    pub fn cores(&self) -> String {
        decimals(self.cpu.as_secs_f64() / self.wall.as_secs_f64(), 2)
    }

    /// The latencies at these shares of all calls, in milliseconds; 1.0 is the longest.
    pub fn latencies<const N: usize>(&mut self, shares: [f64; N]) -> [String; N] {
        self.latencies.sort_unstable();
        let last = self.latencies.len() - 1;
        shares.map(|share| {
            let at = (self.latencies.len() as f64 * share) as usize;
            decimals(self.latencies[at.min(last)].as_secs_f64() * 1e3, 3)
        })
    }
}
