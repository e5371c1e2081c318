//! Keeping the shards: the node's beats show that it is there, and tell what it has lost.
//!
//! The store refuses what comes under an old fence, so nothing is ever written twice. This is about
//! answers that need no write: a node whose beats did not count for the time of a lease says nothing more.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use punctual_center::{Asking, Card};
use punctual_core::store::{Beat, Fence, Refusal, Roll, ShardId, Store, StoreError};
use punctual_core::{Clock, Millis};

use crate::inbox::Inbox;
use crate::shared::Shared;
use crate::sync::atomic::Ordering;
use crate::sync::{Condvar, Instant, Mutex, lock};

/// How often a node beats while its lease lasts: some may be lost before others take it for dead.
pub(crate) const BEATS: u32 = 6;

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
            Ok((asking, roll)) => {
                let roll = Arc::new(roll);
                shared.learn_roll(asking, Arc::clone(&roll));
                for claimed in &claims {
                    claimed.compare(&roll, shared.counts(&roll).then_some(now));
                }
                // Before anything is claimed: this node may have slept through a rise.
                shared.mind_level(&roll);
                if shared.counts(&roll) && shared.peers.has_links() && shared.check().is_ok() {
                    shared.follow(&roll);
                }
                shared.look_after_changes(&roll);
                shared.look_after_acts();
                shared.look_after_sweeps(&roll);
                (!shared.counts(&roll)).then(|| taken_name(shared))
            }
            Err(StoreError::Poisoned(why)) => return shared.poison(&why),
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = trouble {
            for Claimed { shard, inbox, fence, seen_at } in claims {
                if seen_at.elapsed() >= lease {
                    inbox.failed(fence, &format!("the claim on {shard} could not be kept: {why}"));
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

/// Beats, and lets the clock hear what time it is.
pub(crate) fn heard(store: &dyn Store, clock: &dyn Clock, beat: &Beat) -> Result<Roll, StoreError> {
    let asked_at = clock.steady_micros();
    let roll = store.beat(beat)?;
    clock.heard(roll.micros, asked_at);
    Ok(roll)
}

impl Shared {
    /// Says that the node is there, and hears who else is, and where the shards are.
    pub fn beat(&self) -> Result<(Asking, Roll), StoreError> {
        let asking = self.ask_places();
        self.known_changes.ask();
        Ok((asking, heard(&*self.store, &*self.clock, &self.word(self.config.ownership))?))
    }

    /// Says that the node leaves.
    pub fn leave(&self) {
        // If it is not heard, the lease ends by itself.
        _ = self.store.beat(&self.word(Millis::ZERO));
    }

    fn word(&self, lease: Millis) -> Beat {
        let card = Card {
            skew: self.clock.skew(),
            is_leaving: self.ownership.is_leaving.load(Ordering::Relaxed),
            ..self.config.card.clone()
        };
        Beat { who: self.who.clone(), address: card.to_string(), lease }
    }

    /// Whether the node's beats count: no other life of the same name has a lease.
    pub fn counts(&self, roll: &Roll) -> bool {
        roll.node(&self.who.node).is_none_or(|present| present.who == self.who)
    }
}
