//! How long to wait before the next attempt.

use std::time::{Duration, Instant};

/// The pauses between the attempts at one call: short at first, then each twice as long as the one before.
#[derive(Clone, Copy, Debug)]
pub struct Pauses(Duration);

impl Pauses {
    /// No pause is longer.
    pub const LONGEST: Duration = Duration::from_millis(250);

    /// The next pause; none if the call would be over by then.
    pub fn next(&mut self, deadline: Instant) -> Option<Duration> {
        let pause = self.0;
        self.0 = (pause * 2).min(Pauses::LONGEST);
        (Instant::now() + pause < deadline).then_some(pause)
    }
}

impl Default for Pauses {
    fn default() -> Pauses {
        Pauses(Duration::from_millis(5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end_with_the_time() {
        let (mut pauses, later) = (Pauses::default(), Instant::now() + Duration::from_secs(60));
        let all: Vec<_> = (0..8).filter_map(|_| pauses.next(later)).map(|pause| pause.as_millis()).collect();
        assert_eq!(all, [5, 10, 20, 40, 80, 160, 250, 250]);
        assert_eq!(pauses.next(Instant::now()), None);
    }
}
