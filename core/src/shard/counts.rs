//! Counts by topic, queue and state, and the one place that says what a row counts as.

use super::Shard;
use super::desk::Slot;
use super::directory::{Queue, Topic};
use crate::answer::First;
use crate::name::Name;
use crate::state::Phase;
use crate::store::{Table, TallyKind};

/// How much a shard, or a node, holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By topic, in the order of their names.
    pub topics: Vec<TopicCounts>,
    /// By queue, in the order of their names.
    pub queues: Vec<QueueCounts>,
}

/// How much a topic holds. A task that was broadcast counts once for each open delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicCounts {
    /// The topic.
    pub name: Name,
    /// Waiting for their time or for a consumer.
    pub waiting: u64,
    /// With a consumer.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
    /// Finished and still kept.
    pub history: u64,
}

/// How much a queue holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueCounts {
    /// The queue.
    pub name: Name,
    /// Waiting for a consumer.
    pub ready: u64,
    /// Those of them whose priority is below [`URGENT_PRIORITY`](crate::URGENT_PRIORITY).
    pub urgent: u64,
    /// With a consumer.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
}

impl Counts {
    /// Both together, for counts over several shards.
    #[must_use]
    pub fn plus(mut self, other: Counts) -> Counts {
        for topic in other.topics {
            match self.topics.binary_search_by(|known| known.name.cmp(&topic.name)) {
                Ok(index) => {
                    let known = &mut self.topics[index];
                    known.waiting += topic.waiting;
                    known.leased += topic.leased;
                    known.dead += topic.dead;
                    known.history += topic.history;
                }
                Err(index) => self.topics.insert(index, topic),
            }
        }
        for queue in other.queues {
            match self.queues.binary_search_by(|known| known.name.cmp(&queue.name)) {
                Ok(index) => {
                    let known = &mut self.queues[index];
                    known.ready += queue.ready;
                    known.urgent += queue.urgent;
                    known.leased += queue.leased;
                    known.dead += queue.dead;
                }
                Err(index) => self.queues.insert(index, queue),
            }
        }
        self
    }
}

impl TopicCounts {
    fn of(topic: &Topic) -> TopicCounts {
        TopicCounts {
            name: topic.name.clone(),
            waiting: topic.count(TallyKind::Waiting),
            leased: topic.count(TallyKind::TopicLeased),
            dead: topic.count(TallyKind::TopicDead),
            history: topic.count(TallyKind::History),
        }
    }
}

impl QueueCounts {
    fn of(queue: &Queue) -> QueueCounts {
        QueueCounts {
            name: queue.name.clone(),
            ready: queue.ready.len(),
            urgent: queue.ready.urgent(),
            leased: queue.count(TallyKind::QueueLeased),
            dead: queue.count(TallyKind::QueueDead),
        }
    }
}

impl<R> Shard<R> {
    /// How much there is, by topic, queue and state.
    pub fn counts(&self) -> Counts {
        let topics = self.directory.topics().map(TopicCounts::of);
        let queues = self.directory.queues().map(QueueCounts::of);
        Counts { topics: topics.collect(), queues: queues.collect() }
    }

    /// How much the topic and the queue of this name hold, as far as they are there.
    pub fn counts_of(&self, name: &Name) -> Counts {
        let topic = self.directory.topic_index(name).map(|index| TopicCounts::of(self.directory.topic(index)));
        let queue = self.directory.queue_index(name).map(|index| QueueCounts::of(self.directory.queue(index)));
        Counts { topics: topic.into_iter().collect(), queues: queue.into_iter().collect() }
    }

    /// The delivery that a queue would hand out next, paused or not.
    pub(super) fn first_in(&self, queue: &Name) -> Option<First> {
        let index = self.directory.queue_index(queue)?;
        let (priority, position) = self.directory.queue(index).ready.first()?;
        Some(First { priority, position })
    }

    /// Notes that a row is about to change: it is taken off the counts as it was, and
    /// [`count_touched`](Shard::count_touched) counts it as it is at the end of the step.
    pub(super) fn touch(&mut self, slot: Slot) {
        if self.desk.touch(slot) {
            self.count_row(slot, -1);
        }
    }

    pub(super) fn count_touched(&mut self, by: i64) {
        for index in 0..self.desk.touched().len() {
            let slot = self.desk.touched()[index];
            if !self.desk[slot].gone {
                self.count_row(slot, by);
            }
        }
    }

    /// Looks at the counts in the middle of a step, as if it ended here.
    pub(super) fn look_at_counts<T>(&mut self, look: impl Fn(&Shard<R>) -> T) -> T {
        self.count_touched(1);
        let seen = look(self);
        self.count_touched(-1);
        seen
    }

    fn count_row(&mut self, slot: Slot, by: i64) {
        let row = &self.desk[slot];
        let (topic, position) = (row.topic, row.position());
        let (of_topic, of_queue) = match (row.table, &row.state.phase) {
            (Table::Live, Phase::Waiting) => {
                self.forecast.count(position, by);
                (TallyKind::Waiting, None)
            }
            (Table::Live, Phase::Leased { .. }) => (TallyKind::TopicLeased, Some(TallyKind::QueueLeased)),
            (Table::Live, Phase::Forwarding { .. }) | (Table::Dead, _) => {
                (TallyKind::TopicDead, Some(TallyKind::QueueDead))
            }
            (Table::History, _) => (TallyKind::History, None),
            (Table::Live | Table::Settings, _) => return,
        };
        self.directory.count_topic(topic, of_topic, by);
        let queue = of_queue.and(self.desk[slot].state.queue.as_ref());
        if let (Some(kind), Some(queue)) = (of_queue, queue.and_then(|queue| self.directory.queue_index(queue))) {
            self.directory.count_queue(queue, kind, by);
        }
    }
}
