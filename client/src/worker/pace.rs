//! How much to fetch ahead: as much as will be begun within a moment, so that nothing waits here for long while
//! another worker has time for it.

use std::time::Duration;

/// So long may what was fetched ahead wait here, by expectation.
const AHEAD: Duration = Duration::from_millis(100);

/// How long the handlers take, lately.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    mean: Option<Duration>,
}

impl Pace {
    /// A handler took so long.
    pub fn note(&mut self, took: Duration) {
        self.mean = Some(match self.mean {
            Some(mean) => (mean * 7 + took) / 8,
            None => took,
        });
    }

    /// How many to fetch ahead of so many places, at most this many. As long as nothing is known, none.
    pub fn ahead(&self, places: usize, at_most: usize) -> usize {
        let Some(mean) = self.mean else { return 0 };
        let begun = AHEAD.as_micros() * places as u128 / mean.as_micros().max(1);
        usize::try_from(begun).unwrap_or(usize::MAX).min(at_most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_work_is_fetched_ahead_and_slow_work_is_not() {
        let mut pace = Pace::default();
        assert_eq!(pace.ahead(10, 10), 0);
        pace.note(Duration::from_micros(200));
        assert_eq!(pace.ahead(10, 10), 10);
        for _ in 0..100 {
            pace.note(Duration::from_secs(2));
        }
        assert_eq!(pace.ahead(10, 10), 0);
        for _ in 0..100 {
            pace.note(Duration::from_millis(200));
        }
        assert_eq!(pace.ahead(10, 10), 4);
    }
}
