//! Counts by topic, queue and state, and the one place that says what a row counts as.

use super::Shard;
use super::desk::Slot;
use super::directory::{Queue, Topic};
use crate::answer::First;
use crate::command::Chosen;
use crate::name::Name;
use crate::settings::{QueueSettings, TopicSettings};
use crate::state::{Phase, State, UnreadableState};
use crate::store::{Row, Table, Tally, TallyKind};
use crate::time::Timestamp;

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

/// How much there is in all topics and queues together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// How many topics there are.
    pub topics: u64,
    /// How many queues there are.
    pub queues: u64,
    /// Waiting for their time or for a consumer.
    pub waiting: u64,
    /// Those of them that wait for a consumer.
    pub ready: u64,
    /// Those of them whose priority is below [`URGENT_PRIORITY`](crate::URGENT_PRIORITY).
    pub urgent: u64,
    /// With a consumer.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
    /// Dead letters that died in a queue.
    pub dead_in_queues: u64,
    /// Finished and still kept.
    pub history: u64,
}

impl Total {
    pub(super) fn add(&mut self, kind: TallyKind, by: i64) {
        let count = match kind {
            TallyKind::Waiting => &mut self.waiting,
            TallyKind::TopicLeased => &mut self.leased,
            TallyKind::TopicDead => &mut self.dead,
            TallyKind::QueueDead => &mut self.dead_in_queues,
            TallyKind::History => &mut self.history,
            // All that is leased is leased from a queue; what falls due when is not of a topic or queue.
            TallyKind::QueueLeased | TallyKind::DueDay | TallyKind::DueMinute => return,
        };
        // Within a step a count may go below zero before it comes back.
        *count = count.wrapping_add_signed(by);
    }

    /// Both together, for totals over several shards. A topic or queue may be in several: the greater number is told.
    #[must_use]
    pub fn plus(self, other: Total) -> Total {
        Total {
            topics: self.topics.max(other.topics),
            queues: self.queues.max(other.queues),
            waiting: self.waiting + other.waiting,
            ready: self.ready + other.ready,
            urgent: self.urgent + other.urgent,
            leased: self.leased + other.leased,
            dead: self.dead + other.dead,
            dead_in_queues: self.dead_in_queues + other.dead_in_queues,
            history: self.history + other.history,
        }
    }
}

/// A topic: its settings and how much it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicView {
    /// What it is told to do.
    pub settings: TopicSettings,
    /// How much it holds.
    pub counts: TopicCounts,
}

/// A queue: its settings and how much it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// What it is told to do.
    pub settings: QueueSettings,
    /// How much it holds.
    pub counts: QueueCounts,
    /// Since when the delivery has been ready that was ready first. In a queue ordered by arrival: of those that are
    /// first in line, one for each priority.
    pub oldest: Option<Timestamp>,
}

impl TopicCounts {
    /// Adds what another shard has of the same topic.
    pub fn add(&mut self, other: &TopicCounts) {
        self.waiting += other.waiting;
        self.leased += other.leased;
        self.dead += other.dead;
        self.history += other.history;
    }

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
    /// Adds what another shard has of the same queue.
    pub fn add(&mut self, other: &QueueCounts) {
        self.ready += other.ready;
        self.urgent += other.urgent;
        self.leased += other.leased;
        self.dead += other.dead;
    }

    fn of(queue: &Queue) -> QueueCounts {
        QueueCounts {
            name: queue.name.clone(),
            ready: queue.waiting(),
            urgent: queue.ready.urgent(),
            leased: queue.count(TallyKind::QueueLeased),
            dead: queue.count(TallyKind::QueueDead),
        }
    }
}

impl<R> Shard<R> {
    /// How much there is, by topic, queue and state.
    pub fn counts(&self) -> Counts {
        let topics = self.directory.topics_after(None).map(TopicCounts::of);
        let queues = self.directory.queues_after(None).map(QueueCounts::of);
        Counts { topics: topics.collect(), queues: queues.collect() }
    }

    /// How much there is in all.
    pub(super) fn total(&self) -> Total {
        self.directory.total()
    }

