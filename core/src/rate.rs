//! A token bucket without a clock (the generic cell rate algorithm).

use crate::settings::Rate;
use crate::time::{Millis, Timestamp};

/// Says how often something may happen. The state is one number: the instant at which the
/// bucket would be full again if nothing more happened.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate: Rate,
    full_at_nanos: u128,
}

impl TokenBucket {
    /// A full bucket.
    pub fn new(rate: Rate) -> TokenBucket {
        TokenBucket { rate, full_at_nanos: 0 }
    }

    /// A bucket that was empty at an instant.
    pub fn empty(rate: Rate, at: Timestamp) -> TokenBucket {
        let mut bucket = TokenBucket::new(rate);
        bucket.full_at_nanos = nanos(at) + bucket.capacity();
        bucket
    }

    /// The rate it keeps.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Takes a token, or says how long to wait for the next one.
    pub fn take(&mut self, now: Timestamp) -> Result<(), Millis> {
        let wait = self.wait(now);
        if wait > Millis::ZERO {
            return Err(wait);
        }
        self.full_at_nanos = self.full_at_nanos.max(nanos(now)) + self.interval();
        Ok(())
    }

    /// How long until a token is there.
    pub fn wait(&mut self, now: Timestamp) -> Millis {
        // An instant further ahead than it takes to fill the bucket was reckoned by a clock that has been set back since.
        self.full_at_nanos = self.full_at_nanos.min(nanos(now) + self.capacity());
        let ahead = (self.full_at_nanos + self.interval()).saturating_sub(nanos(now));
        let wait = ahead.saturating_sub(self.capacity()).div_ceil(1_000_000);
        Millis(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    /// How long it takes to fill the empty bucket.
    fn capacity(&self) -> u128 {
        self.interval() * u128::from(self.rate.burst.max(1))
    }

    fn interval(&self) -> u128 {
        1_000_000_000 / u128::from(self.rate.per_second.max(1))
    }
}

fn nanos(at: Timestamp) -> u128 {
    u128::from(at.as_millis()) * 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + millis)
    }

    #[test]
    fn a_burst_passes_at_once_and_then_the_rate_holds() {
        let mut bucket = TokenBucket::new(Rate { per_second: 10, burst: 3 });
        for _ in 0..3 {
            assert_eq!(bucket.take(at(0)), Ok(()));
        }
        assert_eq!(bucket.take(at(0)), Err(Millis(100)));
        assert_eq!(bucket.take(at(99)), Err(Millis(1)));
        assert_eq!(bucket.take(at(100)), Ok(()));
    }

    #[test]
    fn a_clock_that_was_ahead_for_a_while_holds_nothing_up() {
        let mut bucket = TokenBucket::new(Rate { per_second: 10, burst: 1 });
        assert_eq!(bucket.take(at(3_600_000)), Ok(()));
        assert_eq!(bucket.wait(at(0)), Millis(100));
        assert_eq!(bucket.take(at(40)), Err(Millis(60)));
        assert_eq!(bucket.take(at(100)), Ok(()));
    }

    #[test]
    fn over_a_long_time_the_rate_is_exact() {
        let mut bucket = TokenBucket::new(Rate { per_second: 333, burst: 1 });
        let taken = (0..10_000).filter(|millis| bucket.take(at(*millis)).is_ok()).count();
        // One millisecond is the clock's step; the long-run rate must not suffer from it by more than a step.
        assert!((2_500..=3_331).contains(&taken), "{taken}");
    }
}
