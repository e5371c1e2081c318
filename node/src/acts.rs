//! Acts: who did what is noted at once, and written into the store with the next beat, for all nodes together.
//!
//! Nobody who acts waits for that. What was noted and not written when a node is killed is in its log alone.

use std::sync::Arc;

use punctual_center::{Act, Acts, Place};
use punctual_core::Timestamp;
use punctual_core::store::{ShardId, Store, StoreError};

use crate::error::Error;
use crate::handle::Handle;
use crate::shared::Shared;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, lock};

/// How often it is tried again because another node was quicker. What is not written then is with the next beat.
const TRIES: usize = 8;

/// What was noted at this node.
pub(crate) struct NotedActs {
    noted: Mutex<Noted>,
    /// Whether somebody is about to write it down.
    is_in_hand: AtomicBool,
}

struct Noted {
    pending: Acts,
    /// What is being written down: it may not be in the store yet.
    written: Acts,
}

impl Default for NotedActs {
    fn default() -> NotedActs {
        let noted = Noted { pending: none(), written: none() };
        NotedActs { noted: Mutex::new(noted), is_in_hand: AtomicBool::new(false) }
    }
}

/// None, of which none is missing.
fn none() -> Acts {
    Acts::since(Timestamp::ZERO)
}

impl Shared {
    /// Has what was noted written down, if there is something and nobody is about to.
    pub fn look_after_acts(self: &Arc<Shared>) {
        if lock(&self.acts.noted).pending.is_empty() || self.acts.is_in_hand.swap(true, Ordering::SeqCst) {
            return;
        }
        let shared = Arc::clone(self);
        self.administrator.follow_up(move || {
            shared.write_acts();
            shared.acts.is_in_hand.store(false, Ordering::SeqCst);
        });
    }

    /// Writes down what was noted. If that fails it is kept, and tried again with the next beat.
    pub fn write_acts(&self) {
        let acts = {
            let mut noted = lock(&self.acts.noted);
            noted.written = std::mem::replace(&mut noted.pending, none());
            noted.written.clone()
        };
        if acts.is_empty() {
            return;
        }
        let added = self.add_acts(&acts).inspect_err(|error| self.heed(error));
        let mut noted = lock(&self.acts.noted);
        let written = std::mem::replace(&mut noted.written, none());
        if !added.unwrap_or(false) {
            noted.pending.add(&written);
        }
    }

    /// Adds acts to those in the store; says whether that was done. An entry that cannot be read is left as it is.
    fn add_acts(&self, noted: &Acts) -> Result<bool, StoreError> {
        for _ in 0..TRIES {
            let entry = self.store.cluster_get(Acts::KEY)?;
            let revision = entry.as_ref().map_or(0, |entry| entry.revision);
            let Ok(mut acts) = entry.map_or(Ok(self.no_acts()), |entry| Acts::read(&entry.value)) else {
                return Ok(false);
            };
            acts.add(noted);
            if self.store.cluster_put(Acts::KEY, revision, &acts.lay())?.is_ok() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What is known of a store in which nothing was noted: nothing was done since this node started.
    fn no_acts(&self) -> Acts {
        Acts::since(self.meter.started_at())
    }
}

impl Handle {
    /// Notes that somebody did something. It is told at this node at once, and at others within a second or so.
    pub fn note_act(&self, act: Act) {
        lock(&self.shared().acts.noted).pending.push(act);
    }

    /// Whether it is this node's turn to note what all nodes notice: it has the first shard.
    pub fn notes_for_all(&self) -> bool {
        self.shared().place(ShardId(0)) == Place::Here
    }

    /// The latest acts, at all nodes.
    pub async fn acts(&self) -> Result<Acts, Error> {
        let own = {
            let noted = lock(&self.shared().acts.noted);
            let mut own = noted.written.clone();
            own.add(&noted.pending);
            own
        };
        let entry = self.read(|store: &dyn Store| store.cluster_get(Acts::KEY)).await?;
        let mut acts = match entry {
            Some(entry) => Acts::read(&entry.value).map_err(|error| Error::nothing_done(error.to_string()))?,
            None => self.shared().no_acts(),
        };
        acts.add(&own);
        Ok(acts)
    }
}
