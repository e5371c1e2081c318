//! What topics and queues are told to do.

use serde::{Deserialize, Serialize};

use crate::answer::Refused;
use crate::name::Name;
use crate::pattern::Pattern;
use crate::pause::PauseNote;
use crate::task::NO_TTL;
use crate::time::{Millis, Timestamp};

/// The settings of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSettings {
    /// Who to tell when something is wrong with its tasks.
    pub owner: Option<String>,
    /// The queues it feeds; `None` means one queue of the topic's name.
    pub feeds: Option<Vec<Binding>>,
    /// How long finished tasks are kept; zero keeps none.
    pub history: Millis,
    /// Whether scheduling is refused.
    pub paused: bool,
    /// What is known of the pause, if it is paused.
    pub pause: Option<PauseNote>,
    /// How many tasks it takes in a second; what comes above is refused.
    pub rate: Option<Rate>,
    /// The priority of tasks that name none.
    pub priority: u32,
    /// The time to live of tasks that name none.
    pub ttl: Option<Millis>,
}

impl Default for TopicSettings {
    fn default() -> TopicSettings {
        TopicSettings {
            owner: None,
            feeds: None,
            history: Millis::from_hours(24),
            paused: false,
            pause: None,
            rate: None,
            priority: DEFAULT_PRIORITY,
            ttl: None,
        }
    }
}

/// In the middle, so that there is room for the more and for the less urgent.
pub const DEFAULT_PRIORITY: u32 = 1 << 16;

/// Deliveries whose priority is below this are counted as urgent. That changes nothing about their order.
pub const URGENT_PRIORITY: u32 = 1 << 10;

/// One queue that a topic feeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The queue.
    pub queue: Name,
    /// Which tasks go there.
    pub pattern: Pattern,
}

impl Binding {
    /// All of the topic's tasks go to this queue.
    pub fn all(queue: Name) -> Binding {
        Binding { queue, pattern: Pattern::All }
    }
}

/// The settings of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// How long a consumer may work on a delivery if neither it nor the task says.
    pub lease: Millis,
    /// How long a lease lasts at most, from when it is granted or extended, whoever asks for more. It bounds for how
    /// long a consumer that is gone keeps a delivery from all others.
    pub max_lease: Millis,
    /// What happens to deliveries that fail, unless their task says otherwise.
    pub retry: Retry,
    /// How many ready deliveries it holds.
    pub max_length: Option<u64>,
    /// What gives way when it holds more.
    pub overflow: Overflow,
    /// The topic to which dead letters go on; `None` keeps them here.
    pub dead_letter: Option<Name>,
    /// How long dead letters are kept; `None` keeps them until a person removes them.
    pub dead_retention: Option<Millis>,
    /// Until when nothing is handed out; [`Timestamp::NEVER`] means until it is resumed.
    pub paused_until: Option<Timestamp>,
    /// What is known of the pause, if it is paused or was until a time that has come.
    pub pause: Option<PauseNote>,
    /// How many deliveries it hands out in a second; what comes above waits.
    pub rate: Option<Rate>,
    /// Which of several deliveries of the same priority comes first.
    pub order: Order,
}

/// How long a lease lasts at most, unless a queue is told otherwise.
pub const DEFAULT_MAX_LEASE: Millis = Millis::from_hours(12);

impl QueueSettings {
    /// The longest lease unless one is set: half a day, or the usual lease if that is longer, so that settings from before
    /// there was a longest one cut nobody's.
    pub fn usual_max_lease(lease: Millis) -> Millis {
        lease.max(DEFAULT_MAX_LEASE)
    }

    /// Whether a pause until then can be meant at this time: one that is over would be none. It is asked of what
    /// somebody says now, not of what was said before, whose time may pass meanwhile.
    pub fn check_pause(until: Option<Timestamp>, field: &'static str, now: Timestamp) -> Result<(), Refused> {
        if until.is_some_and(|until| until <= now) {
            let why = "this time has already passed: give one in the future, or resume the queue".into();
            return Err(Refused::Invalid { field, why });
        }
        Ok(())
    }

    /// Whether they can be kept.
    pub fn check(&self) -> Result<(), Refused> {
        let bad = |why: String| Err(Refused::BadSettings(why));
        check_rate(self.rate)?;
        if self.lease == Millis::ZERO {
            return bad("a lease of 0 ms is over before work can begin: use a longer one".into());
        }
        if self.max_lease < self.lease {
            let (lease, max) = (self.lease, self.max_lease);
            return bad(format!("the lease of {lease} is longer than max_lease, which is {max}: set both"));
        }
        if self.max_length == Some(0) {
            let why =
                "a queue that holds nothing hands out nothing: use 1 or more, or leave it out for no limit".into();
            return Err(Refused::Invalid { field: "max_length", why });
        }
        self.retry.check().or_else(bad)
    }
}

impl TopicSettings {
    /// Whether they can be kept.
    pub fn check(&self) -> Result<(), Refused> {
        if self.ttl == Some(Millis::ZERO) {
            return Err(Refused::BadSettings(format!("`ttl`: {NO_TTL}")));
        }
        check_rate(self.rate)
    }
}

fn check_rate(rate: Option<Rate>) -> Result<(), Refused> {
    match rate {
        Some(Rate { per_second: 0, .. } | Rate { burst: 0, .. }) => {
            Err(Refused::BadSettings("a rate of 0 lets nothing through: pause it instead".into()))
        }
        _ => Ok(()),
    }
}

