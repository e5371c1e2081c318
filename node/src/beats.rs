//! Keeping the shards: the node's beats show that it is there, and tell what it has lost.
//!
//! The store refuses what comes under an old fence, so nothing is ever written twice. This is about
//! answers that need no write: a node whose beats did not count for the time of a lease says nothing more.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use punctual_core::Millis;
use punctual_core::store::{Beat, Fence, Refusal, Roll, ShardId, StoreError};

use crate::inbox::Inbox;
use crate::shared::Shared;
use crate::sync::{Condvar, Instant, Mutex, lock};

/// How often a node beats while its lease lasts: some may be lost before others take it for dead.
const BEATS: u32 = 6;

/// Tells a thread to end.
#[derive(Default)]
pub(crate) struct Closing {
    is_closed: Mutex<bool>,
    bell: Condvar,
}

impl Closing {
    pub fn close(&self) {
        *lock(&self.is_closed) = true;
        self.bell.notify_all();
    }

    /// Sleeps; says whether to go on.
    pub fn sleep(&self, time: Duration) -> bool {
        let closed = lock(&self.is_closed);
        let closed = self.bell.wait_timeout_while(closed, time, |closed| !*closed);
        !*closed.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Beats until it is told to end.
pub(crate) fn run(shared: &Arc<Shared>) {
    let lease = Duration::from_millis(shared.config.ownership.0);
    while shared.closing.sleep(lease / BEATS) {
        let claims: Vec<Claimed<'_>> = shared.shards().filter_map(Claimed::of).collect();
        let now = Instant::now();
        let trouble = match shared.beat() {
            Ok(roll) => {
                for claimed in &claims {
                    claimed.compare(&roll, shared.counts(&roll).then_some(now));
                }
                (!shared.counts(&roll)).then(|| taken_name(shared))
            }
            Err(StoreError::Poisoned(why)) => return shared.poison(&why),
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = trouble {
            for Claimed { shard, inbox, fence, seen_at } in claims {
                if seen_at.elapsed() >= lease {
                    inbox.failed(fence, &format!("the claim on {shard:?} could not be kept: {why}"));
                }
            }
        }
    }
}

pub(crate) fn taken_name(shared: &Shared) -> String {
    format!("another server works on this store under the name {}: give each a `name` of its own", shared.who.node)
}

/// A shard that is held, as it was before the beat.
struct Claimed<'a> {
    shard: ShardId,
    inbox: &'a Inbox,
    fence: Fence,
    seen_at: Instant,
}

impl<'a> Claimed<'a> {
    fn of((shard, inbox): (ShardId, &'a Inbox)) -> Option<Claimed<'a>> {
        let (fence, seen_at) = inbox.claim()?;
        Some(Claimed { shard, inbox, fence, seen_at })
    }

    /// Notes whether the shard is still held, and that it was at this time if the beat counted.
    fn compare(&self, roll: &Roll, now: Option<Instant>) {
        let current = roll.fence(self.shard);
        if current != self.fence {
            self.inbox.failed(self.fence, &Refusal::Fenced { current }.to_string());
        } else if let Some(now) = now {
            self.inbox.seen_in_force(self.fence, now);
        }
    }
}

impl Shared {
    /// Says that the node is there, and hears who else is.
    pub fn beat(&self) -> Result<Roll, StoreError> {
        self.store.beat(&self.word(self.config.ownership))
    }

    /// Says that the node leaves.
    pub fn leave(&self) {
        // If it is not heard, the lease ends by itself.
        _ = self.store.beat(&self.word(Millis::ZERO));
    }

    fn word(&self, lease: Millis) -> Beat {
        Beat { who: self.who.clone(), address: String::new(), lease }
    }

    /// Whether the node's beats count: no other life of the same name has a lease.
    pub fn counts(&self, roll: &Roll) -> bool {
        roll.node(&self.who.node).is_none_or(|present| present.who == self.who)
    }
}
