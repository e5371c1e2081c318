//! Clocks: the true time of the simulation, which only grows, and those of the nodes, which do
//! what clocks do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use punctual_core::{Clock, Timestamp};

/// A moment of the simulation: milliseconds since its beginning.
pub type Moment = u64;

/// What a right clock shows at moment 0: 2026-01-01.
pub const EPOCH: u64 = 1_767_225_600_000;

/// The right time at a moment.
pub fn right_time(moment: Moment) -> Timestamp {
    Timestamp::from_millis(EPOCH + moment)
}

/// The store's clock: leases of nodes end by it, and fences follow it. It is right, but where somebody sets it.
#[derive(Clone, Debug, Default)]
pub struct TrueClock {
    moment: Arc<AtomicU64>,
    /// By how much it is ahead, and the most that it ever was.
    ahead: Arc<AtomicI64>,
    most_ahead: Arc<AtomicI64>,
    hidden: Arc<AtomicBool>,
}

impl TrueClock {
    /// Lets the clock show this moment.
    pub fn set(&self, moment: Moment) {
        self.moment.store(moment, Ordering::Relaxed);
    }

    /// Sets it forward or back.
    pub fn step(&self, by: i64) {
        let ahead = self.ahead.fetch_add(by, Ordering::Relaxed) + by;
        self.most_ahead.fetch_max(ahead, Ordering::Relaxed);
    }

    /// By how much it has to be set forward to be where it was latest.
    pub fn behind_latest(&self) -> i64 {
        self.most_ahead.load(Ordering::Relaxed) - self.ahead.load(Ordering::Relaxed)
    }

    /// Lets it show no time meanwhile; only to test the auditor.
    pub fn hide<T>(&self, meanwhile: impl FnOnce() -> T) -> T {
        self.hidden.store(true, Ordering::Relaxed);
        let result = meanwhile();
        self.hidden.store(false, Ordering::Relaxed);
        result
    }
}

impl Clock for TrueClock {
    fn now(&self) -> Timestamp {
        if self.hidden.load(Ordering::Relaxed) {
            return Timestamp::ZERO;
        }
        right_time(self.moment.load(Ordering::Relaxed)).shifted(self.ahead.load(Ordering::Relaxed))
    }
}

/// The clock of a node: it may run fast or slow and be set forward or back.
#[derive(Clone, Debug)]
pub struct NodeClock {
    /// When it was last set, and what it showed then.
    set_at: Moment,
    shown: u64,
    /// By how many millionths it runs fast.
    ppm: i64,
}

impl NodeClock {
    /// A right clock.
    pub fn new() -> NodeClock {
        NodeClock { set_at: 0, shown: EPOCH, ppm: 0 }
    }

    /// What it shows.
    pub fn read(&self, moment: Moment) -> Timestamp {
        let passed = i128::from(moment.saturating_sub(self.set_at));
        let shown = i128::from(self.shown) + passed + passed * i128::from(self.ppm) / 1_000_000;
        Timestamp::from_millis(u64::try_from(shown).unwrap_or(0))
    }

    /// The first moment from `moment` on at which it shows this time, if nobody sets it.
    pub fn when(&self, shows: Timestamp, moment: Moment) -> Moment {
        if self.read(moment) >= shows {
            return moment;
        }
        let ahead = i128::from(shows.as_millis()) - i128::from(self.shown);
        let passed = ahead * 1_000_000 / i128::from(1_000_000 + self.ppm);
        let mut when = self.set_at.saturating_add(u64::try_from(passed).unwrap_or(0)).max(moment);
        while when > moment && self.read(when - 1) >= shows {
            when -= 1;
        }
        while self.read(when) < shows {
            when += 1;
        }
        when
    }

    /// Sets it forward or back.
    pub fn step(&mut self, moment: Moment, by: i64) {
        self.shown = self.read(moment).shifted(by).as_millis();
        self.set_at = moment;
    }

    /// Lets it run fast (or slow) by so many millionths.
    pub fn drift(&mut self, moment: Moment, ppm: i64) {
        self.step(moment, 0);
        self.ppm = ppm;
    }

    /// Sets it right, and lets it run right.
    pub fn set_right(&mut self, moment: Moment) {
        self.step(moment, -self.error(moment));
        self.ppm = 0;
    }

    /// Whether it runs fast or slow.
    pub fn is_drifting(&self) -> bool {
        self.ppm != 0
    }

    /// By how much it is wrong.
    pub fn error(&self, moment: Moment) -> i64 {
        self.read(moment).as_millis() as i64 - (EPOCH + moment) as i64
    }
}

impl Default for NodeClock {
    fn default() -> NodeClock {
        NodeClock::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drifting_clock_shows_a_time_first_when_it_says_so() {
        for ppm in [-90_000, -3, 0, 7, 90_000] {
            let mut clock = NodeClock::new();
            clock.drift(1_000, ppm);
            for ahead in [0, 1, 17, 86_400_000] {
                let shows = Timestamp::from_millis(EPOCH + 1_000 + ahead);
                let when = clock.when(shows, 1_000);
                assert!(clock.read(when) >= shows);
                assert!(when == 1_000 || clock.read(when - 1) < shows, "{ppm} {ahead}");
            }
        }
    }

    #[test]
    fn a_clock_can_be_set_back_and_says_how_wrong_it_is() {
        let mut clock = NodeClock::new();
        clock.step(50, -20);
        assert_eq!(clock.read(60).as_millis(), EPOCH + 40);
        assert_eq!(clock.error(60), -20);
    }
}
