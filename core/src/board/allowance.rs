//! A queue's rate on a board of one node of several: the tokens come from the bucket of the queue's home shard, wherever
//! that is, so that all nodes together keep the rate.
//!
//! Tokens are drawn when somebody could be served and there are none: one at first, twice as many whenever all were
//! granted. Those that are not used soon are void, so that a node does not sit on what others could use.

use super::Board;
use crate::answer::Drawn;
use crate::name::Name;
use crate::rate::TokenBucket;
use crate::settings::Rate;
use crate::store::ShardId;
use crate::time::{Millis, Timestamp};

/// For how long tokens count.
const GOOD_FOR: Millis = Millis(100);

/// How long the answer to a draw is waited for before it is drawn again.
const ANSWER: Millis = Millis(1_000);

/// How long there may be no token: the slowest rate is one a second.
const LONGEST_WAIT: Millis = Millis(1_000);

/// How many are drawn at once, at most.
const MOST: u32 = 1_024;

/// What lets deliveries of a queue out.
#[derive(Clone, Debug)]
pub(super) enum Valve {
    /// A bucket of this node, which is the only one.
    Bucket(TokenBucket),
    /// Tokens that were drawn elsewhere.
    Allowance(Allowance),
}

/// Tokens that were drawn, and when to draw more.
#[derive(Clone, Debug)]
pub(super) struct Allowance {
    rate: Rate,
    tokens: u32,
    /// Until when those count.
    until: Timestamp,
    /// How many to draw next time.
    next: u32,
    /// Before this there are none.
    none_before: Timestamp,
    /// Until then the answer to a draw is waited for.
    answer_by: Timestamp,
}

impl Valve {
    pub fn new(rate: Rate, is_only: bool) -> Valve {
        if is_only { Valve::Bucket(TokenBucket::new(rate)) } else { Valve::Allowance(Allowance::new(rate)) }
    }

    pub fn rate(&self) -> Rate {
        match self {
            Valve::Bucket(bucket) => bucket.rate(),
            Valve::Allowance(allowance) => allowance.rate,
        }
    }

    /// How long nothing is let out from now on.
    pub fn wait(&mut self, now: Timestamp) -> Millis {
        match self {
            Valve::Bucket(bucket) => bucket.wait(now),
            Valve::Allowance(allowance) => allowance.wait(now),
        }
    }

    /// Lets one out, or says how long to wait.
    pub fn take(&mut self, now: Timestamp) -> Result<(), Millis> {
        match self {
            Valve::Bucket(bucket) => bucket.take(now),
            Valve::Allowance(allowance) => allowance.take(now),
        }
    }
}

impl Allowance {
    fn new(rate: Rate) -> Allowance {
        let past = Timestamp::ZERO;
        Allowance { rate, tokens: 0, until: past, next: 1, none_before: past, answer_by: past }
    }

    /// Instants further ahead than they can be were reckoned by a clock that has been set back since.
    fn follow(&mut self, now: Timestamp) {
        self.until = self.until.min(now.plus(GOOD_FOR));
        self.none_before = self.none_before.min(now.plus(LONGEST_WAIT));
        self.answer_by = self.answer_by.min(now.plus(ANSWER));
    }

    fn wait(&mut self, now: Timestamp) -> Millis {
        self.follow(now);
        if self.tokens > 0 && now >= self.until {
            (self.tokens, self.next) = (0, 1);
        }
        match self.tokens {
            0 if now < self.none_before => self.none_before.since(now),
            0 => ANSWER,
            _ => Millis::ZERO,
        }
    }

    fn take(&mut self, now: Timestamp) -> Result<(), Millis> {
        match self.wait(now) {
            Millis::ZERO => {
                self.tokens -= 1;
                Ok(())
            }
            wait => Err(wait),
        }
    }

