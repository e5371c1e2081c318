//! The machine's clock.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use punctual_core::{Clock, ClockStep, Millis, StepFate, Timestamp, Trust};
use rustix::time::{ClockId, clock_gettime};

use crate::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use crate::sync::{Mutex, lock};

/// The machine's wall clock, as it is. It may step in either direction, and whatever it shows is believed.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.micros() / 1_000)
    }

    fn micros(&self) -> u64 {
        u64::try_from(since_1970().as_micros()).unwrap_or(u64::MAX)
    }

    fn ceiling(&self) -> Timestamp {
        Timestamp::from_millis(Millis::from(since_1970()).0)
    }

    fn steady_micros(&self) -> u64 {
        boot_micros()
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Microseconds since the machine was started, those included in which it slept. Nobody can set this clock.
fn boot_micros() -> u64 {
    let boot = clock_gettime(ClockId::Boottime);
    boot.tv_sec as u64 * 1_000_000 + boot.tv_nsec as u64 / 1_000
}

/// Such a difference between the clocks, in microseconds, is looked at twice: it may be a step, or the time that this
/// thread had to wait between reading the one and the other. A lesser one is not noted, so this is also by how much the
/// time may be wrong while a step is in doubt: no more than an instant's own precision.
const SLACK: u64 = 1_000;

/// Clocks that were read within so many microseconds were read at once, as good as that can be had.
const AT_ONCE: u64 = 100;

/// No difference is like this one: there is something to judge at each reading.
const IN_DOUBT: i64 = i64::MIN;

/// The machine's wall clock, whose steps forward are doubted for a while: see [`Trust`].
pub struct DoubtingClock {
    trust: Mutex<Trust>,
    /// What is settled of the above, so that almost nobody has to ask for the lock.
    ahead: AtomicI64,
    steps: Steps,
}

/// Tells of steps, and counts them.
pub(crate) struct Steps {
    tell: Box<dyn Fn(ClockStep) + Send + Sync>,
    forward: AtomicU64,
    back: AtomicU64,
}

impl Steps {
    pub fn new(tell: impl Fn(ClockStep) + Send + Sync + 'static) -> Steps {
        Steps { tell: Box::new(tell), forward: AtomicU64::new(0), back: AtomicU64::new(0) }
    }

    pub fn note(&self, told: Option<ClockStep>) {
        let Some(step) = told else { return };
        match step.fate {
            StepFate::Doubted | StepFate::Unquestioned => _ = self.forward.fetch_add(1, Ordering::Relaxed),
            StepFate::Followed | StepFate::Withdrawn => _ = self.back.fetch_add(1, Ordering::Relaxed),
            // It was counted when it was doubted.
            StepFate::Believed => {}
        }
        (self.tell)(step);
    }

    /// How many there were: forward, and back.
    pub fn count(&self) -> (u64, u64) {
        (self.forward.load(Ordering::Relaxed), self.back.load(Ordering::Relaxed))
    }
}

impl DoubtingClock {
    /// Believes what the clock shows now, doubts steps forward for this time, and tells of all steps.
    pub fn new(doubt: Duration, tell: impl Fn(ClockStep) + Send + Sync + 'static) -> DoubtingClock {
        let doubt = u64::try_from(doubt.as_micros()).unwrap_or(u64::MAX);
        let (wall, boot) = both();
        let trust = Trust::new(wall, boot, doubt);
        DoubtingClock {
            ahead: AtomicI64::new(trust.settled().unwrap_or(IN_DOUBT)),
            trust: Mutex::new(trust),
            steps: Steps::new(tell),
        }
    }

    fn judge(&self) -> u64 {
        let (shown, told) = {
            let mut trust = lock(&self.trust);
            let (wall, boot) = both();
            let judged = trust.judge(wall, boot);
            self.ahead.store(trust.settled().unwrap_or(IN_DOUBT), Ordering::Relaxed);
            judged
        };
        self.steps.note(told);
        shown
    }
}

/// Wall clock and clock from boot, read as good as at once.
fn both() -> (u64, u64) {
    let read = || {
        let before = boot_micros();
        let wall = SystemClock.micros();
        let boot = boot_micros();
        (wall, boot, boot - before)
    };
    let mut best = read();
    for _ in 0..10 {
        if best.2 < AT_ONCE {
            break;
        }
        let again = read();
        if again.2 < best.2 {
            best = again;
        }
    }
    (best.0, best.1)
}

impl Clock for DoubtingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.micros() / 1_000)
    }

    fn micros(&self) -> u64 {
        let (boot, wall) = (boot_micros(), SystemClock.micros());
        let ahead = self.ahead.load(Ordering::Relaxed);
        let apart = wall.wrapping_sub(boot) as i64;
        if ahead != IN_DOUBT && apart.abs_diff(ahead) < SLACK { wall } else { self.judge() }
    }

    fn ceiling(&self) -> Timestamp {
        // A fraction of a microsecond has been cut off.
        Timestamp::from_millis((self.micros() + 1).div_ceil(1_000))
    }

    fn steady_micros(&self) -> u64 {
        boot_micros()
    }

    fn steps(&self) -> (u64, u64) {
        self.steps.count()
    }
}

impl fmt::Debug for DoubtingClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DoubtingClock").field("trust", &self.trust).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undisturbed_clock_is_the_wall_clock() {
        let clock = DoubtingClock::new(Duration::from_secs(30), |step| panic!("{step}"));
        for _ in 0..1_000 {
            let before = SystemClock.micros();
            let shown = clock.micros();
            assert!((before..=SystemClock.micros()).contains(&shown));
        }
        assert_eq!(clock.steps(), (0, 0));
    }

    #[test]
    fn a_length_of_time_is_never_over_too_soon() {
        let clock = DoubtingClock::new(Duration::ZERO, |_| {});
        for _ in 0..1_000 {
            let before = since_1970();
            let end = clock.after(Millis(7));
            assert!(Duration::from_millis(end.as_millis()) >= before + Duration::from_millis(7));
            assert!(clock.after(Millis::ZERO) <= clock.now());
        }
    }
}
