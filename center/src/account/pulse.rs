//! How a node is doing this very moment, in a few numbers: for those who look every second.

use punctual_core::Timestamp;

use super::{Happened, Spread};

/// How a node, or several of them, are doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// When the first of them started.
    pub started_at: Timestamp,
    /// How often what has happened to all topics since then, those included that are deleted.
    pub happened: Happened,
    /// How many requests were not carried out since then.
    pub refused: u64,
    /// How late deliveries were handed over in the last seconds, in microseconds.
    pub lateness: Spread,
    /// What has happened to the topics that were asked for, in their order.
    pub topics: Vec<Happened>,
}

impl Pulse {
    /// Adds that of another node.
    pub fn add(&mut self, other: &Pulse) {
        self.started_at = self.started_at.min(other.started_at);
        self.happened.add(&other.happened);
        self.refused = self.refused.saturating_add(other.refused);
        self.lateness.add(&other.lateness);
        self.topics.iter_mut().zip(&other.topics).for_each(|(sum, happened)| sum.add(happened));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pulses_of_nodes_add_up() {
        let happened = |fired| Happened { fired, ..Happened::default() };
        let pulse = |value: u64| Pulse {
            started_at: Timestamp::from_millis(value),
            happened: happened(value),
            refused: value,
            lateness: Spread::of([(value, 1)]),
            topics: vec![happened(1), happened(value)],
        };
        let mut sum = pulse(7);
        sum.add(&pulse(3));
        assert_eq!((sum.started_at, sum.happened.fired, sum.refused), (Timestamp::from_millis(3), 10, 10));
        assert_eq!((sum.lateness, sum.topics), (Spread::of([(3, 1), (7, 1)]), vec![happened(2), happened(10)]));
    }
}
