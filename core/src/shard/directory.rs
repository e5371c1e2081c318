//! The shard's topics and queues: their settings and their counts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::counts::Total;
use super::entries::Entries;
use super::ready::ReadySet;
use crate::name::Name;
use crate::settings::{Overflow, QueueSettings, TopicSettings};
use crate::store::{Position, Tally, TallyKind};
use crate::time::{Millis, Timestamp};

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
    pub(super) fed: BTreeSet<QueueIndex>,
    pub(super) fed_before: BTreeSet<QueueIndex>,
}

#[derive(Debug)]
pub(super) struct Queue {
    pub name: Name,
    pub settings: QueueSettings,
    /// It is being deleted: nothing new is taken.
    pub closing: Option<Closing>,
    pub ready: ReadySet,
    /// What was pushed out and has to be read before it can be given up. It is not handed out any more, but counts.
    pub leaving: BTreeSet<Position>,
    counts: [Count; 2],
}

/// A deletion that has begun. From then on all that the topic or queue held is gone for those who ask; its rows are
/// cleared away page by page.
#[derive(Debug)]
pub(super) struct Closing {
    /// When it began. What came due before goes with its queue, also if it has not fired yet.
    pub since: Timestamp,
    /// Whether what it holds goes with it. If not, it held nothing, and what comes due meanwhile waits for the end.
    pub is_forced: bool,
    /// How many tasks, deliveries and dead letters have gone with it so far.
    pub gone: u64,
    /// What has come due meanwhile and goes to the next queue of this name.
    pub detained: Vec<(TopicIndex, Position)>,
}

impl Closing {
    pub fn new(since: Timestamp, is_forced: bool) -> Closing {
        Closing { since, is_forced, gone: 0, detained: Vec::new() }
    }
}

/// A count, and by how much it differs from the stored one.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    now: i64,
    unstored: i64,
}

impl Count {
    fn add(&mut self, by: i64) {
        self.now += by;
        self.unstored += by;
    }
}

const TOPIC_KINDS: [TallyKind; 4] =
    [TallyKind::Waiting, TallyKind::TopicLeased, TallyKind::TopicDead, TallyKind::History];
const QUEUE_KINDS: [TallyKind; 2] = [TallyKind::QueueLeased, TallyKind::QueueDead];

fn slot_of(kinds: &[TallyKind], kind: TallyKind) -> usize {
    kinds.iter().position(|known| *known == kind).expect("the kind belongs to this sort of row")
}

impl Topic {
    pub fn count(&self, kind: TallyKind) -> u64 {
        self.counts[slot_of(&TOPIC_KINDS, kind)].now.max(0) as u64
    }
}

impl Queue {
    pub fn count(&self, kind: TallyKind) -> u64 {
        self.counts[slot_of(&QUEUE_KINDS, kind)].now.max(0) as u64
    }

    /// How many deliveries wait for a consumer, or to be given up since there are too many.
    pub fn waiting(&self) -> u64 {
        self.ready.len() + self.leaving.len() as u64
    }

    /// Whether a row of this priority at this position stands here.
    pub fn holds(&self, priority: u32, position: Position) -> bool {
        self.ready.contains(priority, position) || self.leaving.contains(&position)
    }

