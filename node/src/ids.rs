//! Ids for tasks that come without: unique, and sorted by the time they were made at.

use std::sync::Mutex;
use std::time::{Duration, UNIX_EPOCH};

use punctual_core::{Name, Timestamp};
use ulid::{Generator, ULID_LEN};

use crate::lock::lock;

/// Makes ids, each later than the one before.
pub(crate) struct Ids {
    generator: Mutex<Generator>,
}

impl Ids {
    pub fn new() -> Ids {
        Ids { generator: Mutex::new(Generator::new()) }
    }

    /// The next id.
    pub fn next(&self, now: Timestamp) -> Name {
        let at = UNIX_EPOCH + Duration::from_millis(now.as_millis());
        let id = match lock(&self.generator).generate_from_datetime(at) {
            Ok(id) => id,
            Err(overflow) => overflow.commit_overflow_random(),
        };
        let mut text = [0; ULID_LEN];
        Name::new(id.array_to_str(&mut text)).expect("letters and digits are a name")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_rise_even_if_the_clock_goes_back() {
        let ids = Ids::new();
        let made: Vec<Name> = (0..100).map(|n| ids.next(Timestamp::from_millis(1_700_000_000_000 - n))).collect();
        assert!(made.is_sorted_by(|earlier, later| earlier < later), "{made:?}");
        assert_eq!(made[0].len(), 26);
    }
}
