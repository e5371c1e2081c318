//! What this node knows of the changes of settings that are under way in the center: the entry of the store as it was seen
//! last. A change is written there first; how it is carried out is in `handle/changes.rs`, and what follows from what in
//! `center/src/changes`.

use std::sync::{Arc, PoisonError};

use punctual_center::Changes;
use punctual_center::changes::{self, Heeded, Seen};
use punctual_core::store::{Roll, ShardId};

use crate::error::Error;
use crate::handle::Handle;
use crate::shared::Shared;
use crate::sync::{Instant, Mutex, lock};

pub(crate) struct KnownChanges {
    known: Mutex<changes::KnownChanges>,
    /// From when its times are counted.
    since: Instant,
}

impl Default for KnownChanges {
    fn default() -> KnownChanges {
        KnownChanges { known: Mutex::default(), since: Instant::now() }
    }
}

impl KnownChanges {
    /// The store is about to be asked for a roll.
    pub fn ask(&self) {
        lock(&self.known).ask();
    }

    fn now(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Shared {
    /// The changes as they are known, if nothing is left to be done about them; else as the store has them now.
    pub fn seen_changes(&self) -> Result<Seen, Error> {
        let known = lock(&self.known_changes.known).quiet();
        known.map_or_else(|| self.read_changes(), Ok)
    }

    /// The changes as the store has them.
    pub fn read_changes(&self) -> Result<Seen, Error> {
        let entry = self.store.cluster_get(Changes::KEY).map_err(|error| self.read_failed(&error))?;
        let seen = lock(&self.known_changes.known).read(entry.as_ref());
        seen.map_err(|error| Error::nothing_done(error.to_string()))
    }

    /// Writes changes down in place of those that were seen; `None` if somebody else was quicker.
    pub fn write_changes(&self, seen: &Seen, changes: Changes) -> Result<Option<Seen>, Error> {
        let written = self.store.cluster_put(Changes::KEY, seen.revision, &changes.lay());
        let mut known = lock(&self.known_changes.known);
        match written {
            Ok(Ok(revision)) => Ok(Some(known.written(seen, changes, revision))),
            Ok(Err(_)) => {
                known.forget();
                Ok(None)
            }
            Err(error) => {
                known.forget();
                drop(known);
                self.heed(&error);
                Err(Error::unknown_outcome(error.to_string()))
            }
        }
    }

    /// All shards have adopted what was under way when the entry was seen so.
    pub fn changes_adopted(&self, revision: u64) {
        lock(&self.known_changes.known).adopted(revision);
    }

    /// Nothing is left to be done here about the entry at this revision; or something could not be done, and is
    /// tried again after a while.
    pub fn changes_tidied(&self, revision: Option<u64>) {
        let now = self.known_changes.now();
        lock(&self.known_changes.known).tidied(revision, now);
    }

    /// Heeds what the roll says of the entry: others may have made or deleted queues; and what somebody has begun and does
    /// not go on with is finished by the owner of the first shard.
    pub fn look_after_changes(self: &Arc<Shared>, roll: &Roll) {
        let has_first_shard = roll.keeper(ShardId(0)).is_some_and(|keeper| keeper.who == self.who);
        let now = self.known_changes.now();
        let heeded = lock(&self.known_changes.known).heed(roll.revision(Changes::KEY), has_first_shard, now);
        let Heeded { is_news, is_left } = heeded;
        if is_news {
            self.known_queues.write().unwrap_or_else(PoisonError::into_inner).clear();
        }
        if is_left {
            let handle = Handle::new(Arc::clone(self));
            self.administrator.follow_up(move || handle.tidy_changes());
        }
    }
}