    /// How many to draw, if it is time to.
    fn draw(&mut self, now: Timestamp) -> Option<u32> {
        self.follow(now);
        let is_due = self.tokens == 0 && now >= self.none_before.max(self.answer_by);
        if is_due {
            self.answer_by = now.plus(ANSWER);
        }
        is_due.then_some(self.next)
    }

    fn granted(&mut self, drawn: Drawn, now: Timestamp) {
        self.answer_by = Timestamp::ZERO;
        self.next = if drawn.tokens >= self.next { self.next.saturating_mul(2).min(MOST) } else { drawn.tokens.max(1) };
        self.tokens += drawn.tokens;
        self.until = now.plus(GOOD_FOR);
        self.none_before = now.plus(drawn.wait);
    }
}

impl<R> Board<R> {
    /// From now on rates are those of several nodes: tokens are [drawn](Board::draws) for those that are set after this.
    pub fn share_rates(&mut self) {
        self.shares_rates = true;
    }

    /// The queues for which tokens are to be drawn now, and how many.
    pub fn draws(&mut self, now: Timestamp) -> Vec<(Name, u32)> {
        let dry = std::mem::take(&mut self.dry);
        let draw = |queue: Name| match self.by_queue.get_mut(&queue)?.valve.as_mut()? {
            Valve::Allowance(allowance) => allowance.draw(now).map(|tokens| (queue, tokens)),
            Valve::Bucket(_) => None,
        };
        dry.into_iter().filter_map(draw).collect()
    }

    /// What came of a draw for a queue; says which shards may have something to hand out now.
    pub fn granted(&mut self, queue: &str, drawn: Drawn, now: Timestamp) -> Vec<ShardId> {
        let Some(known) = self.by_queue.get_mut(queue) else { return Vec::new() };
        let Some(Valve::Allowance(allowance)) = &mut known.valve else { return Vec::new() };
        allowance.granted(drawn, now);
        known.stocked.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + millis)
    }

    fn drawn(tokens: u32, wait: u64) -> Drawn {
        Drawn { tokens, wait: Millis(wait) }
    }

    #[test]
    fn tokens_are_drawn_when_there_are_none_and_twice_as_many_when_all_were_granted() {
        let mut allowance = Allowance::new(Rate { per_second: 100, burst: 10 });
        assert!(allowance.take(at(0)).is_err());
        assert_eq!(allowance.draw(at(0)), Some(1));
        assert_eq!(allowance.draw(at(0)), None, "one draw is under way");
        allowance.granted(drawn(1, 0), at(1));
        assert_eq!((allowance.take(at(1)), allowance.draw(at(1))), (Ok(()), Some(2)));
        allowance.granted(drawn(1, 10), at(2));
        assert_eq!(allowance.take(at(2)), Ok(()));
        assert_eq!((allowance.take(at(2)), allowance.draw(at(2))), (Err(Millis(10)), None), "there are none for now");
        assert_eq!(allowance.draw(at(12)), Some(1));
    }

    #[test]
    fn a_clock_that_is_set_back_holds_nothing_up() {
        let mut allowance = Allowance::new(Rate { per_second: 100, burst: 10 });
        allowance.granted(drawn(0, 10), at(900_000));
        assert_eq!((allowance.take(at(0)), allowance.draw(at(0))), (Err(Millis(1_000)), None));
        assert_eq!(allowance.draw(at(1_000)), Some(1));
        allowance.granted(drawn(5, 0), at(900_000));
        assert_eq!(allowance.take(at(2_000)), Ok(()));
        assert!(allowance.take(at(2_100)).is_err(), "what was drawn counts no longer than else");
    }

    #[test]
    fn tokens_that_are_not_used_are_void_after_a_while() {
        let mut allowance = Allowance::new(Rate { per_second: 100, burst: 10 });
        allowance.granted(drawn(5, 0), at(0));
        assert_eq!(allowance.take(at(99)), Ok(()));
        assert!(allowance.take(at(100)).is_err());
        assert_eq!(allowance.draw(at(100)), Some(1), "and it begins with one again");
    }
}
