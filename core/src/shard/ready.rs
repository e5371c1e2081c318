//! Deliveries that wait for a consumer, in the order in which they are handed out.
//!
//! An entry is only a position of 16 bytes. Everything else of a delivery may stay in the store, so
//! that a backlog of millions costs little memory.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::positions::Positions;
use crate::settings::{Order, URGENT_PRIORITY};
use crate::store::Position;
use crate::time::Timestamp;

/// How many of the most urgent and of the least urgent priorities are looked at for the oldest delivery.
const OUTERMOST: usize = 256;

/// Ordered by priority, then time, then arrival; or by priority, then arrival.
#[derive(Debug, Default)]
pub(super) struct ReadySet {
    order: Order,
    /// Each position stands here as the order has it.
    by_priority: BTreeMap<u32, Positions>,
    len: u64,
    urgent: u64,
}

impl ReadySet {
    pub fn new(order: Order) -> ReadySet {
        ReadySet { order, ..ReadySet::default() }
    }

    pub fn order(&self) -> Order {
        self.order
    }

    /// Puts all of them in another order, which takes as long as there are many.
    pub fn reorder(&mut self, order: Order) {
        if self.order != order {
            let mut reordered = ReadySet::new(order);
            self.iter().for_each(|(priority, position)| reordered.insert(priority, position));
            *self = reordered;
        }
    }

    /// A position as the order has it, and back: by arrival, time and number have changed places. Numbers
    /// stay as far below the last instant as times do.
    fn turn(&self, position: Position) -> Position {
        match self.order {
            Order::Due => position,
            Order::Arrival => Position { at: Timestamp::from_millis(position.seq), seq: position.at.as_millis() },
        }
    }

    pub fn insert(&mut self, priority: u32, position: Position) {
        let position = self.turn(position);
        let new = self.by_priority.entry(priority).or_default().insert(position);
        self.len += u64::from(new);
        self.urgent += u64::from(new && priority < URGENT_PRIORITY);
    }

    pub fn remove(&mut self, priority: u32, position: Position) -> bool {
        let position = self.turn(position);
        let Some(positions) = self.by_priority.get_mut(&priority) else { return false };
        let removed = positions.remove(position);
        self.len -= u64::from(removed);
        self.urgent -= u64::from(removed && priority < URGENT_PRIORITY);
        if positions.is_empty() {
            self.by_priority.remove(&priority);
        }
        removed
    }

    pub fn contains(&self, priority: u32, position: Position) -> bool {
        self.by_priority.get(&priority).is_some_and(|positions| positions.contains(self.turn(position)))
    }

    /// The next to be handed out.
    pub fn first(&self) -> Option<(u32, Position)> {
        let (priority, positions) = self.by_priority.first_key_value()?;
        positions.first().map(|position| (*priority, self.turn(position)))
    }

    /// What gives way when there are too many: the oldest of the least urgent.
    pub fn least_urgent(&self) -> Option<(u32, Position)> {
        let (priority, positions) = self.by_priority.last_key_value()?;
        positions.first().map(|position| (*priority, self.turn(position)))
    }

