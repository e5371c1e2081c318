//! The rows of settings: how topics, queues and deletions stand in the store, and the shard's note on itself.
//!
//! **Invariant**: what was put or removed in a step is stored with that step's batch, and with it a note that sets aside
//! every number that was given out.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::meta::{Meta, Numbers};
use crate::store::{Change, Key, Place, Position, Row, Table};
use crate::time::Timestamp;

#[derive(Debug)]
pub(super) struct Catalogue {
    /// Settings that changed in this step: how they stand now, `None` if they are gone.
    changed: BTreeMap<Key, Option<Bytes>>,
    /// The numbers of the rows under which settings are stored.
    stored: BTreeMap<Key, u64>,
    /// How far minutes are counted according to the store.
    noted_horizon: Position,
    /// Of how many shards this is one, according to the store.
    shards: u16,
    /// The latest change of settings that this shard has adopted, of those that all shards make.
    adopted: u64,
    /// The same, according to the store.
    noted_adopted: u64,
}

impl Catalogue {
    pub fn new(shards: u16) -> Catalogue {
        Catalogue {
            changed: BTreeMap::new(),
            stored: BTreeMap::new(),
            noted_horizon: Position::START,
            shards,
            adopted: 0,
            noted_adopted: 0,
        }
    }

    /// Takes over a row that is stored.
    pub fn restore(&mut self, key: Key, seq: u64) {
        self.stored.insert(key, seq);
    }

    /// Takes over how far minutes are counted, and which changes were adopted.
    pub fn restore_note(&mut self, note: &Meta) {
        self.noted_horizon = note.minutes();
        (self.adopted, self.noted_adopted) = (note.adopted(), note.adopted());
    }

    /// The number of the latest change of settings that was adopted.
    pub fn adopted(&self) -> u64 {
        self.adopted
    }

    pub fn adopt(&mut self, number: u64) {
        self.adopted = self.adopted.max(number);
    }

    pub fn put(&mut self, key: Key, state: Bytes) {
        self.changed.insert(key, Some(state));
    }

    pub fn remove(&mut self, key: Key) {
        self.changed.insert(key, None);
    }

    pub fn has_changed(&self) -> bool {
        !self.changed.is_empty() || self.adopted != self.noted_adopted
    }

    /// The note of a shard that has none, which is opened for the first time.
    pub fn first_note(&mut self, numbers: &mut Numbers) -> Option<Change> {
        let note = Meta::new(self.shards, numbers, self.noted_horizon, self.adopted);
        (!self.stored.contains_key(&Meta::key())).then(|| self.store(Meta::key(), note.encode(), numbers))
    }

    /// Stores the settings that changed, and the note if what it says has changed: minutes are counted up to
    /// `horizon`, a change was adopted, or numbers were given out that are not set aside.
    pub fn take_changes(&mut self, numbers: &mut Numbers, horizon: Position, changes: &mut Vec<Change>) {
        for (key, state) in std::mem::take(&mut self.changed) {
            match state {
                Some(state) => changes.push(self.store(key, state, numbers)),
                None => {
                    let stored = self.stored.remove(&key);
                    changes.extend(stored.map(|seq| Change::Remove { place: place(key, seq) }));
                }
            }
        }
        let moved = std::mem::replace(&mut self.noted_horizon, horizon) != horizon;
        let adopted = std::mem::replace(&mut self.noted_adopted, self.adopted) != self.adopted;
        if numbers.set_aside() || moved || adopted {
            let note = Meta::new(self.shards, numbers, horizon, self.adopted);
            changes.push(self.store(Meta::key(), note.encode(), numbers));
        }
    }

    fn store(&mut self, key: Key, state: Bytes, numbers: &mut Numbers) -> Change {
        let at = Timestamp::ZERO;
        if let Some(seq) = self.stored.get(&key) {
            return Change::Update { place: place(key, *seq), table: Table::Settings, at, state };
        }
        // The note on numbers has a number of its own, which is never given out.
        let seq = if key == Meta::key() { 0 } else { numbers.setting() };
        self.stored.insert(key.clone(), seq);
        let row = Row { table: Table::Settings, key, seq, at, group: None, state, body: Bytes::new() };
        Change::Insert { row, replaces: None }
    }
}

fn place(key: Key, seq: u64) -> Place {
    Place { table: Table::Settings, key, position: Position { at: Timestamp::ZERO, seq }, group: None }
}
