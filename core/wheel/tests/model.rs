//! The wheel beside a sorted map that is too simple to be wrong: after any calls, both say the same.

use std::collections::BTreeMap;

use proptest::prelude::*;
use punctual_wheel::{Handle, Wheel};

#[derive(Clone, Debug)]
enum Call {
    Insert(u64),
    /// Many timers at once, downward or upward: enough of them move the cursor back.
    Flood {
        from: u64,
        step: i64,
        count: usize,
    },
    /// Of all handles ever given out, stale ones among them.
    Cancel(prop::sample::Index),
    Move(prop::sample::Index, u64),
    Drain {
        now: u64,
        at_most: usize,
    },
    DrainNext {
        at_most: usize,
    },
    LookAhead,
    Clear,
}

/// Times that meet one another, borders between levels, and the ends of the range.
fn time() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 1_000u64..1_040,
        4 => 0u64..2_000,
        4 => 0u64..200_000,
        2 => 65_530u64..65_545,
        2 => 0u64..10_000_000_000,
        1 => any::<u64>(),
        1 => (0u64..3).prop_map(|back| u64::MAX - back),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        20 => time().prop_map(Call::Insert),
        2 => (time(), -3_000i64..3_000, 50usize..300).prop_map(|(from, step, count)| Call::Flood { from, step, count }),
        8 => any::<prop::sample::Index>().prop_map(Call::Cancel),
        8 => (any::<prop::sample::Index>(), time()).prop_map(|(which, at)| Call::Move(which, at)),
        3 => (time(), 0usize..40).prop_map(|(now, at_most)| Call::Drain { now, at_most }),
        4 => (0usize..60).prop_map(|at_most| Call::DrainNext { at_most }),
        4 => Just(Call::LookAhead),
        1 => (0u8..8).prop_map(|dice| if dice == 0 { Call::Clear } else { Call::LookAhead }),
    ]
}

/// Both sides. A timer's value is its number, and so is the model's name for it.
struct Pair {
    wheel: Wheel<usize>,
    model: BTreeMap<(u64, u64), usize>,
    /// By number: the handle, and where the model keeps the timer if it is still waiting.
    timers: Vec<(Handle, Option<(u64, u64)>)>,
    inserted: u64,
}

impl Pair {
    fn insert(&mut self, at: u64) {
        let number = self.timers.len();
        let handle = self.wheel.insert(at, number);
        let key = self.model_insert(at, number);
        self.timers.push((handle, Some(key)));
    }

    fn model_insert(&mut self, at: u64, number: usize) -> (u64, u64) {
        self.inserted += 1;
        self.model.insert((at, self.inserted), number);
        (at, self.inserted)
    }

    fn cancel(&mut self, number: usize) {
        let (handle, key) = self.timers[number];
        assert_eq!(self.wheel.get(handle).map(|(at, value)| (at, *value)), key.map(|(at, _)| (at, number)));
        assert_eq!(self.wheel.cancel(handle), key.map(|_| number));
        self.forget(number);
    }

    fn reschedule(&mut self, number: usize, at: u64) {
        let (handle, key) = self.timers[number];
        assert_eq!(self.wheel.reschedule(handle, at), key.is_some());
        if key.is_some() {
            self.forget(number);
            self.timers[number].1 = Some(self.model_insert(at, number));
        }
    }

    fn drain(&mut self, now: u64, at_most: usize) {
        for _ in 0..at_most {
            let expected = self.model.first_key_value().map(|((at, _), number)| (*at, *number));
            let expected = expected.filter(|(at, _)| *at <= now);
            assert_eq!(self.wheel.pop(now), expected);
            let Some((_, number)) = expected else { return };
            self.forget(number);
        }
    }

    fn forget(&mut self, number: usize) {
        if let Some(key) = self.timers[number].1.take() {
            self.model.remove(&key);
        }
    }

    fn next_at(&self) -> Option<u64> {
        self.model.first_key_value().map(|((at, _), _)| *at)
    }

    fn make(&mut self, call: Call) {
        match call {
            Call::Insert(at) => self.insert(at),
            Call::Flood { from, step, count } => {
                for number in 0..count as i64 {
                    self.insert(from.saturating_add_signed(step * number));
                }
            }
            Call::Cancel(which) if !self.timers.is_empty() => self.cancel(which.index(self.timers.len())),
            Call::Move(which, at) if !self.timers.is_empty() => self.reschedule(which.index(self.timers.len()), at),
            Call::Cancel(_) | Call::Move(..) => {}
            Call::Drain { now, at_most } => self.drain(now, at_most),
            Call::DrainNext { at_most } => self.drain(self.next_at().unwrap_or(0).saturating_add(2_000), at_most),
            Call::LookAhead => assert_eq!(self.wheel.next_at(), self.next_at()),
            Call::Clear => {
                self.wheel.clear();
                self.model.clear();
                self.timers.iter_mut().for_each(|(_, key)| *key = None);
            }
        }
        assert_eq!(self.wheel.len(), self.model.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    #[test]
    fn the_wheel_does_what_a_sorted_map_does(
        start in time(),
        calls in prop::collection::vec(call(), 1..150),
    ) {
        let mut pair = Pair { wheel: Wheel::new(start), model: BTreeMap::new(), timers: Vec::new(), inserted: 0 };
        for call in calls {
            pair.make(call);
        }
        pair.drain(u64::MAX, usize::MAX);
        prop_assert!(pair.wheel.is_empty());
    }
}
