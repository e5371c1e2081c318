//! An ordered set of positions, packed tightly.
//!
//! ```text
//! 07:12 ──► [ position, position, … ]     each chunk from its first position to that of the next
//! 07:31 ──► [ position, position, … ]
//! ```
//! Positions mostly come in order and leave from the front. A chunk that is filled in order stays
//! full, where a tree's nodes would be half empty: a backlog costs little more than its positions.
//!
//! Invariant: no chunk is empty, and each is known by a position not after its first one.

use std::collections::{BTreeMap, VecDeque};

use crate::store::Position;

/// How many positions a chunk has at most.
const FULL: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Positions {
    chunks: BTreeMap<Position, VecDeque<Position>>,
}

impl Positions {
    /// Takes a position in; false if it was there.
    pub fn insert(&mut self, position: Position) -> bool {
        let Some((known_by, chunk)) = self.chunk_mut(position) else {
            self.open(position);
            return true;
        };
        let Err(place) = chunk.binary_search(&position) else { return false };
        if chunk.len() < FULL {
            chunk.insert(place, position);
        } else if place == FULL {
            // In order: this chunk stays full.
            self.open(position);
        } else {
            let upper = chunk.split_off(FULL / 2);
            if place <= FULL / 2 {
                chunk.insert(place, position)
            } else {
                return self.add_upper(upper, position);
            }
            self.chunks.insert(upper[0], upper);
        }
        if position < known_by {
            let chunk = self.chunks.remove(&known_by).expect("it was just there");
            self.chunks.insert(position, chunk);
        }
        true
    }

    /// Takes a position out; false if it was not there.
    pub fn remove(&mut self, position: Position) -> bool {
        let Some((known_by, chunk)) = self.chunk_mut(position) else { return false };
        let Ok(place) = chunk.binary_search(&position) else { return false };
        chunk.remove(place);
        if chunk.is_empty() {
            self.chunks.remove(&known_by);
        }
        true
    }

    pub fn contains(&self, position: Position) -> bool {
        let chunk = self.chunks.range(..=position).next_back();
        chunk.is_some_and(|(_, chunk)| chunk.binary_search(&position).is_ok())
    }

    pub fn first(&self) -> Option<Position> {
        self.chunks.first_key_value().and_then(|(_, chunk)| chunk.front().copied())
    }

    pub fn iter(&self) -> impl Iterator<Item = Position> {
        self.chunks.values().flatten().copied()
    }

    /// Those from this one on.
    pub fn from(&self, first: Position) -> impl Iterator<Item = Position> {
        let known_by = self.chunks.range(..=first).next_back().map_or(first, |(known_by, _)| *known_by);
        self.chunks
            .range(known_by..)
            .flat_map(|(_, chunk)| chunk)
            .copied()
            .skip_while(move |position| *position < first)
    }

    /// Those before this one, the last of them first.
    pub fn before(&self, end: Position) -> impl Iterator<Item = Position> {
        let chunks = self.chunks.range(..end).rev();
        chunks.flat_map(|(_, chunk)| chunk.iter().rev()).copied().skip_while(move |position| *position >= end)
    }

    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The chunk to which a position belongs, and what it is known by.
    fn chunk_mut(&mut self, position: Position) -> Option<(Position, &mut VecDeque<Position>)> {
        let before = self.chunks.range(..=position).next_back().map(|(known_by, _)| *known_by);
        let known_by = before.or_else(|| self.chunks.first_key_value().map(|(known_by, _)| *known_by))?;
        self.chunks.get_mut(&known_by).map(|chunk| (known_by, chunk))
    }

    /// Begins a chunk with this position.
    fn open(&mut self, position: Position) {
        self.chunks.insert(position, VecDeque::from([position]));
    }

    /// Enters the upper half of a chunk that was split, with a position that belongs there.
    fn add_upper(&mut self, mut upper: VecDeque<Position>, position: Position) -> bool {
        let place = upper.binary_search(&position).unwrap_or_else(|place| place);
        upper.insert(place, position);
        self.chunks.insert(upper[0], upper);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use punctual_chance::Chance;

    use super::*;
    use crate::time::Timestamp;

    fn position(at: u64, seq: u64) -> Position {
        Position { at: Timestamp::from_millis(at), seq }
    }

    /// Numbers without order, the same in every run.
    fn scattered(number: u64) -> u64 {
        Chance::new(number).draw() >> 33
    }

    #[test]
    fn positions_that_come_and_go_without_order_are_as_in_a_plain_set() {
        let (mut positions, mut plain) = (Positions::default(), BTreeSet::new());
        for step in 0..60_000 {
            let one = position(scattered(step) % 3_000, scattered(step + 7) % 3);
            // More come than go at first, and more go than come later.
            let comes = scattered(step + 3) % 10 < if step < 30_000 { 8 } else { 3 };
            if comes {
                assert_eq!(positions.insert(one), plain.insert(one), "step {step}");
            } else {
                assert_eq!(positions.remove(one), plain.remove(&one), "step {step}");
            }
            assert_eq!(positions.first(), plain.first().copied(), "step {step}");
            assert_eq!(positions.contains(one), comes);
            if step % 500 == 0 {
                assert!(positions.iter().eq(plain.iter().copied()), "step {step}");
                assert!(positions.from(one).eq(plain.range(one..).copied()), "step {step}");
                assert!(positions.before(one).eq(plain.range(..one).rev().copied()), "step {step}");
            }
        }
        for one in plain {
            assert!(positions.remove(one));
        }
        assert!(positions.is_empty());
    }

    #[test]
    fn positions_that_come_in_order_fill_their_chunks() {
        let mut positions = Positions::default();
        for seq in 0..10_000 {
            assert!(positions.insert(position(7, seq)));
        }
        assert_eq!(positions.chunks.len(), 10_000_usize.div_ceil(FULL));
        for seq in 0..10_000 {
            assert_eq!(positions.first(), Some(position(7, seq)));
            assert!(positions.remove(position(7, seq)));
        }
    }
}
