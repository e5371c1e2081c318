//! One table's rows, in time order, by group and by number: a building block for stores.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;

use super::{Position, Timeline};
use crate::name::Name;
use crate::time::Timestamp;

/// The rows of a table, each as something small that stands for it, to be found by time, by group and by number.
#[derive(Clone)]
pub struct Index<T> {
    by_time: Timeline<T>,
    by_group: HashMap<Name, BTreeMap<u64, T>, FixedState>,
    /// Made when it is first asked for: most tables never are.
    by_number: Option<HashMap<u64, T, FixedState>>,
}

impl<T> Default for Index<T> {
    fn default() -> Index<T> {
        Index { by_time: Timeline::default(), by_group: HashMap::default(), by_number: None }
    }
}

impl<T: Copy> Index<T> {
    /// A row comes to a position where none is.
    pub fn add(&mut self, position: Position, group: Option<&str>, row: T) {
        self.by_time.add(position, row);
        if let Some(numbers) = &mut self.by_number {
            numbers.insert(position.seq, row);
        }
        let Some(group) = group else { return };
        match self.by_group.get_mut(group) {
            Some(members) => _ = members.insert(position.seq, row),
            None => _ = self.by_group.insert(Name::stored(group), BTreeMap::from([(position.seq, row)])),
        }
    }

    /// Moves a row in time within the table. What stands for it must be the same as before, since
    /// its group is not told.
    pub fn shift(&mut self, from: Position, to: Position, row: T) {
        self.by_time.remove(from);
        self.by_time.add(to, row);
    }

    /// The row at a position leaves. One must be there, and in this group.
    pub fn remove(&mut self, position: Position, group: Option<&str>) {
        self.by_time.remove(position);
        if let Some(numbers) = &mut self.by_number {
            numbers.remove(&position.seq);
        }
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
    pub fn range(&mut self, from: Position, until: Timestamp) -> impl Iterator<Item = (Position, T)> {
        self.by_time.range(from, until)
    }

    /// The rows from a time on and before a position, the latest first.
    pub fn range_back(&mut self, from: Timestamp, before: Position) -> impl Iterator<Item = (Position, T)> {
        self.by_time.range_back(from, before)
    }

    /// The row at exactly this position.
    pub fn get(&mut self, position: Position) -> Option<T> {
        self.by_time.get(position)
    }

    /// The row with this number.
    pub fn number(&mut self, seq: u64) -> Option<T> {
        let Index { by_time, by_number, .. } = self;
        let numbers = by_number.get_or_insert_with(|| {
            let mut numbers = HashMap::default();
            for leaf in 0..by_time.leaves() {
                numbers.extend(by_time.leaf(leaf).map(|(position, row)| (position.seq, row)));
            }
            numbers
        });
        numbers.get(&seq).copied()
    }

    /// In how many leaves the rows stand; for going through them piece by piece.
    pub fn leaves(&self) -> usize {
        self.by_time.leaves()
    }

    /// The rows of a leaf, in time order.
    pub fn leaf(&mut self, number: usize) -> impl Iterator<Item = (Position, T)> {
        self.by_time.leaf(number)
    }

    /// The rows of a group from a number on, by their numbers.
    pub fn group(&self, group: &str, from_seq: u64) -> impl Iterator<Item = (u64, T)> {
        let members = self.by_group.get(group).into_iter().flat_map(move |members| members.range(from_seq..));
        members.map(|(seq, row)| (*seq, *row))
    }

    /// The rows of a group before a number, the greatest first.
    pub fn group_back(&self, group: &str, before_seq: u64) -> impl Iterator<Item = (u64, T)> {
        let members = self.by_group.get(group).into_iter().flat_map(move |members| members.range(..before_seq).rev());
        members.map(|(seq, row)| (*seq, *row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(millis: u64, seq: u64) -> Position {
        Position { at: Timestamp::from_millis(millis), seq }
    }

    #[test]
    fn a_row_is_found_in_its_group_wherever_it_moves_in_time_until_it_leaves() {
        let (mut index, group) = (Index::default(), "g");
        index.add(position(5, 1), Some(group), 'a');
        index.add(position(3, 2), Some(group), 'b');
        index.add(position(4, 3), None, 'c');
        index.shift(position(5, 1), position(2, 1), 'a');
        assert!(index.group(group, 0).eq([(1, 'a'), (2, 'b')]));
        assert!(index.group(group, 2).eq([(2, 'b')]));
        assert!(index.group_back(group, 9).eq([(2, 'b'), (1, 'a')]));
        assert!(index.group_back(group, 2).eq([(1, 'a')]));
        let in_time = [(position(2, 1), 'a'), (position(3, 2), 'b'), (position(4, 3), 'c')];
        assert!(index.range(Position::START, Timestamp::NEVER).eq(in_time));
        assert_eq!([1, 3, 4].map(|seq| index.number(seq)), [Some('a'), Some('c'), None]);
        index.add(position(9, 4), None, 'd');
        index.shift(position(9, 4), position(1, 4), 'd');
        assert_eq!(index.number(4), Some('d'), "what came after the first question is found too");
        index.remove(position(1, 4), None);
        assert_eq!(index.number(4), None);
        index.remove(position(2, 1), Some(group));
        index.remove(position(3, 2), Some(group));
        assert_eq!(index.group(group, 0).count(), 0);
        assert!(index.by_group.is_empty(), "groups go with their rows");
    }
}
