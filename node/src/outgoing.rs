//! Answers under way: how many bytes of them there may be together, so that readers who take their time cannot pile
//! them up in memory.
//!
//! **Invariant**: what is held is given back when its [`Hold`] is dropped, whatever became of the answer.

use std::sync::{Arc, OnceLock, Weak};

use crate::error::Error;
use crate::shared::Shared;
use crate::sync::atomic::{AtomicU64, Ordering};

/// The longest answer that needs no room to be found for it.
const SHORT: u64 = 16 << 10;

pub(crate) struct Outgoing {
    held: AtomicU64,
    most: u64,
    /// Whom to tell when there is room again.
    shared: OnceLock<Weak<Shared>>,
}

/// Room for an answer. It is given back when this is dropped: keep it for as long as the answer is in memory.
pub struct Hold {
    outgoing: Arc<Outgoing>,
    bytes: u64,
}

impl std::fmt::Debug for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hold").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Outgoing {
    pub fn new(most: u64) -> Arc<Outgoing> {
        Arc::new(Outgoing { held: AtomicU64::new(0), most, shared: OnceLock::new() })
    }

    pub fn belong_to(&self, shared: &Arc<Shared>) {
        _ = self.shared.set(Arc::downgrade(shared));
    }

    /// How much room there is.
    pub fn left(&self) -> u64 {
        self.most.saturating_sub(self.held.load(Ordering::Relaxed))
    }

    /// Takes room that was found to be there, or a little more.
    pub fn hold(self: &Arc<Self>, bytes: u64) -> Hold {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        Hold { outgoing: Arc::clone(self), bytes }
    }

    /// Takes room if there is so much. What is longer than all of it has its turn while nothing else is under way.
    pub fn try_hold(self: &Arc<Self>, bytes: u64) -> Result<Hold, Error> {
        let more = |held: u64| {
            let after = held.saturating_add(bytes);
            (held == 0 || after <= self.most).then_some(after)
        };
        let taken = self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(|_| Hold { outgoing: Arc::clone(self), bytes }).map_err(|_| Error::Overloaded)
    }

    /// The same for one task, which is always shown if it is short: whoever leaves long answers unread does not keep
    /// others from looking.
    pub fn hold_one(self: &Arc<Self>, bytes: usize) -> Result<Hold, Error> {
        let bytes = bytes as u64;
        if bytes <= SHORT { Ok(self.hold(bytes)) } else { self.try_hold(bytes) }
    }

    fn give_back(&self, bytes: u64) {
        let before = self.held.fetch_sub(bytes, Ordering::Relaxed);
        let was_full = before >= self.most && before - bytes < self.most;
        // Consumers may have been left waiting for room alone.
        if was_full && let Some(shared) = self.shared.get().and_then(Weak::upgrade) {
            shared.inboxes.iter().for_each(|inbox| inbox.wake_up());
        }
    }
}

impl Hold {
    /// How many bytes it is for.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The answer turned out to be of another length.
    pub fn resize(&mut self, bytes: u64) {
        if bytes > self.bytes {
            self.outgoing.held.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else {
            self.outgoing.give_back(self.bytes - bytes);
        }
        self.bytes = bytes;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.outgoing.give_back(self.bytes);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_though_some_room_is_left() {
        let outgoing = Outgoing::new(100_000);
        let first = outgoing.try_hold(60_000).unwrap();
        assert_eq!(outgoing.try_hold(60_000).unwrap_err(), Error::Overloaded);
        let _second = outgoing.try_hold(40_000).unwrap();
        assert_eq!(outgoing.left(), 0);
        drop(first);
        assert_eq!(outgoing.left(), 60_000);
    }

    #[test]
    fn one_that_is_longer_than_all_room_has_its_turn_alone() {
        let outgoing = Outgoing::new(100);
        let mut long = outgoing.try_hold(1_000).unwrap();
        assert_eq!(outgoing.try_hold(1).unwrap_err(), Error::Overloaded);
        long.resize(10);
        assert_eq!(outgoing.try_hold(1_000).unwrap_err(), Error::Overloaded);
        assert!(outgoing.try_hold(90).is_ok());
    }

    #[test]
    fn a_short_task_is_shown_though_there_is_no_room() {
        let outgoing = Outgoing::new(100);
        let _all = outgoing.hold(100);
        assert!(outgoing.hold_one(16 << 10).is_ok());
        assert_eq!(outgoing.hold_one((16 << 10) + 1).unwrap_err(), Error::Overloaded);
    }
}
