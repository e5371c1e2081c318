//! What the consumers have done together: how late each delivery was, and how many are through.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::crew::Crew;

/// How long after the last due time it is waited for what is missing.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Tally {
    late_us: Mutex<Histogram<u64>>,
    done: AtomicU64,
    expected: u64,
    all: Notify,
}

impl Tally {
    pub fn new(expected: u64) -> Arc<Tally> {
        Arc::new(Tally {
            late_us: Mutex::new(Histogram::new(3).expect("three digits are allowed")),
            done: AtomicU64::new(0),
            expected,
            all: Notify::new(),
        })
    }

    /// Each of these came now, so many microseconds after it was due.
    pub fn came(&self, late_us: impl IntoIterator<Item = io::Result<u64>>) -> io::Result<()> {
        let mut late = self.late_us.lock().unwrap_or_else(PoisonError::into_inner);
        late_us.into_iter().try_for_each(|micros| late.record(micros?).map_err(io::Error::other))
    }

    /// So many more are acknowledged.
    pub fn finished(&self, count: u64) {
        if self.done.fetch_add(count, Relaxed) + count >= self.expected {
            self.all.notify_one();
        }
    }

    pub async fn all_finished(&self, crew: &mut Crew<()>, at_most: Duration) -> io::Result<()> {
        match timeout(at_most, crew.work_until(self.all.notified())).await {
            Ok(done) => done,
            Err(_) => {
                let missing = self.expected - self.done.load(Relaxed);
                let missing = format!("{missing} of {} have not come", self.expected);
                Err(io::Error::new(io::ErrorKind::TimedOut, missing))
            }
        }
    }

    pub fn late_us(&self) -> Histogram<u64> {
        self.late_us.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The quantiles that a table shows, with their names.
pub const SHARES: [&str; 4] = ["p50", "p99", "p99.9", "max"];

/// [`SHARES`] in milliseconds.
pub fn shares_ms(late_us: &Histogram<u64>) -> [f64; 4] {
    let at = |share: f64| late_us.value_at_quantile(share) as f64 / 1e3;
    [at(0.5), at(0.99), at(0.999), late_us.max() as f64 / 1e3]
}
