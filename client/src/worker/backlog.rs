//! Deliveries that were fetched and wait for a free place, the most urgent first.
//!
//! A later fetch may bring something more urgent than what waits; it overtakes.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use punctual_wire::{Delivery, Time};

/// What waits, in the order of the server's queues: by priority, then by time, then by arrival.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    heap: BinaryHeap<Waiting>,
    arrivals: u64,
}

#[derive(Debug)]
struct Waiting {
    /// Whatever is least comes first.
    rank: (u32, Time, u64),
    /// The number under which its lease is kept.
    number: u64,
    delivery: Delivery,
}

impl Backlog {
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    pub fn push(&mut self, number: u64, delivery: Delivery) {
        let rank = (delivery.priority, delivery.due, self.arrivals);
        self.arrivals += 1;
        self.heap.push(Waiting { rank, number, delivery });
    }

    /// The most urgent one.
    pub fn pop(&mut self) -> Option<(u64, Delivery)> {
        self.heap.pop().map(|waiting| (waiting.number, waiting.delivery))
    }
}

impl Ord for Waiting {
    /// The heap gives the greatest, so the order is turned around.
    fn cmp(&self, other: &Waiting) -> Ordering {
        other.rank.cmp(&self.rank)
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.rank == other.rank
    }
}

impl Eq for Waiting {}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(priority: u32, due: u64) -> Delivery {
        let json = serde_json::json!({
            "topic": "t", "id": "i", "queue": "q", "priority": priority, "attempt": 1, "scheduled_at": 0,
            "due": due, "fired_at": due, "lease": "l", "until": 99,
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn the_most_urgent_comes_first_then_the_earliest_then_the_first_to_arrive() {
        let mut backlog = Backlog::default();
        for (number, (priority, due)) in [(5, 10), (1, 30), (5, 5), (1, 20), (5, 5)].into_iter().enumerate() {
            backlog.push(number as u64, delivery(priority, due));
        }
        let order: Vec<u64> = std::iter::from_fn(|| backlog.pop()).map(|(number, _)| number).collect();
        assert_eq!(order, [3, 1, 2, 4, 0]);
    }

    #[test]
    fn what_is_more_urgent_overtakes_what_was_fetched_before() {
        let mut backlog = Backlog::default();
        backlog.push(0, delivery(9, 1));
        backlog.push(1, delivery(9, 2));
        assert_eq!(backlog.pop().map(|(number, _)| number), Some(0));
        backlog.push(2, delivery(0, 3));
        assert_eq!(backlog.pop().map(|(number, _)| number), Some(2));
        assert_eq!(backlog.pop().map(|(number, _)| number), Some(1));
    }
}
