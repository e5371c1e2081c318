//! A clock that goes by the store's: one time for all nodes, whatever their machines' clocks say.

use std::fmt;
use std::sync::PoisonError;
use std::time::Duration;

use punctual_center::{Anchor, StoreTime};
use punctual_core::{Clock, ClockStep, Timestamp};

use crate::clock::{Steps, SystemClock};
use crate::sync::atomic::{AtomicI64, Ordering};
use crate::sync::{Mutex, RwLock, lock};

/// Nothing has been measured yet.
const UNKNOWN: i64 = i64::MIN;

/// The store's time, by what it shows with each beat: see [`StoreTime`]. Before the first beat it is the machine's.
pub struct StoreClock {
    doubt: u64,
    time: Mutex<Option<StoreTime>>,
    /// What follows from the above until the next beat.
    anchor: RwLock<Option<Anchor>>,
    /// By how many microseconds the machine's clock is ahead of the store's.
    skew: AtomicI64,
    steps: Steps,
}

impl StoreClock {
    /// Doubts steps of the store's clock forward for this time, and tells of all steps.
    pub fn new(doubt: Duration, tell: impl Fn(ClockStep) + Send + Sync + 'static) -> StoreClock {
        StoreClock {
            doubt: u64::try_from(doubt.as_micros()).unwrap_or(u64::MAX),
            time: Mutex::default(),
            anchor: RwLock::default(),
            skew: AtomicI64::new(UNKNOWN),
            steps: Steps::new(tell),
        }
    }

    fn anchor(&self) -> Option<Anchor> {
        *self.anchor.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.micros() / 1_000)
    }

    fn micros(&self) -> u64 {
        self.anchor().map_or_else(|| SystemClock.micros(), |anchor| anchor.micros(self.steady_micros()))
    }

    fn ceiling(&self) -> Timestamp {
        let Some(anchor) = self.anchor() else { return SystemClock.ceiling() };
        // A fraction of a microsecond has been cut off.
        Timestamp::from_millis((anchor.most(self.steady_micros()) + 1).div_ceil(1_000))
    }

    fn steady_micros(&self) -> u64 {
        SystemClock.steady_micros()
    }

    fn heard(&self, micros: u64, asked_at: u64) {
        let mut time = lock(&self.time);
        // Looked at under the lock: two beats are heard in the order of their answers.
        let answered_at = self.steady_micros();
        let step = match &mut *time {
            None => {
                *time = Some(StoreTime::new(micros, asked_at, answered_at, self.doubt));
                None
            }
            Some(time) => time.hear(micros, asked_at, answered_at),
        };
        let anchor = time.as_mut().map(StoreTime::anchor);
        *self.anchor.write().unwrap_or_else(PoisonError::into_inner) = anchor;
        drop(time);
        self.skew.store(SystemClock.micros().wrapping_sub(self.micros()) as i64, Ordering::Relaxed);
        self.steps.note(step);
    }

    fn skew(&self) -> Option<i64> {
        Some(self.skew.load(Ordering::Relaxed)).filter(|skew| *skew != UNKNOWN)
    }

    fn steps(&self) -> (u64, u64) {
        self.steps.count()
    }
}

impl fmt::Debug for StoreClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreClock").field("anchor", &self.anchor()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::Millis;

    use super::*;

    const HOUR: u64 = 3_600_000_000;

    /// The store's clock, so many microseconds off the machine's.
    fn beat(clock: &StoreClock, off: i64) {
        let asked_at = clock.steady_micros();
        clock.heard(SystemClock.micros().saturating_add_signed(off), asked_at);
    }

    #[test]
    fn the_stores_time_is_gone_by_however_far_off_the_machine_is() {
        for off in [-72 * HOUR as i64, 0, 72 * HOUR as i64] {
            let clock = StoreClock::new(Duration::from_secs(30), |step| panic!("{step}"));
            assert!(
                clock.now() >= Timestamp::from_millis(SystemClock.micros() / 1_000 - 1_000),
                "nothing better is known"
            );
            assert_eq!(clock.skew(), None);
            for _ in 0..100 {
                beat(&clock, off);
                let shown = clock.micros();
                let truth = SystemClock.micros().saturating_add_signed(off);
                assert!(shown <= truth && truth - shown < 1_000_000, "{shown} {truth}");
                assert!(clock.after(Millis(5)).as_millis() * 1_000 >= truth);
            }
            assert!((clock.skew().unwrap() + off).abs() < 1_000_000);
        }
    }

    #[test]
    fn a_step_of_the_stores_clock_is_told_and_counted() {
        let (sender, told) = std::sync::mpsc::channel();
        let clock = StoreClock::new(Duration::from_secs(30), move |step| sender.send(step.by).unwrap());
        beat(&clock, 0);
        beat(&clock, -(HOUR as i64));
        assert!((told.try_recv().unwrap() + HOUR as i64).abs() < 1_000_000);
        beat(&clock, 0);
        assert!(clock.micros() < SystemClock.micros() - HOUR / 2, "a step forward is doubted");
        assert_eq!(clock.steps(), (1, 1));
    }
}
