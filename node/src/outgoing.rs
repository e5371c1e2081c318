//! Answers under way: how many bytes of them there may be together, so that readers who take their time cannot pile
//! them up in memory.
//!
//! **Invariant**: what is held is given back when its [`Hold`] is dropped, whatever became of the answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crate::error::Error;
use crate::shared::Shared;

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

    /// Takes room if there is some.
    pub fn try_hold(self: &Arc<Self>, bytes: u64) -> Result<Hold, Error> {
        if self.left() == 0 { Err(Error::Overloaded) } else { Ok(self.hold(bytes)) }
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