    pub(super) fn view_topics(&self, chosen: &Chosen) -> Vec<TopicView> {
        let view = |topic: &Topic| TopicView { settings: topic.settings.clone(), counts: TopicCounts::of(topic) };
        match chosen {
            Chosen::After { name, limit } => {
                self.directory.topics_after(name.as_ref()).take(*limit).map(view).collect()
            }
            Chosen::Named(names) => {
                let index = |name: &Name| self.directory.topic_index(name);
                names.iter().filter_map(index).map(|index| view(self.directory.topic(index))).collect()
            }
        }
    }

    pub(super) fn view_queues(&self, chosen: &Chosen) -> Vec<QueueView> {
        let view = |queue: &Queue| QueueView {
            settings: queue.settings.clone(),
            counts: QueueCounts::of(queue),
            oldest: queue.ready.oldest(),
        };
        match chosen {
            Chosen::After { name, limit } => {
                self.directory.queues_after(name.as_ref()).take(*limit).map(view).collect()
            }
            Chosen::Named(names) => {
                let index = |name: &Name| self.directory.queue_index(name);
                names.iter().filter_map(index).map(|index| view(self.directory.queue(index))).collect()
            }
        }
    }

    /// The delivery that a queue would hand out next, paused or not.
    pub(super) fn first_in(&self, queue: &Name) -> Option<First> {
        let index = self.directory.queue_index(queue)?;
        let (priority, position) = self.directory.queue(index).ready.first()?;
        Some(First { priority, position })
    }

    /// A row is about to change: it is taken off the counts as it was, and
    /// [`count_touched`](Shard::count_touched) counts it as it is at the end of the step.
    pub(super) fn touch(&mut self, slot: Slot) {
        if self.desk.touch(slot) {
            self.count_row(slot, -1);
        }
    }

    pub(super) fn count_touched(&mut self, by: i64) {
        for index in 0..self.desk.touched().len() {
            let slot = self.desk.touched()[index];
            if !self.desk[slot].is_gone() {
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
        let (topic, position) = (row.topic(), row.position());
        let Some((of_topic, of_queue)) = kinds(row.table(), &row.state.phase) else { return };
        if of_topic == TallyKind::Waiting {
            self.forecast.count(position, by);
        }
        self.directory.count_topic(topic, of_topic, by);
        let queue = of_queue.and(self.desk[slot].state.queue.as_ref());
        if let (Some(kind), Some(queue)) = (of_queue, queue.and_then(|queue| self.directory.queue_index(queue))) {
            self.directory.count_queue(queue, kind, by);
            if kind == TallyKind::QueueLeased {
                if by > 0 { self.directory.hold(queue, position) } else { self.directory.let_loose(queue, position) }
            }
        }
    }
}

/// The tallies in which a row of tasks counts, by topic and queue: those by time follow from the waiting ones.
pub fn counted_in(row: &Row) -> Result<Vec<Tally>, UnreadableState> {
    let state = State::read_back(&row.state)?;
    let Some((of_topic, of_queue)) = kinds(row.table, &state.phase) else { return Ok(Vec::new()) };
    let of_queue = of_queue.zip(state.queue.as_ref()).map(|(kind, queue)| Tally::named(kind, queue));
    let topic = Name::read_back(row.key.topic()).map_err(|_| UnreadableState::Damaged)?;
    Ok([Tally::named(of_topic, &topic)].into_iter().chain(of_queue).collect())
}

/// What a row counts as: for its topic, and for its queue.
pub(super) fn kinds(table: Table, phase: &Phase) -> Option<(TallyKind, Option<TallyKind>)> {
    match (table, phase) {
        (Table::Live, Phase::Waiting) => Some((TallyKind::Waiting, None)),
        (Table::Live, Phase::Leased { .. }) => Some((TallyKind::TopicLeased, Some(TallyKind::QueueLeased))),
        (Table::Live, Phase::Forwarding { .. }) | (Table::Dead, _) => {
            Some((TallyKind::TopicDead, Some(TallyKind::QueueDead)))
        }
        (Table::History, _) => Some((TallyKind::History, None)),
        (Table::Live | Table::Settings, _) => None,
    }
}
