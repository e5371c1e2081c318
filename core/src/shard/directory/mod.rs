//! The shard's topics and queues, what is ready in them, and which of them are being deleted.
//!
//! **Invariant**: what is deleted stays here until the end of the step in which its deletion is over, so that a place
//! means the same thing throughout a step.

mod counting;
mod routing;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

pub(super) use routing::Route;

use super::counts::Total;
use super::entries::Entries;
use super::held::Held;
use super::ready::ReadySet;
use crate::name::Name;
use crate::settings::{Overflow, QueueSettings, TopicSettings};
use crate::store::{Position, Tally};
use crate::time::{Millis, Timestamp};
use counting::{Count, QUEUE_KINDS, TOPIC_KINDS};

/// A topic's place in the directory. It stays the same while the topic exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TopicIndex(u32);

/// A queue's place in the directory. It stays the same while the queue exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueueIndex(u32);

#[derive(Debug)]
pub(super) struct Topic {
    pub name: Name,
    pub settings: TopicSettings,
    /// It is being deleted: nothing new is taken.
    pub closing: Option<Closing>,
    counts: [Count; 4],
    /// The queues into which its tasks went since where they go was last changed, and those from before in which
    /// some may still be ready.
    fed: BTreeSet<QueueIndex>,
    fed_before: BTreeSet<QueueIndex>,
}

#[derive(Debug)]
pub(super) struct Queue {
    pub name: Name,
    pub settings: QueueSettings,
    /// It is being deleted: nothing new is taken.
    pub closing: Option<Closing>,
    /// What consumers may get, next one first.
    pub ready: ReadySet,
    /// What consumers have, as far as it is in memory.
    pub held: Held,
    /// What was pushed out and has to be read before it can be given up. It is not handed out any more, but counts.
    leaving: BTreeSet<Position>,
    counts: [Count; 2],
}

/// A topic or queue that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Closed {
    Topic(TopicIndex),
    Queue(QueueIndex),
}

/// A deletion that has begun. From then on all that the topic or queue held is gone for those who ask; its rows are
/// cleared away page by page.
#[derive(Debug)]
pub(super) struct Closing {
    /// When it began. What came due before goes with its queue, also if it has not fired yet.
    pub since: Timestamp,
    /// The first number that a row can have that came in after it began: such a row never was there.
    pub first_after: u64,
    /// Whether what it holds goes with it. If not, it held nothing, and what comes due meanwhile waits for the end.
    pub is_forced: bool,
    /// How many tasks, deliveries and dead letters have gone with it so far.
    pub gone: u64,
    /// What has come due meanwhile and goes to the next queue of this name.
    pub detained: Vec<(TopicIndex, Position)>,
}

impl Closing {
    pub fn new(since: Timestamp, first_after: u64, is_forced: bool) -> Closing {
        Closing { since, first_after, is_forced, gone: 0, detained: Vec::new() }
    }
}
impl Queue {
    /// How many deliveries wait for a consumer, or to be given up since there are too many.
    pub fn waiting(&self) -> u64 {
        self.ready.len() + self.leaving.len() as u64
    }

    /// Whether a row of this priority at this position stands here.
    pub fn holds(&self, priority: u32, position: Position) -> bool {
        self.ready.contains(priority, position) || self.leaving.contains(&position)
    }

    pub fn is_paused(&self, now: Timestamp) -> bool {
        self.settings.is_paused(now)
    }

    /// Whether it is full and what comes then is not taken.
    pub fn refuses_newcomers(&self) -> bool {
        self.is_full_with(0) && self.settings.overflow == Overflow::Refuse
    }

    /// Whether it has no room for another one if so many more come.
    pub fn is_full_with(&self, more: u64) -> bool {
        self.settings.max_length.is_some_and(|max| self.ready.len() + more >= max)
    }
}

