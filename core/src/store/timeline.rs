//! Something small for each row of a table, in time order: a building block for stores.
//!
//! ```text
//! leaves:  START ──► [ entry, entry, … ]      entry: position, and what came to it,
//!          07:12 ──► [ entry, entry, … ]             or none when the row there left
//!          07:31 ──► [ entry, entry, … ]
//! ```
//! A leaf holds the entries from its position to that of the next leaf, in the order they came. It is
//! a small log: only when it is read or full is it sorted and are the rows that left taken out. So a
//! change costs one search among few leaves and one append, where a plain tree of a million
//! positions would wait for memory at every level.
//!
//! Invariant: the first leaf begins at `START`, and every other leaf has at least one row.

use super::Position;
use crate::time::Timestamp;

/// How many entries a leaf takes before it is tidied, and split if it is still more than half full.
const FULL: usize = 1_024;

/// Rows in time order, each as something small that stands for it: where to find it, or all of it
/// that matters. A type with a niche, such as one around a `NonZeroU32`, takes least memory.
#[derive(Clone)]
pub struct Timeline<T> {
    /// The position from which each leaf on holds the entries, in order.
    starts: Vec<Position>,
    leaves: Vec<Leaf<T>>,
}

#[derive(Clone)]
struct Leaf<T> {
    entries: Vec<(Position, Option<T>)>,
    /// How many rows it has.
    rows: usize,
    /// Whether the entries may be out of order or name rows that left.
    is_loose: bool,
}

impl<T> Default for Timeline<T> {
    fn default() -> Timeline<T> {
        Timeline { starts: vec![Position::START], leaves: vec![Leaf::default()] }
    }
}

impl<T> Default for Leaf<T> {
    fn default() -> Leaf<T> {
        Leaf { entries: Vec::new(), rows: 0, is_loose: false }
    }
}

impl<T: Copy> Timeline<T> {
    /// A row comes to a position where none is.
    pub fn add(&mut self, position: Position, row: T) {
        let number = self.leaf_of(position);
        let leaf = &mut self.leaves[number];
        leaf.is_loose |= leaf.entries.last().is_some_and(|(last, _)| *last >= position);
        leaf.rows += 1;
        leaf.entries.push((position, Some(row)));
        self.make_room(number);
    }

    /// The row at a position leaves. One must be there.
    pub fn remove(&mut self, position: Position) {
        let number = self.leaf_of(position);
        let leaf = &mut self.leaves[number];
        leaf.rows -= 1;
        if leaf.rows > 0 {
            leaf.is_loose = true;
            leaf.entries.push((position, None));
            self.make_room(number);
        } else if number == 0 {
            *leaf = Leaf::default();
        } else {
            self.starts.remove(number);
            self.leaves.remove(number);
        }
    }

    /// The row at exactly this position.
    pub fn get(&mut self, position: Position) -> Option<T> {
        let number = self.leaf_of(position);
        let leaf = &mut self.leaves[number];
        leaf.tidy();
        let found = leaf.entries.binary_search_by_key(&position, |(at, _)| *at).ok()?;
        leaf.entries[found].1
    }

    /// The rows from a position on and before a time, in time order.
    pub fn range(&mut self, from: Position, until: Timestamp) -> impl Iterator<Item = (Position, T)> {
        let end = Position::start_of(until);
        let first = self.leaf_of(from);
        let leaves = self.starts[first..].iter().zip(&mut self.leaves[first..]);
        leaves.take_while(move |(start, _)| **start < end).flat_map(move |(_, leaf)| {
            leaf.tidy();
            let begin = leaf.entries.partition_point(|(position, _)| *position < from);
            let stop = leaf.entries.partition_point(|(position, _)| *position < end);
            tidied(&leaf.entries[begin.min(stop)..stop])
        })
    }

    /// The rows from a time on and before a position, the latest first.
    pub fn range_back(&mut self, from: Timestamp, before: Position) -> impl Iterator<Item = (Position, T)> {
        let from = Position::start_of(from);
        let first = self.leaf_of(from);
        let last = self.starts.partition_point(|start| *start < before).max(first);
        self.leaves[first..last].iter_mut().rev().flat_map(move |leaf| {
            leaf.tidy();
            let begin = leaf.entries.partition_point(|(position, _)| *position < from);
            let stop = leaf.entries.partition_point(|(position, _)| *position < before);
            tidied(&leaf.entries[begin.min(stop)..stop]).rev()
        })
    }

    /// How many leaves there are; at least one. Any change to the timeline may change it.
    pub fn leaves(&self) -> usize {
        self.leaves.len()
    }

