//! The slots of a table's rows in time order.
//!
//! ```text
//! leaves:  START ──► [ entry, entry, … ]      entry: position, and the slot that came to it,
//!          07:12 ──► [ entry, entry, … ]             or none when the row there left
//!          07:31 ──► [ entry, entry, … ]
//! ```
//! A leaf holds the entries from its position to that of the next leaf, in the order they came. It is
//! a small log: only when it is read or full is it sorted and are the rows that left taken out. So a
//! change costs one search among few leaves and one append, where a plain tree of a million
//! positions would wait for memory at every level.
//!
//! Invariant: the first leaf begins at `START`, and every other leaf has at least one row.

use punctual_core::Timestamp;
use punctual_core::store::Position;

use crate::slab::Slot;

/// How many entries a leaf takes before it is settled, and split if it is still more than half full.
const FULL: usize = 1_024;

#[derive(Clone)]
pub(crate) struct Timeline {
    /// The position from which each leaf on holds the entries, in order.
    starts: Vec<Position>,
    leaves: Vec<Leaf>,
}

#[derive(Clone, Default)]
struct Leaf {
    entries: Vec<(Position, Option<Slot>)>,
    /// How many rows it has.
    rows: usize,
    /// Whether the entries may be out of order or name rows that left.
    unsettled: bool,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline { starts: vec![Position::START], leaves: vec![Leaf::default()] }
    }
}

impl Timeline {
    /// A row comes to a position where none is.
    pub(crate) fn add(&mut self, position: Position, slot: Slot) {
        let number = self.leaf_of(position);
        let leaf = &mut self.leaves[number];
        leaf.unsettled |= leaf.entries.last().is_some_and(|(last, _)| *last >= position);
        leaf.rows += 1;
        leaf.entries.push((position, Some(slot)));
        self.make_room(number);
    }

    /// The row at a position leaves.
    pub(crate) fn remove(&mut self, position: Position) {
        let number = self.leaf_of(position);
        let leaf = &mut self.leaves[number];
        leaf.rows -= 1;
        if leaf.rows > 0 {
            leaf.unsettled = true;
            leaf.entries.push((position, None));
            self.make_room(number);
        } else if number == 0 {
            *leaf = Leaf::default();
        } else {
            self.starts.remove(number);
            self.leaves.remove(number);
        }
    }

    /// The slots from a position on and before a time, in time order.
    pub(crate) fn range(&mut self, from: Position, until: Timestamp) -> impl Iterator<Item = Slot> {
        let end = Position::start_of(until);
        let first = self.leaf_of(from);
        let leaves = self.starts[first..].iter().zip(&mut self.leaves[first..]);
        leaves.take_while(move |(start, _)| **start < end).flat_map(move |(_, leaf)| {
            leaf.settle();
            let begin = leaf.entries.partition_point(|(position, _)| *position < from);
            let stop = leaf.entries.partition_point(|(position, _)| *position < end);
            leaf.entries[begin.min(stop)..stop].iter().filter_map(|(_, slot)| *slot)
        })
    }

    /// The number of the leaf to which a position belongs.
    fn leaf_of(&self, position: Position) -> usize {
        self.starts.partition_point(|start| *start <= position) - 1
    }

    /// Settles a leaf that is full, and splits it if many rows remain.
    fn make_room(&mut self, number: usize) {
        let leaf = &mut self.leaves[number];
        if leaf.entries.len() < FULL {
            return;
        }
        leaf.settle();
        if leaf.entries.len() > FULL / 2 {
            let upper = leaf.split();
            self.starts.insert(number + 1, upper.entries[0].0);
            self.leaves.insert(number + 1, upper);
        }
    }
}

impl Leaf {
    /// Sorts the entries; of those for one position the last one tells.
    fn settle(&mut self) {
        if !self.unsettled {
            return;
        }
        self.entries.sort_by_key(|(position, _)| *position);
        self.entries.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                *earlier = *later;
            }
            same
        });
        self.entries.retain(|(_, slot)| slot.is_some());
        self.unsettled = false;
        assert_eq!(self.entries.len(), self.rows, "a leaf knows how many rows it has");
    }

    /// Keeps the lower half and gives the upper.
    fn split(&mut self) -> Leaf {
        let entries = self.entries.split_off(self.entries.len() / 2);
        self.rows = self.entries.len();
        Leaf { rows: entries.len(), entries, unsettled: false }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::slab::Slab;
    use punctual_core::store::{Key, Row, Table};

    /// Slots of as many rows, which are of no further interest.
    fn slots(count: usize) -> Vec<Slot> {
        let (key, at, table) = (Key::new("", "", ""), Timestamp::ZERO, Table::Live);
        let row = Row { table, key, seq: 0, at, group: None, state: "".into(), body: "".into() };
        let mut slab = Slab::default();
        (0..count).map(|_| slab.put(row.clone())).collect()
    }

    fn position(millis: u64, seq: u64) -> Position {
        Position { at: Timestamp::from_millis(millis), seq }
    }

    /// Numbers without order, the same in every run.
    fn scattered(number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33
    }

    #[test]
    fn many_rows_that_come_move_and_leave_stay_in_order() {
        let (mut timeline, mut plain, slots) = (Timeline::default(), BTreeMap::new(), slots(10_000));
        let mut places: Vec<Option<Position>> = vec![None; slots.len()];
        for step in 0..60_000 {
            let row = scattered(step) as usize % slots.len();
            if let Some(place) = places[row].take() {
                timeline.remove(place);
                plain.remove(&place);
            }
            // Few times, so that rows also come back to where they were.
            if !step.is_multiple_of(5) {
                let place = position(scattered(step + 1) % 500, row as u64);
                timeline.add(place, slots[row]);
                plain.insert(place, slots[row]);
                places[row] = Some(place);
            }
            if step % 1_000 == 0 {
                let (from, until) = (position(scattered(step) % 500, 77), Timestamp::from_millis(400));
                let expected = plain.iter().filter(|(at, _)| **at >= from && at.at < until).map(|(_, slot)| *slot);
                assert!(timeline.range(from, until).eq(expected), "step {step}");
            }
        }
        assert!(timeline.range(Position::START, Timestamp::NEVER).eq(plain.into_values()));
        for place in places.into_iter().flatten() {
            timeline.remove(place);
        }
        assert_eq!(timeline.leaves.len(), 1, "leaves go with their rows");
        assert!(timeline.leaves[0].entries.is_empty());
    }

    #[test]
    fn rows_that_come_in_order_are_never_sorted() {
        let (mut timeline, slots) = (Timeline::default(), slots(5_000));
        for (seq, slot) in slots.iter().enumerate() {
            timeline.add(position(7, seq as u64), *slot);
        }
        assert!(timeline.leaves.iter().all(|leaf| !leaf.unsettled));
        assert!(timeline.range(Position::START, Timestamp::NEVER).eq(slots));
    }
}
