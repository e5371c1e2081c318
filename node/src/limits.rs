//! How many tasks a topic takes in a second.
//!
//! The buckets count by the machine's monotonic clock: a step of the wall clock must not close an entrance.

use std::collections::{BTreeSet, HashMap};
use std::sync::PoisonError;

use foldhash::fast::FixedState;
use punctual_core::store::ShardId;
use punctual_core::{Name, Rate, Refused, Timestamp, TokenBucket};

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Instant, Mutex, RwLock, lock};

pub(crate) struct Entrances {
    /// Most nodes limit no topic; then nobody has to ask for the lock.
    any: AtomicBool,
    limited: RwLock<HashMap<Name, Entrance, FixedState>>,
    started_at: Instant,
}

/// The entrance of a topic that has a rate, until the last of the shards here that have given it one takes it away.
struct Entrance {
    bucket: Mutex<TokenBucket>,
    limited_by: BTreeSet<ShardId>,
}

impl Entrances {
    pub fn new() -> Entrances {
        Entrances { any: AtomicBool::new(false), limited: RwLock::default(), started_at: Instant::now() }
    }

    /// Lets one task in, or says how long to wait.
    pub fn admit(&self, topic: &Name) -> Result<(), Refused> {
        if !self.any.load(Ordering::Acquire) {
            return Ok(());
        }
        let limited = self.limited.read().unwrap_or_else(PoisonError::into_inner);
        let Some(entrance) = limited.get(topic) else { return Ok(()) };
        let taken = lock(&entrance.bucket).take(self.now());
        taken.map_err(|retry_after| Refused::RateLimited { topic: topic.clone(), retry_after })
    }

    /// Whether a topic has a rate.
    pub fn is_limited(&self, topic: &Name) -> bool {
        self.any.load(Ordering::Acquire)
            && self.limited.read().unwrap_or_else(PoisonError::into_inner).contains_key(topic)
    }

    /// A shard gives a topic a rate, or has none for it. What others have given stays, and the same rate again changes
    /// nothing.
    pub fn limit(&self, shard: ShardId, topic: &Name, rate: Option<Rate>) {
        if rate.is_none() && !self.any.load(Ordering::Acquire) {
            return;
        }
        let mut limited = self.limited.write().unwrap_or_else(PoisonError::into_inner);
        let full = |rate: Rate| Mutex::new(TokenBucket::new(rate));
        match (rate, limited.get_mut(topic)) {
            (Some(rate), Some(entrance)) => {
                entrance.limited_by.insert(shard);
                if lock(&entrance.bucket).rate() != rate {
                    entrance.bucket = full(rate);
                }
            }
            (Some(rate), None) => {
                let entrance = Entrance { bucket: full(rate), limited_by: BTreeSet::from([shard]) };
                limited.insert(topic.clone(), entrance);
            }
            (None, Some(entrance)) => {
                entrance.limited_by.remove(&shard);
                if entrance.limited_by.is_empty() {
                    limited.remove(topic);
                }
            }
            (None, None) => {}
        }
        self.any.store(!limited.is_empty(), Ordering::Release);
    }

    /// A shard is not here any more. The rates that it gave stay, since whoever has it now keeps them too.
    pub fn forget_shard(&self, shard: ShardId) {
        if self.any.load(Ordering::Acquire) {
            let mut limited = self.limited.write().unwrap_or_else(PoisonError::into_inner);
            limited.values_mut().for_each(|entrance| _ = entrance.limited_by.remove(&shard));
        }
    }

    fn now(&self) -> Timestamp {
        // The buckets were full a long time before the node started.
        Timestamp::from_millis((1 << 40) + self.started_at.elapsed().as_millis() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limited_topic_says_how_long_to_wait_and_others_are_free() {
        let entrances = Entrances::new();
        let [limited, free] = ["limited", "free"].map(|name| Name::new(name).unwrap());
        let rate = Rate { per_second: 1, burst: 2 };
        entrances.limit(ShardId(0), &limited, Some(rate));
        let refusals = (0..4).filter_map(|_| entrances.admit(&limited).err()).collect::<Vec<_>>();
        assert!(matches!(&refusals[..], [Refused::RateLimited { retry_after, .. }, _] if retry_after.0 > 0));
        assert!((0..100).all(|_| entrances.admit(&free).is_ok()));

        entrances.limit(ShardId(0), &limited, Some(rate));
        assert!(entrances.admit(&limited).is_err(), "the same rate again does not fill the bucket");
        entrances.limit(ShardId(0), &limited, None);
        assert!(entrances.admit(&limited).is_ok());
    }

    #[test]
    fn a_rate_stays_until_the_last_shard_that_gave_it_takes_it_away() {
        let (entrances, topic) = (Entrances::new(), Name::new("limited").unwrap());
        let rate = Some(Rate { per_second: 1, burst: 1 });
        entrances.limit(ShardId(0), &topic, rate);
        assert!(entrances.admit(&topic).is_ok());
        entrances.limit(ShardId(1), &topic, None);
        assert!(entrances.admit(&topic).is_err(), "in another shard it came to be by use");
        entrances.limit(ShardId(1), &topic, rate);
        entrances.limit(ShardId(0), &topic, None);
        assert!(entrances.admit(&topic).is_err(), "one of two shards has yet to hear that it has none any more");
        entrances.forget_shard(ShardId(1));
        assert!(entrances.is_limited(&topic), "the rate is kept wherever that shard is");
        entrances.limit(ShardId(0), &topic, None);
        assert!(!entrances.is_limited(&topic), "nobody here says that there is one");
    }
}
