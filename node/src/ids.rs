//! Ids for tasks that come without: unique, not to be foretold, and sorted by the time they were made at.

use punctual_core::{Name, Timestamp};
use ulid::{ULID_LEN, Ulid};

use crate::sync::{Mutex, lock};

/// By how many of its random bits an id of one millisecond is beyond the one before, by chance: few enough that there
/// is room for thousands of millions of them, and so many that nobody who knows one finds the next.
const STRIDE_BITS: u32 = 47;

/// Makes ids, each later than the one before unless the clock has gone back.
pub(crate) struct Ids {
    last: Mutex<Ulid>,
}

impl Ids {
    pub fn new() -> Ids {
        Ids { last: Mutex::new(Ulid::nil()) }
    }

    /// The next id.
    pub fn next(&self, now: Timestamp) -> Name {
        let chance = Ulid::generate().random();
        let fresh = Ulid::from_parts(now.as_millis(), chance);
        let mut last = lock(&self.last);
        let id =
            if last.timestamp_ms() == fresh.timestamp_ms() { beyond(*last, chance).unwrap_or(fresh) } else { fresh };
        *last = id;
        drop(last);
        let mut text = [0; ULID_LEN];
        Name::new(id.array_to_str(&mut text)).expect("letters and digits are a name")
    }
}

/// An id of the same millisecond beyond another, unless there is none left.
fn beyond(last: Ulid, chance: u128) -> Option<Ulid> {
    let random = last.random() + 1 + (chance & ((1 << STRIDE_BITS) - 1));
    (random >> Ulid::RAND_BITS == 0).then(|| Ulid::from_parts(last.timestamp_ms(), random))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const NOW: u64 = 1_700_000_000_000;

    fn random(id: &Name) -> u128 {
        Ulid::from_string(id).unwrap().random()
    }

    #[test]
    fn ids_rise_within_a_millisecond_and_from_one_to_the_next() {
        let ids = Ids::new();
        let made: Vec<Name> = (0..1_000).map(|n| ids.next(Timestamp::from_millis(NOW + n / 100))).collect();
        assert!(made.is_sorted_by(|earlier, later| earlier < later), "{made:?}");
        assert_eq!(made[0].len(), 26);
    }

    #[test]
    fn an_id_does_not_tell_the_next_one() {
        let ids = Ids::new();
        for clock in [|_| NOW, |n| NOW - n] {
            let made: Vec<u128> = (0..100).map(|n| random(&ids.next(Timestamp::from_millis(clock(n))))).collect();
            let steps: BTreeSet<u128> = made.windows(2).map(|two| two[1].wrapping_sub(two[0])).collect();
            assert_eq!(steps.len(), 99, "each is another step away");
            assert!(steps.iter().all(|step| *step > 1 << 20), "and none is near: {steps:?}");
        }
    }

    #[test]
    fn a_clock_that_was_ahead_for_a_while_leaves_no_trace() {
        let ids = Ids::new();
        ids.next(Timestamp::from_millis(NOW + 3_600_000));
        let id = ids.next(Timestamp::from_millis(NOW));
        assert_eq!(Ulid::from_string(&id).unwrap().timestamp_ms(), NOW);
    }

    #[test]
    fn when_a_millisecond_is_full_it_begins_anew() {
        let last = Ulid::from_parts(NOW, (1 << Ulid::RAND_BITS) - 5);
        assert_eq!(beyond(last, 5), None);
    }
}
