//! Which slot has the row of a key.
//!
//! The text of a key stands only in its row. An entry remembers the text's hash, so that a search
//! reads no row but the right one, and the table grows without reading any.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use punctual_core::store::Key;

use crate::slab::{Slab, Slot};

#[derive(Clone, Default)]
pub(crate) struct Keys {
    entries: HashTable<KeyEntry>,
}

#[derive(Clone)]
struct KeyEntry {
    hash: u64,
    slot: Slot,
}

impl Keys {
    pub(crate) fn get(&self, key: &Key, rows: &Slab) -> Option<Slot> {
        let hash = hash(key);
        self.entries.find(hash, |entry| entry.hash == hash && rows[entry.slot].key == *key).map(|entry| entry.slot)
    }

    /// Gives a key that no row has to a slot.
    pub(crate) fn insert(&mut self, key: &Key, slot: Slot) {
        self.entries.insert_unique(hash(key), KeyEntry { hash: hash(key), slot }, |entry| entry.hash);
    }

    pub(crate) fn remove(&mut self, key: &Key, slot: Slot) {
        if let Ok(entry) = self.entries.find_entry(hash(key), |entry| entry.slot == slot) {
            entry.remove();
        }
    }
}

fn hash(key: &Key) -> u64 {
    FixedState::default().hash_one(key)
}
