//! The store's time, as a node can know it: from what the store showed with each beat, and a clock that nobody sets.
//!
//! ```text
//!            asked_at          answered_at        now
//!  steady ──────┼───────────────────┼──────────────┼──►
//!  store        └── it showed this ─┘
//! ```
//! When the answer was there, the store's clock showed at least what the answer says, and at most so much more as the answer
//! took. The time to go by is the lower of the two bounds, so it is never ahead of the store's clock. Lengths of time
//! begin at the upper one, so none of them is over too soon.

use punctual_core::{ClockStep, Trust};

/// By what part the two clocks may drift apart: half a millisecond a second.
const DRIFT: u64 = 2_000;

/// Keeps the bounds of the store's time. All times are in microseconds.
#[derive(Clone, Debug)]
pub struct StoreTime {
    floor: Bound,
    roof: Bound,
    trust: Trust,
}

/// What the store's clock showed at least, or at most, at an instant of the steady clock.
#[derive(Clone, Copy, Debug)]
struct Bound {
    micros: u64,
    at: u64,
}

/// What to go by until the next beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The time at an instant of the steady clock.
    micros: u64,
    at: u64,
    /// By how much the store's clock may be ahead of that.
    width: u64,
}

impl Anchor {
    /// The time: never ahead of the store's.
    pub fn micros(&self, steady: u64) -> u64 {
        let passed = steady.saturating_sub(self.at);
        self.micros + passed - passed.div_ceil(DRIFT)
    }

    /// What the store's clock shows at most.
    pub fn most(&self, steady: u64) -> u64 {
        let passed = steady.saturating_sub(self.at);
        self.micros + self.width + at_most(passed)
    }
}

/// How long it was at most by the store's clock.
fn at_most(passed: u64) -> u64 {
    passed + passed.div_ceil(DRIFT)
}

impl StoreTime {
    /// From the first beat: what the store showed, and when it was asked and had answered by the steady clock. Steps
    /// forward are doubted for so long.
    pub fn new(micros: u64, asked_at: u64, answered_at: u64, doubt: u64) -> StoreTime {
        let took = at_most(answered_at.saturating_sub(asked_at));
        StoreTime {
            floor: Bound { micros, at: answered_at },
            roof: Bound { micros: micros + took, at: answered_at },
            trust: Trust::new(micros, answered_at, doubt),
        }
    }

    /// Another beat. Says what is to be told if the store's clock has stepped.
    pub fn hear(&mut self, micros: u64, asked_at: u64, answered_at: u64) -> Option<ClockStep> {
        // Of two beats at once the first may be heard last: then it has taken so much longer.
        let answered_at = answered_at.max(self.floor.at);
        let took = at_most(answered_at.saturating_sub(asked_at));
        let (least, most) = (self.floor.least(answered_at), self.roof.most(answered_at));
        // The best of all beats counts, unless it cannot be true any more because the store's clock was set.
        let floor = if least > micros + took { micros } else { least.max(micros) };
        let roof = if most < micros { micros + took } else { most.min(micros + took) };
        self.floor = Bound { micros: floor, at: answered_at };
        self.roof = Bound { micros: roof.max(floor), at: answered_at };
        // What lies within the bounds only tells the time better than it was known, and is no step to be doubted.
        if micros <= most {
            self.trust.know_better(floor.saturating_sub(least));
        }
        self.trust.judge(floor, answered_at).1
    }

    /// What to go by until the next beat.
    pub fn anchor(&mut self) -> Anchor {
        let at = self.floor.at;
        let (micros, _) = self.trust.judge(self.floor.micros, at);
        Anchor { micros, at, width: self.roof.micros - self.floor.micros }
    }
}

impl Bound {
    fn least(&self, steady: u64) -> u64 {
        Anchor { micros: self.micros, at: self.at, width: 0 }.micros(steady)
    }

    fn most(&self, steady: u64) -> u64 {
        Anchor { micros: self.micros, at: self.at, width: 0 }.most(steady)
    }
}

#[cfg(test)]
mod tests {
    use punctual_chance::Chance;
    use punctual_core::StepFate;

    use super::*;

    const DOUBT: u64 = 30_000_000;
    const NOW: u64 = 1_800_000_000_000_000;