#[derive(Debug, Default)]
pub(super) struct Directory {
    topics: Entries<Topic>,
    topic_names: BTreeMap<Name, TopicIndex>,
    queues: Entries<Queue>,
    queue_names: BTreeMap<Name, QueueIndex>,
    counted_topics: BTreeSet<TopicIndex>,
    counted_queues: BTreeSet<QueueIndex>,
    /// The topics that say that they feed a queue, by its name, whether it exists or not.
    feeders: BTreeMap<Name, BTreeSet<TopicIndex>>,
    /// The sum of all counts, so that nobody has to add them up.
    total: Total,
    /// What counts of nothing that is there are wrong by, which the store has yet to be told.
    stale: Vec<(Tally, i64)>,
    /// How many topics and queues are being deleted.
    closing: usize,
    /// Topics and queues to take out at the end of this step.
    closed: BTreeSet<Closed>,
    /// Queues of which something is held.
    holding: BTreeSet<QueueIndex>,
    /// Queues that are paused until a time that comes.
    pauses: BTreeSet<(Timestamp, Name)>,
}

impl Directory {
    pub fn topic_index(&self, name: &str) -> Option<TopicIndex> {
        self.topic_names.get(name).copied()
    }

    pub fn queue_index(&self, name: &str) -> Option<QueueIndex> {
        self.queue_names.get(name).copied()
    }

    pub fn topic(&self, index: TopicIndex) -> &Topic {
        self.topics.get(index.0).expect("a topic exists while something refers to it")
    }

    fn topic_mut(&mut self, index: TopicIndex) -> &mut Topic {
        self.topics.get_mut(index.0).expect("a topic exists while something refers to it")
    }

    pub fn queue(&self, index: QueueIndex) -> &Queue {
        self.queues.get(index.0).expect("a queue exists while something refers to it")
    }

    fn queue_mut(&mut self, index: QueueIndex) -> &mut Queue {
        self.queues.get_mut(index.0).expect("a queue exists while something refers to it")
    }

    /// The topics whose names come after this one, in the order of their names.
    pub fn topics_after(&self, name: Option<&Name>) -> impl Iterator<Item = &Topic> {
        after(&self.topic_names, name).map(|index| self.topic(*index))
    }

    /// The queues whose names come after this one, in the order of their names.
    pub fn queues_after(&self, name: Option<&Name>) -> impl Iterator<Item = &Queue> {
        after(&self.queue_names, name).map(|index| self.queue(*index))
    }

    /// Enters a topic that is not there yet.
    pub fn add_topic(&mut self, name: &Name, settings: TopicSettings) -> TopicIndex {
        let topic = Topic {
            name: name.clone(),
            settings,
            closing: None,
            counts: Default::default(),
            fed: BTreeSet::new(),
            fed_before: BTreeSet::new(),
        };
        let index = TopicIndex(self.topics.enter(topic));
        let before = self.topic_names.insert(name.clone(), index);
        assert!(before.is_none(), "topic {name} is entered once");
        self.enter_feeder(index);
        index
    }

    /// Enters a queue that is not there yet.
    pub fn add_queue(&mut self, name: &Name, settings: QueueSettings) -> QueueIndex {
        self.enter_pause(name, settings.paused_until);
        let queue = Queue {
            name: name.clone(),
            ready: ReadySet::new(settings.order),
            held: Held::default(),
            settings,
            closing: None,
            leaving: BTreeSet::new(),
            counts: Default::default(),
        };
        let index = QueueIndex(self.queues.enter(queue));
        let before = self.queue_names.insert(name.clone(), index);
        assert!(before.is_none(), "queue {name} is entered once");
        self.reroute_to(name);
        index
    }

    /// Begins to delete a topic.
    pub fn close_topic(&mut self, index: TopicIndex, closing: Closing) {
        self.closing += 1;
        self.topic_mut(index).closing = Some(closing);
    }

    /// Begins to delete a queue.
    pub fn close_queue(&mut self, index: QueueIndex, closing: Closing) {
        self.closing += 1;
        self.queue_mut(index).closing = Some(closing);
    }