    /// All of them, next one first.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Position)> {
        let all = self.by_priority.iter();
        all.flat_map(|(priority, positions)| positions.iter().map(|position| (*priority, self.turn(position))))
    }

    /// Those from this one on, next one first.
    pub fn from(&self, priority: u32, position: Position) -> impl Iterator<Item = (u32, Position)> {
        let first = self.turn(position);
        let of_priority = self.by_priority.get(&priority).into_iter().flat_map(move |positions| positions.from(first));
        let of_others = self.by_priority.range((Bound::Excluded(priority), Bound::Unbounded));
        let of_others =
            of_others.flat_map(|(priority, positions)| positions.iter().map(|position| (*priority, position)));
        let all = of_priority.map(move |position| (priority, position)).chain(of_others);
        all.map(|(priority, position)| (priority, self.turn(position)))
    }

    /// Since when the delivery has been ready that was ready first, of those that are first of their priority. With
    /// thousands of priorities it is looked for among the most and the least urgent.
    pub fn oldest(&self) -> Option<Timestamp> {
        let firsts = || self.by_priority.values().filter_map(|positions| positions.first());
        let outermost = firsts().take(OUTERMOST).chain(firsts().rev().take(OUTERMOST));
        outermost.map(|position| self.turn(position).at).min()
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// How many of them are urgent.
    pub fn urgent(&self) -> u64 {
        self.urgent
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at: u64, seq: u64) -> Position {
        Position { at: Timestamp::from_millis(at), seq }
    }

    #[test]
    fn priority_comes_before_time_and_time_before_arrival() {
        let mut ready = ReadySet::default();
        for (priority, position) in [(2, at(1, 1)), (1, at(9, 2)), (1, at(5, 4)), (1, at(5, 3))] {
            ready.insert(priority, position);
        }
        let order: Vec<u64> = ready.iter().map(|(_, position)| position.seq).collect();
        assert_eq!(order, [3, 4, 2, 1]);
        assert_eq!(ready.first(), Some((1, at(5, 3))));
    }

    #[test]
    fn by_arrival_time_does_not_count() {
        let mut ready = ReadySet::new(Order::Arrival);
        let entries = [(2, at(1, 1)), (1, at(9, 2)), (1, at(5, 4)), (1, at(7, 3))];
        entries.into_iter().for_each(|(priority, position)| ready.insert(priority, position));
        let in_order = |ready: &ReadySet| ready.iter().collect::<Vec<_>>();
        assert_eq!(in_order(&ready), [(1, at(9, 2)), (1, at(7, 3)), (1, at(5, 4)), (2, at(1, 1))]);
        assert_eq!((ready.first(), ready.least_urgent()), (Some((1, at(9, 2))), Some((2, at(1, 1)))));
        assert!(ready.contains(1, at(7, 3)) && !ready.contains(1, at(3, 7)));
        let from =
            |priority, position| ready.from(priority, position).map(|(_, position)| position.seq).collect::<Vec<_>>();
        assert_eq!(
            (from(0, at(0, 0)), from(1, at(7, 3)), from(2, at(0, 0))),
            (vec![2, 3, 4, 1], vec![3, 4, 1], vec![1])
        );
        ready.reorder(Order::Due);
        assert_eq!(in_order(&ready), [(1, at(5, 4)), (1, at(7, 3)), (1, at(9, 2)), (2, at(1, 1))]);
        ready.reorder(Order::Arrival);
        for (priority, position) in entries {
            assert!(ready.remove(priority, position));
        }
        assert_eq!((ready.len(), ready.urgent(), ready.order()), (0, 0, Order::Arrival));
    }

    #[test]
    fn the_oldest_of_the_least_urgent_gives_way() {
        let mut ready = ReadySet::default();
        for (priority, position) in [(1, at(1, 1)), (7, at(6, 2)), (7, at(5, 3))] {
            ready.insert(priority, position);
        }
        assert_eq!(ready.least_urgent(), Some((7, at(5, 3))));
    }

    #[test]
    fn the_length_counts_each_entry_once() {
        let mut ready = ReadySet::default();
        ready.insert(1, at(1, 1));
        ready.insert(1, at(1, 1));
        ready.insert(URGENT_PRIORITY - 1, at(1, 2));
        ready.insert(URGENT_PRIORITY, at(1, 3));
        assert_eq!((ready.len(), ready.urgent()), (3, 2));
        assert!(ready.remove(1, at(1, 1)));
        assert!(!ready.remove(1, at(1, 1)));
        assert!(ready.remove(URGENT_PRIORITY, at(1, 3)));
        assert_eq!((ready.len(), ready.urgent()), (1, 1));
        assert!(ready.remove(URGENT_PRIORITY - 1, at(1, 2)));
        assert!(ready.is_empty() && ready.urgent() == 0);
    }
}