    #[test]
    fn the_time_is_never_ahead_of_the_stores_and_lengths_begin_never_before_it() {
        for seed in 0..200 {
            let mut chance = Chance::new(seed);
            // The store's clock runs a little faster or slower than this machine's.
            let rate = chance.below(900) as i64 - 450;
            let store = |steady: u64| NOW + steady.saturating_add_signed(steady as i64 * rate / 1_000_000);
            let mut steady = 5;
            let mut time: Option<StoreTime> = None;
            for _ in 0..300 {
                let asked_at = steady;
                let there = asked_at + chance.magnitude(1, 400_000);
                let answered_at = there + chance.magnitude(1, 400_000);
                match &mut time {
                    None => time = Some(StoreTime::new(store(there), asked_at, answered_at, DOUBT)),
                    Some(time) => assert_eq!(time.hear(store(there), asked_at, answered_at), None),
                }
                let anchor = time.as_mut().unwrap().anchor();
                for later in [0, 1, 999, 500_000, 3_000_000] {
                    let (at, truth) = (answered_at + later, store(answered_at + later));
                    assert!(anchor.micros(at) <= truth + 1, "seed {seed}: {} µs ahead", anchor.micros(at) - truth);
                    assert!(anchor.most(at) + 1 >= truth, "seed {seed}: {} µs behind", truth - anchor.most(at));
                }
                steady = answered_at + chance.magnitude(1_000, 1_000_000);
            }
        }
    }

    #[test]
    fn a_slow_answer_does_not_make_the_time_worse() {
        let mut time = StoreTime::new(NOW, 0, 300, DOUBT);
        assert_eq!(time.hear(NOW + 600_000, 500_000, 900_000), None);
        let anchor = time.anchor();
        assert!(anchor.micros(900_000) >= NOW + 899_000, "a quick one has told better");
        assert!(anchor.most(900_000) - anchor.micros(900_000) < 1_500);
    }

    #[test]
    fn a_first_answer_that_took_long_is_no_reason_to_doubt_the_next() {
        let mut time = StoreTime::new(NOW, 0, 8_000_000, DOUBT);
        assert_eq!(time.hear(NOW + 8_500_000, 8_500_000, 8_500_300), None);
        let anchor = time.anchor();
        assert_eq!(anchor.micros(8_500_300), NOW + 8_500_000);
        assert!(anchor.most(8_500_300) >= NOW + 8_500_300, "lengths of time begin never before the store's time");
    }

    #[test]
    fn a_step_that_was_heard_of_slowly_is_doubted_once() {
        let mut time = StoreTime::new(NOW, 0, 300, DOUBT);
        let hour = 3_600_000_000;
        let told = time.hear(NOW + hour + 1_000_000, 1_000_000, 6_000_000).map(|step| step.fate);
        assert_eq!(told, Some(StepFate::Doubted));
        // This one tells better how far it stepped, and not that it did again.
        assert_eq!(time.hear(NOW + hour + 7_000_000, 7_000_000, 7_000_300), None);
        assert!(time.anchor().micros(7_000_300) <= NOW + 7_000_300, "what was believed before is known no better");
        let told = time.hear(NOW + hour + 37_000_000, 37_000_000, 37_000_300).map(|step| step.fate);
        assert_eq!(told, Some(StepFate::Believed));
        assert_eq!(time.anchor().micros(37_000_300), NOW + hour + 37_000_000);
    }

    #[test]
    fn an_answer_that_is_heard_late_does_not_put_the_clock_forward() {
        let mut time = StoreTime::new(NOW, 0, 300, DOUBT);
        assert_eq!(time.hear(NOW + 8_100, 8_000, 9_300), None);
        assert_eq!(time.hear(NOW + 4_900, 900, 5_000), None);
        let anchor = time.anchor();
        assert!(anchor.micros(9_300) <= NOW + 9_300, "{}", anchor.micros(9_300) - NOW);
        assert!(anchor.most(9_300) >= NOW + 9_300);
    }

    #[test]
    fn a_store_whose_clock_goes_back_is_followed_at_once() {
        let mut time = StoreTime::new(NOW, 0, 300, DOUBT);
        let step = time.hear(NOW - 60_000_000, 500_000, 500_300).unwrap();
        assert_eq!(step.fate, StepFate::Followed);
        assert_eq!(time.anchor().micros(500_300), NOW - 60_000_000);
    }

    #[test]
    fn a_store_whose_clock_jumps_forward_is_doubted_for_a_while() {
        let mut time = StoreTime::new(NOW, 0, 300, DOUBT);
        let hour = 3_600_000_000;
        let mut hear = |seconds: u64| {
            let at = seconds * 1_000_000;
            let fate = time.hear(NOW + hour + at, at, at + 300).map(|step| step.fate);
            (fate, time.anchor().micros(at + 300) > NOW + hour)
        };
        assert_eq!(hear(1), (Some(StepFate::Doubted), false));
        assert_eq!(hear(15), (None, false));
        assert_eq!(hear(31), (Some(StepFate::Believed), true));
        assert_eq!(hear(32), (None, true));
    }
}
