//! Which time to believe: that of the wall clock, or that of a clock that counts from boot and cannot be set.
//!
//! Firing cannot be taken back, so a step forward that the other clock knows nothing of is doubted for a while:
//! until then time runs on as if there had been none. A step back is followed at once: it only makes things wait.
//! The clock from boot runs on while the machine sleeps, so that waking up is no step.

use std::fmt;

/// More than this, in microseconds, is a step and not the usual correction of a clock.
const SECOND: i64 = 1_000_000;

/// Tells the time from two clocks. All times are in microseconds.
#[derive(Clone, Debug)]
pub struct Trust {
    doubt: u64,
    /// By how much the wall clock is ahead of the one from boot, as far as it is believed.
    ahead: i64,
    doubted: Option<Doubted>,
}

/// A step that is not believed yet.
#[derive(Clone, Copy, Debug)]
struct Doubted {
    ahead: i64,
    since: u64,
}

/// A step of the wall clock of more than a second, against the time that was believed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// By how many microseconds; back if it is negative.
    pub by: i64,
    /// What came of it.
    pub fate: StepFate,
}

/// What comes of a step of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepFate {
    /// It went back, and so does the time that is believed.
    Followed,
    /// It went forward, and is doubted from now on.
    Doubted,
    /// It went forward, was doubted, and has stood there for so long that it is believed now.
    Believed,
    /// It went forward and is believed at once, since no step is to be doubted.
    Unquestioned,
    /// It went forward, was doubted, and has been taken back before it was believed.
    Withdrawn,
}

impl fmt::Display for ClockStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.by < 0 { '-' } else { '+' };
        let millis = self.by.unsigned_abs() / 1_000;
        write!(f, "{sign}{}.{:03} s", millis / 1_000, millis % 1_000)
    }
}

impl Trust {
    /// Believes what the wall clock shows now, and doubts steps forward for so many microseconds.
    pub fn new(wall: u64, boot: u64, doubt: u64) -> Trust {
        Trust { doubt, ahead: ahead(wall, boot), doubted: None }
    }

    /// The time to go by, and what is to be told of the wall clock.
    pub fn judge(&mut self, wall: u64, boot: u64) -> (u64, Option<ClockStep>) {
        let ahead = ahead(wall, boot);
        let by = ahead - self.ahead;
        if by <= SECOND {
            self.ahead = ahead;
            let told = match self.doubted.take() {
                Some(doubted) => Some(ClockStep { by: doubted.ahead - self.ahead, fate: StepFate::Withdrawn }),
                None => (by < -SECOND).then_some(ClockStep { by, fate: StepFate::Followed }),
            };
            return (wall, told);
        }
        let same = self.doubted.filter(|doubted| (ahead - doubted.ahead).abs() <= SECOND);
        let since = same.map_or(boot, |doubted| doubted.since);
        if boot.saturating_sub(since) >= self.doubt {
            (self.ahead, self.doubted) = (ahead, None);
            let fate = if same.is_some() { StepFate::Believed } else { StepFate::Unquestioned };
            return (wall, Some(ClockStep { by, fate }));
        }
        let told = same.is_none().then_some(ClockStep { by, fate: StepFate::Doubted });
        // From look to look it may be corrected as a clock in which nobody has doubts.
        self.doubted = Some(Doubted { ahead, since });
        (boot.saturating_add_signed(self.ahead), told)
    }

    /// The wall clock shows so much more than was thought, and has not stepped: it could only not be read better before.
    pub fn know_better(&mut self, by: u64) {
        // While a step is in doubt, that one is what was read.
        let ahead = self.doubted.as_mut().map_or(&mut self.ahead, |doubted| &mut doubted.ahead);
        *ahead = ahead.saturating_add_unsigned(by);
    }

    /// By how much the wall clock is ahead of the one from boot, if nothing is in doubt: as long as that stays so,
    /// there is nothing to judge.
    pub fn settled(&self) -> Option<i64> {
        self.doubted.is_none().then_some(self.ahead)
    }
}

