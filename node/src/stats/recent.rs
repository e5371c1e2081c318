//! How late deliveries were in the last seconds: a distribution that forgets, so that a bad hour does not hide today.

use hdrhistogram::Histogram;
use punctual_center::{Grain, Spread};
use punctual_core::Timestamp;

use super::spread;

/// What was measured in the slot of time that is running, and in the one before it.
pub(super) struct Recent {
    number: u64,
    running: Histogram<u64>,
    before: Histogram<u64>,
}

impl Recent {
    pub fn new(empty: &Histogram<u64>) -> Recent {
        Recent { number: 0, running: empty.clone(), before: empty.clone() }
    }

    pub fn record(&mut self, micros: u64, now: Timestamp) {
        self.turn(now);
        self.running.saturating_record(micros);
    }

    /// What was measured since 10 to 20 seconds ago.
    pub fn read(&mut self, now: Timestamp) -> Spread {
        self.turn(now);
        let mut recent = spread(&self.before);
        recent.add(&spread(&self.running));
        recent
    }

    fn turn(&mut self, now: Timestamp) {
        let number = now.as_millis() / Grain::TenSeconds.length().0;
        if number <= self.number {
            return;
        }
        if number == self.number + 1 {
            std::mem::swap(&mut self.running, &mut self.before);
        } else if !self.before.is_empty() {
            self.before.reset();
        }
        if !self.running.is_empty() {
            self.running.reset();
        }
        self.number = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_ago_is_forgotten() {
        let mut recent = Recent::new(&Histogram::new_with_max(1_000_000, 3).unwrap());
        let at = |seconds: u64| Timestamp::from_millis(1_000_000 + seconds * 1_000);
        recent.record(100, at(0));
        recent.record(200, at(9));
        recent.record(300, at(10));
        let mut seen = |seconds| recent.read(at(seconds)).values().to_vec();
        assert_eq!(seen(19), [(100, 1), (200, 1), (300, 1)]);
        assert_eq!(seen(15), [(100, 1), (200, 1), (300, 1)], "also if the clock goes back");
        assert_eq!((seen(20), seen(30)), (vec![(300, 1)], vec![]));
        recent.record(400, at(31));
        assert_eq!((recent.read(at(500)).count(), recent.read(at(501)).count()), (0, 0), "also after a long rest");
    }
}