/// Which of several deliveries of the same priority comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// The one whose time came first; at equal times the one that was taken in first.
    #[default]
    Due,
    /// The one that was taken in first, whenever its time came.
    Arrival,
}

impl Default for QueueSettings {
    fn default() -> QueueSettings {
        QueueSettings {
            lease: Millis::from_secs(30),
            max_lease: DEFAULT_MAX_LEASE,
            retry: Retry::default(),
            max_length: None,
            overflow: Overflow::Refuse,
            dead_letter: None,
            dead_retention: None,
            paused_until: None,
            pause: None,
            rate: None,
            order: Order::Due,
        }
    }
}

/// What gives way when a queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Overflow {
    /// The newcomer: refused if it is due at once, a dead letter if it comes due later.
    Refuse,
    /// The oldest of the least urgent, as a dead letter.
    DropOldest,
}

/// What happens to a delivery whose lease ended without an acknowledgement, or that was released to be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// How many attempts may fail before it is a dead letter; zero means any number.
    pub attempts: u32,
    /// How long to wait before the next one.
    pub backoff: Backoff,
    /// By how much of itself, in percent, the wait may grow at random, so that what failed together does not return together.
    pub jitter_percent: u8,
}

impl Default for Retry {
    fn default() -> Retry {
        let backoff = Backoff::Exponential { first: Millis::from_secs(1), cap: Millis::from_hours(1) };
        Retry { attempts: 5, backoff, jitter_percent: 10 }
    }
}

/// The wait before the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Backoff {
    /// Always the same.
    Fixed(Millis),
    /// Twice as long after each failure.
    Exponential {
        /// After the first failure.
        first: Millis,
        /// At most so long.
        cap: Millis,
    },
}

impl Retry {
    /// Whether it can be meant; if not, why.
    pub fn check(&self) -> Result<(), String> {
        if self.jitter_percent > 100 {
            let percent = self.jitter_percent;
            return Err(format!("a jitter of {percent} percent is too large: use at most 100"));
        }
        match self.backoff {
            Backoff::Exponential { first, cap } if first > cap => Err(format!(
                "the first wait of {first} is longer than the longest one of {cap}: set both, to the same value for a wait that does not grow"
            )),
            _ => Ok(()),
        }
    }

    /// Whether so many failures are too many.
    pub fn is_exhausted(&self, failures: u32) -> bool {
        self.attempts != 0 && failures >= self.attempts
    }

    /// The wait after the given number of failures; `seed` decides the jitter.
    pub fn wait(&self, failures: u32, seed: u64) -> Millis {
        let base = match self.backoff {
            Backoff::Fixed(wait) => wait.0,
            Backoff::Exponential { first, cap } => {
                let doublings = failures.saturating_sub(1);
                let factor = 1u64.checked_shl(doublings).unwrap_or(u64::MAX);
                first.0.saturating_mul(factor).min(cap.0)
            }
        };
        let room = (u128::from(base) * u128::from(self.jitter_percent) / 100) as u64;
        let extra = if room == 0 { 0 } else { scramble(seed) % room.saturating_add(1) };
        Millis(base.saturating_add(extra))
    }
}

/// Spreads the bits of a number over all of its bits (the finisher of splitmix64).
pub(crate) fn scramble(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A limit on how often something may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// So often in a second, in the long run; at least once.
    pub per_second: u32,
    /// So often at once after a quiet time; at least once.
    pub burst: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_waits_double_up_to_the_cap() {
        let backoff = Backoff::Exponential { first: Millis(100), cap: Millis(500) };
        let retry = Retry { attempts: 0, backoff, jitter_percent: 0 };
        let waits: Vec<u64> = (1..=5).map(|failures| retry.wait(failures, 7).0).collect();
        assert_eq!(waits, [100, 200, 400, 500, 500]);
        assert_eq!(retry.wait(u32::MAX, 7), Millis(500));
    }

    #[test]
    fn jitter_only_lengthens_and_comes_from_the_seed() {
        let retry = Retry { attempts: 0, backoff: Backoff::Fixed(Millis(1_000)), jitter_percent: 20 };
        let waits: Vec<u64> = (0..100).map(|seed| retry.wait(1, seed).0).collect();
        assert!(waits.iter().all(|wait| (1_000..=1_200).contains(wait)));
        assert!(waits.iter().any(|wait| *wait != waits[0]));
        assert_eq!(retry.wait(1, 42), retry.wait(1, 42));
    }

    #[test]
    fn a_policy_that_cannot_be_meant_is_refused() {
        let backoff = |first, cap| Backoff::Exponential { first: Millis(first), cap: Millis(cap) };
        assert!(Retry { jitter_percent: 100, backoff: backoff(5, 5), ..Retry::default() }.check().is_ok());
        assert!(Retry { jitter_percent: 101, ..Retry::default() }.check().is_err());
        assert!(Retry { backoff: backoff(6, 5), ..Retry::default() }.check().is_err());
    }

    #[test]
    fn zero_attempts_are_never_exhausted() {
        assert!(!Retry { attempts: 0, ..Retry::default() }.is_exhausted(1_000_000));
        assert!(Retry { attempts: 1, ..Retry::default() }.is_exhausted(1));
    }
}