    /// The deletion of what is being deleted.
    pub fn closing_mut(&mut self, what: Closed) -> &mut Closing {
        let closing = match what {
            Closed::Topic(index) => &mut self.topic_mut(index).closing,
            Closed::Queue(index) => &mut self.queue_mut(index).closing,
        };
        closing.as_mut().expect("it is being deleted")
    }

    /// A deletion is over: what it is about goes at the end of this step.
    pub fn let_go(&mut self, what: Closed) {
        self.closed.insert(what);
    }

    /// Takes out what is deleted; says what waited for that.
    pub fn remove_closed(&mut self) -> Vec<(TopicIndex, Position)> {
        let mut detained = Vec::new();
        for closed in std::mem::take(&mut self.closed) {
            match closed {
                Closed::Topic(index) => self.remove_topic(index),
                Closed::Queue(index) => detained.append(&mut self.remove_queue(index)),
            }
        }
        detained
    }

    /// The clock went back: deletions have begun by now, not later, and pauses that were over may not be.
    pub fn go_back(&mut self, now: Timestamp) {
        let paused = self.queues_after(None);
        let paused = paused.filter_map(|queue| Some((queue.settings.paused_until?, queue.name.clone())));
        self.pauses = paused.filter(|(until, _)| (now..Timestamp::NEVER).contains(until)).collect();
        if self.is_at_rest() {
            return;
        }
        for index in self.queue_names.values().copied().collect::<Vec<_>>() {
            if let Some(closing) = &mut self.queue_mut(index).closing {
                closing.since = closing.since.min(now);
            }
        }
    }

    /// The clock went back: what was pushed out of a full queue and is not due any more is not out. Says what it was.
    pub fn stop_leaving_after(&mut self, now: Timestamp) -> Vec<Position> {
        let first = Position::start_of(now.plus(Millis(1)));
        let mut stopped = Vec::new();
        for index in self.queue_names.values() {
            let queue = self.queues.get_mut(index.0).expect("a queue exists while it has a name");
            stopped.extend(queue.leaving.split_off(&first));
        }
        stopped
    }

    /// Whether nothing is being deleted.
    pub fn is_at_rest(&self) -> bool {
        self.closing == 0
    }

    fn remove_topic(&mut self, index: TopicIndex) {
        self.leave_feeder(index);
        let topic = self.topics.remove(index.0).expect("the topic exists");
        self.topic_names.remove(&topic.name);
        self.counted_topics.remove(&index);
        self.closing -= usize::from(topic.closing.is_some());
        for (kind, count) in TOPIC_KINDS.iter().zip(topic.counts) {
            self.total.add(*kind, -count.now);
        }
    }

    fn remove_queue(&mut self, index: QueueIndex) -> Vec<(TopicIndex, Position)> {
        let queue = self.queues.remove(index.0).expect("the queue exists");
        self.leave_pause(&queue.name, queue.settings.paused_until);
        self.queue_names.remove(&queue.name);
        self.counted_queues.remove(&index);
        self.holding.remove(&index);
        for (kind, count) in QUEUE_KINDS.iter().zip(queue.counts) {
            self.total.add(*kind, -count.now);
        }
        self.total.ready -= queue.ready.len();
        self.total.urgent -= queue.ready.urgent();
        self.closing -= usize::from(queue.closing.is_some());
        queue.closing.map(|closing| closing.detained).unwrap_or_default()
    }

    /// A delivery of a queue is with a consumer until this time.
    pub fn hold(&mut self, index: QueueIndex, position: Position) {
        self.queue_mut(index).held.insert(position);
        self.holding.insert(index);
    }

    /// A delivery of a queue was with a consumer until this time, and is not any more.
    pub fn let_loose(&mut self, index: QueueIndex, position: Position) {
        let held = &mut self.queue_mut(index).held;
        held.remove(position);
        if held.is_empty() {
            self.holding.remove(&index);
        }
    }

