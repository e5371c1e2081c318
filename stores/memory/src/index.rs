//! One table's rows, in time order and by group.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use punctual_core::store::Position;
use punctual_core::{Name, Timestamp};

use crate::slab::Slot;
use crate::timeline::Timeline;

#[derive(Clone, Default)]
pub(crate) struct Index {
    by_time: Timeline,
    by_group: HashMap<Name, BTreeMap<u64, Slot>, FixedState>,
}

impl Index {
    pub(crate) fn add(&mut self, position: Position, group: Option<&Name>, slot: Slot) {
        self.by_time.add(position, slot);
        if let Some(group) = group {
            self.by_group.entry(group.clone()).or_default().insert(position.seq, slot);
        }
    }

    /// Moves a row in time within the table.
    pub(crate) fn shift(&mut self, from: Position, to: Position, slot: Slot) {
        self.by_time.remove(from);
        self.by_time.add(to, slot);
    }

    pub(crate) fn remove(&mut self, position: Position, group: Option<&Name>) {
        self.by_time.remove(position);
        if let Some(group) = group
            && let Some(members) = self.by_group.get_mut(group)
        {
            members.remove(&position.seq);
            if members.is_empty() {
                self.by_group.remove(group);
            }
        }
    }

    /// The rows from a position on and before a time, in time order.
    pub(crate) fn range(&mut self, from: Position, until: Timestamp) -> impl Iterator<Item = Slot> {
        self.by_time.range(from, until)
    }

    /// The rows of a group from a number on, by their numbers.
    pub(crate) fn group(&self, group: &Name, from_seq: u64) -> impl Iterator<Item = Slot> {
        self.by_group.get(group).into_iter().flat_map(move |members| members.range(from_seq..)).map(|(_, slot)| *slot)
    }
}