    pub fn is_paused(&self, now: Timestamp) -> bool {
        self.settings.paused_until.is_some_and(|until| now < until)
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

/// Where a task goes when it fires.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route {
    Nowhere,
    To(QueueIndex),
    ToSeveral(Vec<QueueIndex>),
    /// Nowhere before the deletion of this queue is over, which may be one of several.
    Detained {
        queue: QueueIndex,
        is_only: bool,
    },
}

impl Route {
    /// The queues that take it now.
    pub fn queues(self) -> Vec<QueueIndex> {
        match self {
            Route::Nowhere | Route::Detained { .. } => vec![],
            Route::To(queue) => vec![queue],
            Route::ToSeveral(queues) => queues,
        }
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

    pub fn topic_mut(&mut self, index: TopicIndex) -> &mut Topic {
        self.topics.get_mut(index.0).expect("a topic exists while something refers to it")
    }

    pub fn queue(&self, index: QueueIndex) -> &Queue {
        self.queues.get(index.0).expect("a queue exists while something refers to it")
    }

    pub fn queue_mut(&mut self, index: QueueIndex) -> &mut Queue {
        self.queues.get_mut(index.0).expect("a queue exists while something refers to it")
    }

    /// The queue at this place, if there is one; it may be another one than there was.
    pub fn queue_there(&mut self, index: QueueIndex) -> Option<&mut Queue> {
        self.queues.get_mut(index.0)
    }

    /// The topics whose names come after this one, in the order of their names.
    pub fn topics_after(&self, name: Option<&Name>) -> impl Iterator<Item = &Topic> {
        after(&self.topic_names, name).map(|index| self.topic(*index))
    }

    /// The queues whose names come after this one, in the order of their names.
    pub fn queues_after(&self, name: Option<&Name>) -> impl Iterator<Item = &Queue> {
        after(&self.queue_names, name).map(|index| self.queue(*index))
    }

    /// All counts together, and how many topics and queues there are.
    pub fn total(&self) -> Total {
        Total { topics: self.topic_names.len() as u64, queues: self.queue_names.len() as u64, ..self.total }
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
        let queue = Queue {
            name: name.clone(),
            ready: ReadySet::new(settings.order),
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

    /// The clock went back: deletions have begun by now, not later.
    pub fn go_back(&mut self, now: Timestamp) {
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

    pub fn remove_topic(&mut self, index: TopicIndex) {
        self.leave_feeder(index);
        let topic = self.topics.remove(index.0).expect("the topic exists");
        self.topic_names.remove(&topic.name);
        self.counted_topics.remove(&index);
        self.closing -= usize::from(topic.closing.is_some());
        for (kind, count) in TOPIC_KINDS.iter().zip(topic.counts) {
            self.total.add(*kind, -count.now);
        }
    }

    /// Takes a queue out; what waited for that comes back.
    pub fn remove_queue(&mut self, index: QueueIndex) -> Vec<(TopicIndex, Position)> {
        let queue = self.queues.remove(index.0).expect("the queue exists");
        self.queue_names.remove(&queue.name);
        self.counted_queues.remove(&index);
        for (kind, count) in QUEUE_KINDS.iter().zip(queue.counts) {
            self.total.add(*kind, -count.now);
        }
        self.total.ready -= queue.ready.len();
        self.total.urgent -= queue.ready.urgent();
        self.closing -= usize::from(queue.closing.is_some());
        queue.closing.map(|closing| closing.detained).unwrap_or_default()
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

    fn change_ready<T>(&mut self, index: QueueIndex, change: impl FnOnce(&mut ReadySet) -> T) -> T {
        let ready = &mut self.queues.get_mut(index.0).expect("a queue exists while something refers to it").ready;
        let (length, urgent) = (ready.len(), ready.urgent());
        let changed = change(ready);
        self.total.ready = self.total.ready + ready.len() - length;
        self.total.urgent = self.total.urgent + ready.urgent() - urgent;
        changed
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

    fn enter_feeder(&mut self, index: TopicIndex) {
        let topic = self.topics.get(index.0).expect("the topic exists");
        for binding in topic.settings.feeds.iter().flatten() {
            self.feeders.entry(binding.queue.clone()).or_default().insert(index);
        }
    }

    fn leave_feeder(&mut self, index: TopicIndex) {
        let topic = self.topics.get(index.0).expect("the topic exists");
        for binding in topic.settings.feeds.iter().flatten() {
            if let Some(feeders) = self.feeders.get_mut(&binding.queue) {
                feeders.remove(&index);
                if feeders.is_empty() {
                    self.feeders.remove(&binding.queue);
                }
            }
        }
    }

    /// Notes that a task of a topic became ready in a queue because of where the topic feeds.
    pub fn note_fed(&mut self, topic: TopicIndex, queue: QueueIndex) {
        self.topic_mut(topic).fed.insert(queue);
    }

    /// A queue is there, or not any more, for those who feed it: their tasks go elsewhere from now on.
    pub fn reroute_to(&mut self, queue: &Name) {
        let named = self.topic_index(queue).filter(|index| self.topic(*index).settings.feeds.is_none());
        let feeders: Vec<TopicIndex> = self.feeders.get(queue).into_iter().flatten().copied().chain(named).collect();
        feeders.into_iter().for_each(|topic| self.reroute(topic));
    }

    /// Where a topic's tasks go is another question from now on: what is ready may stand elsewhere than it would go.
    fn reroute(&mut self, index: TopicIndex) {
        let topic = self.topics.get_mut(index.0).expect("the topic exists");
        topic.fed_before.append(&mut topic.fed);
        let holds_some = |queue: &QueueIndex| self.queues.get(queue.0).is_some_and(|queue| queue.waiting() > 0);
        topic.fed_before.retain(holds_some);
    }

    /// The queues in which tasks of a topic may be ready though they would not go there now.
    pub fn fed_before(&self, topic: TopicIndex) -> impl Iterator<Item = QueueIndex> {
        let there = |queue: &QueueIndex| self.queues.get(queue.0).is_some();
        self.topic(topic).fed_before.iter().copied().filter(there)
    }

    /// The queues that take a task with this routing key, and the names of those that would if they existed.
    pub fn route(&self, topic: TopicIndex, routing_key: &str) -> (Route, Vec<Name>) {
        let topic = self.topic(topic);
        let Some(feeds) = &topic.settings.feeds else {
            return match self.queue_index(&topic.name) {
                Some(index) if self.queue(index).closing.is_some() => {
                    (Route::Detained { queue: index, is_only: true }, Vec::new())
                }
                Some(index) => (Route::To(index), Vec::new()),
                None => (Route::Nowhere, vec![topic.name.clone()]),
            };
        };
        let mut found: Vec<QueueIndex> = Vec::new();
        let mut missing: Vec<Name> = Vec::new();
        for binding in feeds.iter().filter(|binding| binding.pattern.fits(routing_key)) {
            match self.queue_index(&binding.queue) {
                Some(index) if found.contains(&index) => {}
                Some(index) => found.push(index),
                None => missing.push(binding.queue.clone()),
            }
        }
        if let Some(queue) = found.iter().find(|index| self.queue(**index).closing.is_some()) {
            let is_only = found.len() == 1 && missing.is_empty();
            return (Route::Detained { queue: *queue, is_only }, Vec::new());
        }
        let route = match found.len() {
            0 => Route::Nowhere,
            1 => Route::To(found[0]),
            _ => Route::ToSeveral(found),
        };
        (route, missing)
    }

    pub fn count_topic(&mut self, index: TopicIndex, kind: TallyKind, by: i64) {
        let topic = self.topics.get_mut(index.0).expect("a topic exists while something refers to it");
        let count = &mut topic.counts[slot_of(&TOPIC_KINDS, kind)];
        if count.unstored == 0 {
            self.counted_topics.insert(index);
        }
        count.add(by);
        self.total.add(kind, by);
    }

    pub fn count_queue(&mut self, index: QueueIndex, kind: TallyKind, by: i64) {
        let queue = self.queues.get_mut(index.0).expect("a queue exists while something refers to it");
        let count = &mut queue.counts[slot_of(&QUEUE_KINDS, kind)];
        if count.unstored == 0 {
            self.counted_queues.insert(index);
        }
        count.add(by);
        self.total.add(kind, by);
    }

    /// Takes over a count from the store; false if there is nothing that it counts for.
    pub fn restore(&mut self, tally: &Tally, count: i64) -> bool {
        match self.count_mut(tally) {
            Some(known) => {
                known.now = count;
                self.total.add(tally.kind, count);
            }
            None => self.stale.push((tally.clone(), -count)),
        }
        self.count_mut(tally).is_some()
    }

    /// Puts a count right that was taken over from the store.
    pub fn mend(&mut self, tally: &Tally, right: i64) {
        let Some(count) = self.count_mut(tally) else { return };
        let by = right - count.now;
        count.add(by);
        self.total.add(tally.kind, by);
        let name = tally.name.as_ref().expect("a count by topic or queue has a name");
        self.counted_topics.extend(self.topic_names.get(name));
        self.counted_queues.extend(self.queue_names.get(name));
    }

    fn count_mut(&mut self, tally: &Tally) -> Option<&mut Count> {
        let name = tally.name.as_ref()?;
        if QUEUE_KINDS.contains(&tally.kind) {
            let index = self.queue_index(name)?;
            return Some(&mut self.queue_mut(index).counts[slot_of(&QUEUE_KINDS, tally.kind)]);
        }
        let index = self.topic_index(name)?;
        Some(&mut self.topic_mut(index).counts[slot_of(&TOPIC_KINDS, tally.kind)])
    }

    /// All counts of topics and queues that there are.
    pub fn tallies(&self) -> Vec<(Tally, i64)> {
        let topics = self.topic_names.values().flat_map(|index| self.tallies_of_topic(*index));
        let queues = self.queue_names.values().flat_map(|index| self.tallies_of_queue(*index));
        topics.chain(queues).collect()
    }

    /// The counts of a topic.
    pub fn tallies_of_topic(&self, index: TopicIndex) -> Vec<(Tally, i64)> {
        let topic = self.topic(index);
        let counts = TOPIC_KINDS.iter().zip(&topic.counts);
        counts.map(|(kind, count)| (Tally::named(*kind, &topic.name), count.now)).collect()
    }

    /// The counts of a queue.
    pub fn tallies_of_queue(&self, index: QueueIndex) -> Vec<(Tally, i64)> {
        let queue = self.queue(index);
        let counts = QUEUE_KINDS.iter().zip(&queue.counts);
        counts.map(|(kind, count)| (Tally::named(*kind, &queue.name), count.now)).collect()
    }

    /// By how much the stored counts are to change.
    pub fn take_tallies(&mut self, tallies: &mut Vec<(Tally, i64)>) {
        tallies.append(&mut self.stale);
        for index in std::mem::take(&mut self.counted_topics) {
            let topic = self.topic_mut(index);
            drain(&topic.name, &TOPIC_KINDS, &mut topic.counts, tallies);
        }
        for index in std::mem::take(&mut self.counted_queues) {
            let queue = self.queue_mut(index);
            drain(&queue.name, &QUEUE_KINDS, &mut queue.counts, tallies);
        }
    }
}

/// What stands after a name.
fn after<'a, T>(names: &'a BTreeMap<Name, T>, name: Option<&Name>) -> impl Iterator<Item = &'a T> {
    let from = name.map_or(Bound::Unbounded, |name| Bound::Excluded(name.as_str()));
    names.range::<str, _>((from, Bound::Unbounded)).map(|(_, entry)| entry)
}

fn drain(name: &Name, kinds: &[TallyKind], counts: &mut [Count], tallies: &mut Vec<(Tally, i64)>) {
    for (kind, count) in kinds.iter().zip(counts) {
        let by = std::mem::take(&mut count.unstored);
        if by != 0 {
            tallies.push((Tally::named(*kind, name), by));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;
    use crate::settings::Binding;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    #[test]
    fn a_topic_feeds_the_queue_of_its_name_unless_told_otherwise() {
        let mut directory = Directory::default();
        let topic = directory.add_topic(&name("orders"), TopicSettings::default());
        assert_eq!(directory.route(topic, ""), (Route::Nowhere, vec![name("orders")]));
        let queue = directory.add_queue(&name("orders"), QueueSettings::default());
        assert_eq!(directory.route(topic, "any"), (Route::To(queue), vec![]));
        directory.set_topic(topic, TopicSettings { feeds: Some(vec![]), ..TopicSettings::default() });
        assert_eq!(directory.route(topic, "any"), (Route::Nowhere, vec![]));
    }

    #[test]
    fn several_bindings_of_one_queue_give_one_delivery() {
        let mut directory = Directory::default();
        let words =
            |queue: &str, pattern: &str| Binding { queue: name(queue), pattern: Pattern::Words(pattern.into()) };
        let feeds = Some(vec![words("a", "x.#"), words("a", "#.y"), words("b", "x.y")]);
        let topic = directory.add_topic(&name("t"), TopicSettings { feeds, ..TopicSettings::default() });
        let a = directory.add_queue(&name("a"), QueueSettings::default());
        let b = directory.add_queue(&name("b"), QueueSettings::default());
        assert_eq!(directory.route(topic, "x.y"), (Route::ToSeveral(vec![a, b]), vec![]));
        assert_eq!(directory.route(topic, "x.z"), (Route::To(a), vec![]));
        assert_eq!(directory.route(topic, "z"), (Route::Nowhere, vec![]));
    }

    #[test]
    fn counts_are_stored_as_differences() {
        let mut directory = Directory::default();
        let topic = directory.add_topic(&name("t"), TopicSettings::default());
        directory.count_topic(topic, TallyKind::Waiting, 2);
        directory.count_topic(topic, TallyKind::Waiting, -1);
        directory.count_topic(topic, TallyKind::History, 1);
        directory.count_topic(topic, TallyKind::History, -1);
        let mut tallies = Vec::new();
        directory.take_tallies(&mut tallies);
        assert_eq!(tallies, [(Tally::named(TallyKind::Waiting, &name("t")), 1)]);
        assert_eq!(directory.topic(topic).count(TallyKind::Waiting), 1);
        tallies.clear();
        directory.take_tallies(&mut tallies);
        assert!(tallies.is_empty());
    }
}
