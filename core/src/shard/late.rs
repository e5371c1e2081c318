//! Timers whose time has come and that have not fired yet, by topic.
//!
//! The wheel gives timers in the order of their times. If so many come at once that one step cannot fire them all, the
//! topics take turns: a herd of one topic does not hold up the few tasks of another. Within a topic the order of time
//! stays.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use super::directory::TopicIndex;
use crate::store::Position;
use crate::time::Timestamp;

/// How many timers of one topic fire before it is another topic's turn.
const TURN: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Late {
    by_topic: BTreeMap<TopicIndex, VecDeque<Position>>,
    /// Whose turn was the last one.
    last: Option<TopicIndex>,
    len: usize,
}

impl Late {
    /// Takes in a timer, after all others of its topic.
    pub fn push(&mut self, topic: TopicIndex, position: Position) {
        self.by_topic.entry(topic).or_default().push_back(position);
        self.len += 1;
    }

    /// Takes out at most so many, topic by topic in turn.
    pub fn take(&mut self, most: usize) -> Vec<(TopicIndex, Position)> {
        let mut taken = Vec::with_capacity(most.min(self.len));
        while taken.len() < most {
            let Some(topic) = self.next() else { break };
            let timers = self.by_topic.get_mut(&topic).expect("it is its turn");
            let turn = TURN.min(most - taken.len()).min(timers.len());
            taken.extend(timers.drain(..turn).map(|position| (topic, position)));
            if timers.is_empty() {
                self.by_topic.remove(&topic);
            }
            self.last = Some(topic);
        }
        self.len -= taken.len();
        taken
    }

    /// Whose turn it is.
    fn next(&self) -> Option<TopicIndex> {
        let after = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.by_topic.range((after, Bound::Unbounded)).next().or_else(|| self.by_topic.first_key_value());
        next.map(|(topic, _)| *topic)
    }

    /// Whether one of them is of a time before this one. Looks at all of them.
    pub fn has_before(&self, at: Timestamp) -> bool {
        self.by_topic.values().flatten().any(|position| position.at < at)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}