fn ahead(wall: u64, boot: u64) -> i64 {
    i64::try_from(wall).unwrap_or(i64::MAX).saturating_sub_unsigned(boot)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000_000;
    const NOW: u64 = 1_800_000_000_000_000;
    const DOUBT: u64 = 30_000_000;

    /// What is told of a clock that shows so much more than is right, so many microseconds after the beginning.
    fn judge(trust: &mut Trust, error: i64, after: u64) -> (i64, Option<StepFate>) {
        let right = NOW + after;
        let (shown, told) = trust.judge(right.saturating_add_signed(error), 5_000 + after);
        (shown as i64 - right as i64, told.map(|step| step.fate))
    }

    #[test]
    fn a_step_forward_is_doubted_and_leaves_no_trace_if_it_is_taken_back() {
        let mut trust = Trust::new(NOW, 5_000, DOUBT);
        let hour = HOUR as i64;
        assert_eq!(judge(&mut trust, hour, 1), (0, Some(StepFate::Doubted)));
        assert_eq!(judge(&mut trust, hour, 1_500_000), (0, None));
        assert_eq!(judge(&mut trust, 0, 1_500_001), (0, Some(StepFate::Withdrawn)));
        assert_eq!(judge(&mut trust, 0, 1_500_002), (0, None));
    }

    #[test]
    fn a_step_forward_that_stays_is_believed_after_the_doubt() {
        let mut trust = Trust::new(NOW, 5_000, DOUBT);
        let hour = HOUR as i64;
        assert_eq!(judge(&mut trust, hour, 7), (0, Some(StepFate::Doubted)));
        assert_eq!(judge(&mut trust, hour + 900_000, DOUBT + 6), (0, None));
        assert_eq!(judge(&mut trust, hour, DOUBT + 7), (hour, Some(StepFate::Believed)));
        assert_eq!(judge(&mut trust, hour, DOUBT + 8), (hour, None));
        assert_eq!(judge(&mut trust, 0, DOUBT + 9), (0, Some(StepFate::Followed)), "and it is right again at once");
    }

    #[test]
    fn another_step_is_doubted_anew() {
        let mut trust = Trust::new(NOW, 5_000, DOUBT);
        let hour = HOUR as i64;
        assert_eq!(judge(&mut trust, hour, 0).1, Some(StepFate::Doubted));
        assert_eq!(judge(&mut trust, 2 * hour, DOUBT - 1).1, Some(StepFate::Doubted));
        assert_eq!(judge(&mut trust, 2 * hour, DOUBT).1, None);
        assert_eq!(judge(&mut trust, 2 * hour, 2 * DOUBT).1, Some(StepFate::Believed));
    }

    #[test]
    fn a_clock_that_is_corrected_little_by_little_is_followed() {
        let mut trust = Trust::new(NOW, 5_000, DOUBT);
        for step in 0..100 {
            assert_eq!(judge(&mut trust, 500_000 * step, step as u64), (500_000 * step, None));
        }
    }

    #[test]
    fn a_machine_that_slept_is_not_in_doubt() {
        let mut trust = Trust::new(NOW, 5_000, DOUBT);
        assert_eq!(trust.judge(NOW + 8 * HOUR, 5_000 + 8 * HOUR), (NOW + 8 * HOUR, None));
    }

    #[test]
    fn without_doubt_a_step_is_believed_at_once() {
        let mut trust = Trust::new(NOW, 5_000, 0);
        assert_eq!(judge(&mut trust, HOUR as i64, 1), (HOUR as i64, Some(StepFate::Unquestioned)));
        assert_eq!(judge(&mut trust, HOUR as i64, 2), (HOUR as i64, None), "it is told once");
        assert_eq!(judge(&mut trust, 0, 3), (0, Some(StepFate::Followed)));
    }

    #[test]
    fn a_step_says_its_size() {
        let step = |by| ClockStep { by, fate: StepFate::Followed }.to_string();
        assert_eq!(step(3_600_000_500), "+3600.000 s");
        assert_eq!(step(-1_500_000), "-1.500 s");
    }
}
