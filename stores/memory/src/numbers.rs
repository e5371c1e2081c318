//! Which slot has the row of a number.
//!
//! A shard gives its numbers in rising order, so neighbours share a chunk and one change reads one
//! line of memory. A chunk goes with its last row.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::slab::Slot;

const CHUNK: u64 = 256;

#[derive(Clone, Default)]
pub(crate) struct Numbers {
    chunks: HashMap<u64, Box<Chunk>, FixedState>,
}

#[derive(Clone)]
struct Chunk {
    slots: [Option<Slot>; CHUNK as usize],
    used: u64,
}

impl Numbers {
    pub(crate) fn get(&self, seq: u64) -> Option<Slot> {
        self.chunks.get(&(seq / CHUNK))?.slots[(seq % CHUNK) as usize]
    }

    /// Gives the number to a slot; answers the slot that had it before.
    pub(crate) fn insert(&mut self, seq: u64, slot: Slot) -> Option<Slot> {
        let chunk = self.chunks.entry(seq / CHUNK).or_insert_with(|| Box::new(Chunk { slots: [None; _], used: 0 }));
        let before = chunk.slots[(seq % CHUNK) as usize].replace(slot);
        chunk.used += u64::from(before.is_none());
        before
    }

    pub(crate) fn remove(&mut self, seq: u64) {
        if let Some(chunk) = self.chunks.get_mut(&(seq / CHUNK)) {
            chunk.used -= u64::from(chunk.slots[(seq % CHUNK) as usize].take().is_some());
            if chunk.used == 0 {
                self.chunks.remove(&(seq / CHUNK));
            }
        }
    }
}
