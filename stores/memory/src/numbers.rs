//! Which slot has the row of a number.
//!
//! A shard gives its numbers in rising order, so neighbours share a page and one change reads one
//! line of memory. A page goes with its last row.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::slab::Slot;

const PAGE: u64 = 256;

#[derive(Clone, Default)]
pub(crate) struct Numbers {
    pages: HashMap<u64, Box<Page>, FixedState>,
}

#[derive(Clone)]
struct Page {
    slots: [Option<Slot>; PAGE as usize],
    used: u64,
}

impl Numbers {
    pub(crate) fn get(&self, seq: u64) -> Option<Slot> {
        self.pages.get(&(seq / PAGE))?.slots[(seq % PAGE) as usize]
    }

    /// Gives the number to a slot; answers the slot that had it before.
    pub(crate) fn insert(&mut self, seq: u64, slot: Slot) -> Option<Slot> {
        let page = self.pages.entry(seq / PAGE).or_insert_with(|| Box::new(Page { slots: [None; _], used: 0 }));
        let before = page.slots[(seq % PAGE) as usize].replace(slot);
        page.used += u64::from(before.is_none());
        before
    }

    pub(crate) fn remove(&mut self, seq: u64) {
        if let Some(page) = self.pages.get_mut(&(seq / PAGE)) {
            page.used -= u64::from(page.slots[(seq % PAGE) as usize].take().is_some());
            if page.used == 0 {
                self.pages.remove(&(seq / PAGE));
            }
        }
    }
}