    /// The queues of which something is held.
    pub fn holding(&self) -> impl Iterator<Item = &Queue> {
        self.holding.iter().map(|index| self.queue(*index))
    }

    /// Puts a delivery into a queue's ready set; says whether it is the only one there.
    pub fn enter_ready(&mut self, index: QueueIndex, priority: u32, position: Position) -> bool {
        self.change_ready(index, |ready| ready.insert(priority, position));
        self.queue(index).ready.len() == 1
    }

    /// Takes a delivery out of a queue's ready set; says whether it was there and the last one.
    pub fn leave_ready(&mut self, index: QueueIndex, priority: u32, position: Position) -> bool {
        self.change_ready(index, |ready| ready.remove(priority, position)) && self.queue(index).ready.is_empty()
    }

    /// Takes a delivery out of a queue's ready set that is not in memory: it is to be read and given up.
    pub fn push_out(&mut self, index: QueueIndex, priority: u32, position: Position) {
        self.leave_ready(index, priority, position);
        self.queue_mut(index).leaving.insert(position);
    }

    /// A delivery that was pushed out of a queue moves, or is given up; says whether it was still out. The queue may be
    /// gone, and another one be at its place.
    pub fn stop_leaving(&mut self, index: QueueIndex, position: Position) -> bool {
        self.queues.get_mut(index.0).is_some_and(|queue| queue.leaving.remove(&position))
    }

    fn change_ready<T>(&mut self, index: QueueIndex, change: impl FnOnce(&mut ReadySet) -> T) -> T {
        let ready = &mut self.queues.get_mut(index.0).expect("a queue exists while something refers to it").ready;
        let (length, urgent) = (ready.len(), ready.urgent());
        let changed = change(ready);
        self.total.ready = self.total.ready + ready.len() - length;
        self.total.urgent = self.total.urgent + ready.urgent() - urgent;
        changed
    }

    /// Gives a queue other settings; says how they were.
    pub fn set_queue(&mut self, index: QueueIndex, settings: QueueSettings) -> QueueSettings {
        let queue = self.queue_mut(index);
        queue.ready.reorder(settings.order);
        let (name, until) = (queue.name.clone(), settings.paused_until);
        let before = std::mem::replace(&mut queue.settings, settings);
        self.leave_pause(&name, before.paused_until);
        self.enter_pause(&name, until);
        before
    }

    fn enter_pause(&mut self, queue: &Name, until: Option<Timestamp>) {
        if let Some(until) = until.filter(|until| *until < Timestamp::NEVER) {
            self.pauses.insert((until, queue.clone()));
        }
    }

    fn leave_pause(&mut self, queue: &Name, until: Option<Timestamp>) {
        if let Some(until) = until {
            self.pauses.remove(&(until, queue.clone()));
        }
    }

    /// When the next pause ends.
    pub fn next_pause_end(&self) -> Timestamp {
        self.pauses.first().map_or(Timestamp::NEVER, |(until, _)| *until)
    }

    /// Pauses that are over need not be waited for.
    pub fn forget_pauses(&mut self, now: Timestamp) {
        while self.pauses.first().is_some_and(|(until, _)| *until <= now) {
            self.pauses.pop_first();
        }
    }

    /// Gives a topic other settings; says how they were.
    pub fn set_topic(&mut self, index: TopicIndex, settings: TopicSettings) -> TopicSettings {
        self.leave_feeder(index);
        let before = std::mem::replace(&mut self.topic_mut(index).settings, settings);
        self.enter_feeder(index);
        if before.feeds != self.topic(index).settings.feeds {
            self.reroute(index);
        }
        before
    }
}

/// What stands after a name.
fn after<'a, T>(names: &'a BTreeMap<Name, T>, name: Option<&Name>) -> impl Iterator<Item = &'a T> {
    let from = name.map_or(Bound::Unbounded, |name| Bound::Excluded(name.as_str()));
    names.range::<str, _>((from, Bound::Unbounded)).map(|(_, entry)| entry)
}
