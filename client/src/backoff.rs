//! How long to wait before trying again: longer each time, and never all at the same moment.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// Waits that double up to the longest, each between half of itself and the whole by chance.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    first: Duration,
    longest: Duration,
    taken: u32,
}

impl Waits {
    pub fn new(first: Duration, longest: Duration) -> Waits {
        Waits { first, longest, taken: 0 }
    }

    /// The next wait, at least as long as the server asks for.
    pub fn next(&mut self, asked: Option<Duration>) -> Duration {
        let wait = self.roll(random());
        match asked {
            // Whoever was refused at the same moment is asked to wait equally long, so the chance comes on top.
            Some(asked) => asked.saturating_add(wait / 4).max(wait),
            None => wait,
        }
    }

    /// From now on it starts with the first wait again.
    pub fn reset(&mut self) {
        self.taken = 0;
    }

    fn roll(&mut self, chance: u64) -> Duration {
        let whole = self.first.saturating_mul(1 << self.taken.min(20)).min(self.longest);
        self.taken = self.taken.saturating_add(1);
        let half = whole / 2;
        half + half.mul_f64(chance as f64 / u64::MAX as f64)
    }
}

/// A number by chance. The standard library draws keys for its hash maps; that is chance enough to spread waits.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_secs(5);

    #[test]
    fn waits_double_up_to_the_longest() {
        let mut waits = Waits::new(FIRST, LONGEST);
        let millis: Vec<u128> = (0..9).map(|_| waits.roll(u64::MAX).as_millis()).collect();
        assert_eq!(millis, [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        for _ in 0..100 {
            assert!(waits.roll(u64::MAX) <= LONGEST);
        }
        waits.reset();
        assert_eq!(waits.roll(u64::MAX), FIRST);
    }

    #[test]
    fn chance_takes_at_most_half() {
        let mut waits = Waits::new(FIRST, LONGEST);
        assert_eq!(waits.roll(0), FIRST / 2);
        let seen: std::collections::BTreeSet<Duration> = (0..20).map(|_| Waits::new(FIRST, FIRST).next(None)).collect();
        assert!(seen.iter().all(|wait| (FIRST / 2..=FIRST).contains(wait)), "{seen:?}");
        assert!(seen.len() > 10, "{seen:?}");
    }

    #[test]
    fn the_server_is_not_asked_before_it_wants_to_be() {
        let asked = Duration::from_secs(2);
        for _ in 0..20 {
            let wait = Waits::new(FIRST, LONGEST).next(Some(asked));
            assert!(wait >= asked && wait < asked + FIRST, "{wait:?}");
        }
    }
}
