//! How long it takes until answers are out, from their step or from its commit, by how long it took lately.
//!
//! A lease has to be written down before its delivery is handed over, so its end is reckoned before it is known
//! how long the commit takes. It counts from when the delivery is thought to reach its consumer. If the commit takes
//! longer, the committer knows when it is done, and the lease is made longer.

use std::time::Duration;

use punctual_core::{Clock, Timestamp};

use crate::sync::atomic::{AtomicU64, Ordering};

/// More than this is not made up for: a store that takes longer is in trouble.
const LONGEST: Duration = Duration::from_secs(1);

/// By how much a step may be slower than lately without its leases having to be made longer, which is another write.
const MARGIN: Duration = Duration::from_millis(1);

#[derive(Default)]
pub(crate) struct Pace {
    micros: AtomicU64,
    margin: Duration,
}

impl Pace {
    /// For what had better be reckoned too late than too early.
    pub fn with_margin() -> Pace {
        Pace { margin: MARGIN, ..Pace::default() }
    }

    /// Answers are out, so long after their step began to happen, or after it was durable.
    pub fn note(&self, took: Duration) {
        let took = took.min(LONGEST).as_micros() as u64;
        let before = self.micros.load(Ordering::Relaxed);
        // A slow one counts at once, and is forgotten over some dozens that are faster.
        self.micros.store(took.max(before - before.div_ceil(8)), Ordering::Relaxed);
    }

    /// When what is handed over in a step that happens now, or is durable now, reaches its consumer, rounded up.
    pub fn hand_over_at(&self, clock: &dyn Clock) -> Timestamp {
        let micros = clock.micros() + 1 + self.micros.load(Ordering::Relaxed) + self.margin.as_micros() as u64;
        Timestamp::from_millis(micros.div_ceil(1_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_commit_counts_at_once_and_is_forgotten_slowly() {
        let pace = Pace::default();
        pace.note(Duration::from_millis(100));
        assert_eq!(pace.micros.load(Ordering::Relaxed), 100_000);
        pace.note(Duration::from_millis(1));
        assert_eq!(pace.micros.load(Ordering::Relaxed), 87_500);
        (0..100).for_each(|_| pace.note(Duration::from_millis(1)));
        assert_eq!(pace.micros.load(Ordering::Relaxed), 1_000);
        pace.note(Duration::from_secs(3_600));
        assert_eq!(pace.micros.load(Ordering::Relaxed), LONGEST.as_micros() as u64);
        (0..1_000).for_each(|_| pace.note(Duration::ZERO));
        assert_eq!(pace.micros.load(Ordering::Relaxed), 0);
    }
}
