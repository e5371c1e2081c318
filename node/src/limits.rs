//! How many tasks a topic takes in a second.
//!
//! The buckets count by the machine's monotonic clock: a step of the wall clock must not close an entrance.

use std::collections::HashMap;
use std::sync::PoisonError;

use foldhash::fast::FixedState;
use punctual_core::{Name, Rate, Refused, Timestamp, TokenBucket};

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Instant, Mutex, RwLock, lock};

pub(crate) struct Entrances {
    /// Most nodes limit no topic; then nobody has to ask for the lock.
    any: AtomicBool,
    buckets: RwLock<HashMap<Name, Mutex<TokenBucket>, FixedState>>,
    started_at: Instant,
}

impl Entrances {
    pub fn new() -> Entrances {
        Entrances { any: AtomicBool::new(false), buckets: RwLock::default(), started_at: Instant::now() }
    }

    /// Lets one task in, or says how long to wait.
    pub fn admit(&self, topic: &Name) -> Result<(), Refused> {
        if !self.any.load(Ordering::Acquire) {
            return Ok(());
        }
        let buckets = self.buckets.read().unwrap_or_else(PoisonError::into_inner);
        let Some(bucket) = buckets.get(topic) else { return Ok(()) };
        let taken = lock(bucket).take(self.now());
        taken.map_err(|retry_after| Refused::RateLimited { topic: topic.clone(), retry_after })
    }

    /// Gives a topic a rate, or takes it away. The same rate again changes nothing.
    pub fn limit(&self, topic: &Name, rate: Option<Rate>) {
        if rate.is_none() && !self.any.load(Ordering::Acquire) {
            return;
        }
        let mut buckets = self.buckets.write().unwrap_or_else(PoisonError::into_inner);
        match rate {
            Some(rate) => {
                let known = buckets.get(topic).map(|bucket| lock(bucket).rate());
                if known != Some(rate) {
                    buckets.insert(topic.clone(), Mutex::new(TokenBucket::new(rate)));
                }
            }
            None => _ = buckets.remove(topic),
        }
        self.any.store(!buckets.is_empty(), Ordering::Release);
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
        entrances.limit(&limited, Some(rate));
        let refusals = (0..4).filter_map(|_| entrances.admit(&limited).err()).collect::<Vec<_>>();
        assert!(matches!(&refusals[..], [Refused::RateLimited { retry_after, .. }, _] if retry_after.0 > 0));
        assert!((0..100).all(|_| entrances.admit(&free).is_ok()));

        entrances.limit(&limited, Some(rate));
        assert!(entrances.admit(&limited).is_err(), "the same rate again does not fill the bucket");
        entrances.limit(&limited, None);
        assert!(entrances.admit(&limited).is_ok());
    }
}