    /// The rows of one leaf, in time order. All leaves one after the other hold all rows, so a
    /// reader can go through the timeline piece by piece.
    pub fn leaf(&mut self, number: usize) -> impl Iterator<Item = (Position, T)> {
        let leaf = &mut self.leaves[number];
        leaf.tidy();
        tidied(&leaf.entries)
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
        leaf.tidy();
        if leaf.entries.len() > FULL / 2 {
            let upper = leaf.split();
            self.starts.insert(number + 1, upper.entries[0].0);
            self.leaves.insert(number + 1, upper);
        }
    }
}

/// The rows of entries that are tidied.
fn tidied<T: Copy>(entries: &[(Position, Option<T>)]) -> impl DoubleEndedIterator<Item = (Position, T)> {
    entries.iter().filter_map(|(position, row)| Some((*position, (*row)?)))
}

impl<T: Copy> Leaf<T> {
    /// Sorts the entries; of those for one position the last one tells.
    fn tidy(&mut self) {
        if !self.is_loose {
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
        self.entries.retain(|(_, row)| row.is_some());
        self.is_loose = false;
        assert_eq!(self.entries.len(), self.rows, "a leaf knows how many rows it has");
    }

    /// Keeps the lower half and gives the upper.
    fn split(&mut self) -> Leaf<T> {
        let entries = self.entries.split_off(self.entries.len() / 2);
        self.rows = self.entries.len();
        Leaf { rows: entries.len(), entries, is_loose: false }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use punctual_chance::Chance;

    use super::*;

    fn position(millis: u64, seq: u64) -> Position {
        Position { at: Timestamp::from_millis(millis), seq }
    }

    /// Numbers without order, the same in every run.
    fn scattered(number: u64) -> u64 {
        Chance::new(number).draw() >> 33
    }

    #[test]
    fn many_rows_that_come_move_and_leave_stay_in_order() {
        let (mut timeline, mut plain) = (Timeline::default(), BTreeMap::new());
        let mut places: Vec<Option<Position>> = vec![None; 10_000];
        for step in 0..60_000 {
            let row = scattered(step) as usize % places.len();
            if let Some(place) = places[row].take() {
                timeline.remove(place);
                plain.remove(&place);
            }
            // Few times, so that rows also come back to where they were.
            if !step.is_multiple_of(5) {
                let place = position(scattered(step + 1) % 500, row as u64);
                timeline.add(place, step);
                plain.insert(place, step);
                places[row] = Some(place);
            }
            if step % 1_000 == 0 {
                let (from, until) = (position(scattered(step) % 500, 77), Timestamp::from_millis(400));
                let expected = plain.iter().filter(|(at, _)| **at >= from && at.at < until);
                assert!(timeline.range(from, until).eq(expected.map(|(at, row)| (*at, *row))), "step {step}");
                let expected = plain.iter().rev().filter(|(at, _)| **at < from && at.at >= Timestamp::from_millis(99));
                let back = timeline.range_back(Timestamp::from_millis(99), from);
                assert!(back.eq(expected.map(|(at, row)| (*at, *row))), "step {step}");
                let one = position(scattered(step) % 500, row as u64);
                assert_eq!(timeline.get(one), plain.get(&one).copied(), "step {step}");
                if let Some(place) = places[row] {
                    assert_eq!(timeline.get(place), Some(step));
                }
            }
        }
        assert!(timeline.range(Position::START, Timestamp::NEVER).eq(plain));
        for place in places.into_iter().flatten() {
            timeline.remove(place);
        }
        assert_eq!(timeline.leaves(), 1, "leaves go with their rows");
        assert!(timeline.leaves[0].entries.is_empty());
    }

    #[test]
    fn rows_that_come_in_order_are_never_sorted() {
        let mut timeline = Timeline::default();
        let rows: Vec<_> = (0..5_000).map(|seq| (position(7, seq), seq)).collect();
        for (position, row) in &rows {
            timeline.add(*position, *row);
        }
        assert!(timeline.leaves.iter().all(|leaf| !leaf.is_loose));
        assert!(timeline.range(Position::START, Timestamp::NEVER).eq(rows));
    }

    #[test]
    fn leaf_by_leaf_all_rows_are_met_in_order() {
        let mut timeline = Timeline::default();
        for number in 0..5_000 {
            timeline.add(position(scattered(number), number), number);
        }
        for number in (0..5_000).step_by(3) {
            timeline.remove(position(scattered(number), number));
        }
        // Rows without a time are met as well, which `range` leaves out.
        timeline.add(Position { at: Timestamp::NEVER, seq: 9_999 }, 9_999);
        let mut expected: Vec<_> = timeline.range(Position::START, Timestamp::NEVER).collect();
        expected.push((Position { at: Timestamp::NEVER, seq: 9_999 }, 9_999));
        assert!(timeline.leaves() > 1);
        let met: Vec<_> = (0..timeline.leaves()).flat_map(|number| timeline.leaf(number).collect::<Vec<_>>()).collect();
        assert_eq!(met, expected);
    }
}
