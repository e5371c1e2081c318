//! The shard's topics and queues: their settings and their counts.

use std::collections::{BTreeMap, BTreeSet};

use super::ready::ReadySet;
use crate::name::Name;
use crate::settings::{QueueSettings, TopicSettings};
use crate::store::{Tally, TallyKind};
use crate::time::Timestamp;

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
    pub closing: bool,
    counts: [Count; 4],
}

#[derive(Debug)]
pub(super) struct Queue {
    pub name: Name,
    pub settings: QueueSettings,
    /// It is being deleted: nothing new is taken.
    pub closing: bool,
    pub ready: ReadySet,
    counts: [Count; 2],
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

    pub fn is_paused(&self, now: Timestamp) -> bool {
        self.settings.paused_until.is_some_and(|until| now < until)
    }

    pub fn is_full(&self) -> bool {
        self.settings.max_length.is_some_and(|max| self.ready.len() >= max)
    }
}

/// Where a task goes when it fires.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route {
    Nowhere,
    To(QueueIndex),
    ToSeveral(Vec<QueueIndex>),
}

#[derive(Debug, Default)]
pub(super) struct Directory {
    topics: Vec<Option<Topic>>,
    topic_names: BTreeMap<Name, TopicIndex>,
    queues: Vec<Option<Queue>>,
    queue_names: BTreeMap<Name, QueueIndex>,
    counted_topics: BTreeSet<TopicIndex>,
    counted_queues: BTreeSet<QueueIndex>,
}

impl Directory {
    pub fn topic_index(&self, name: &str) -> Option<TopicIndex> {
        self.topic_names.get(name).copied()
    }

    pub fn queue_index(&self, name: &str) -> Option<QueueIndex> {
        self.queue_names.get(name).copied()
    }

    pub fn topic(&self, index: TopicIndex) -> &Topic {
        self.topics[index.0 as usize].as_ref().expect("a topic exists while something refers to it")
    }

    pub fn topic_mut(&mut self, index: TopicIndex) -> &mut Topic {
        self.topics[index.0 as usize].as_mut().expect("a topic exists while something refers to it")
    }

    pub fn queue(&self, index: QueueIndex) -> &Queue {
        self.queues[index.0 as usize].as_ref().expect("a queue exists while something refers to it")
    }

    pub fn queue_mut(&mut self, index: QueueIndex) -> &mut Queue {
        self.queues[index.0 as usize].as_mut().expect("a queue exists while something refers to it")
    }

    pub fn topics(&self) -> impl Iterator<Item = &Topic> {
        self.topic_names.values().map(|index| self.topic(*index))
    }

    pub fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.queue_names.values().map(|index| self.queue(*index))
    }

    pub fn queue_indexes(&self) -> impl Iterator<Item = QueueIndex> {
        self.queue_names.values().copied()
    }

    /// Enters a topic that is not there yet.
    pub fn add_topic(&mut self, name: &Name, settings: TopicSettings) -> TopicIndex {
        let topic = Topic { name: name.clone(), settings, closing: false, counts: Default::default() };
        let index = TopicIndex(enter(&mut self.topics, topic));
        let before = self.topic_names.insert(name.clone(), index);
        assert!(before.is_none(), "topic {name} is entered once");
        index
    }

    /// Enters a queue that is not there yet.
    pub fn add_queue(&mut self, name: &Name, settings: QueueSettings) -> QueueIndex {
        let queue = Queue {
            name: name.clone(),
            ready: ReadySet::new(settings.order),
            settings,
            closing: false,
            counts: Default::default(),
        };
        let index = QueueIndex(enter(&mut self.queues, queue));
        let before = self.queue_names.insert(name.clone(), index);
        assert!(before.is_none(), "queue {name} is entered once");
        index
    }

    pub fn remove_topic(&mut self, index: TopicIndex) {
        let topic = self.topics[index.0 as usize].take().expect("the topic exists");
        self.topic_names.remove(&topic.name);
        self.counted_topics.remove(&index);
    }

    pub fn remove_queue(&mut self, index: QueueIndex) {
        let queue = self.queues[index.0 as usize].take().expect("the queue exists");
        self.queue_names.remove(&queue.name);
        self.counted_queues.remove(&index);
    }

    /// The queues that take a task with this routing key, and the names of those that would if they existed.
    pub fn route(&self, topic: TopicIndex, routing_key: &str) -> (Route, Vec<Name>) {
        let topic = self.topic(topic);
        let Some(feeds) = &topic.settings.feeds else {
            return match self.queue_index(&topic.name) {
                Some(index) if self.queue(index).closing => (Route::Nowhere, Vec::new()),
                Some(index) => (Route::To(index), Vec::new()),
                None => (Route::Nowhere, vec![topic.name.clone()]),
            };
        };
        let mut found: Vec<QueueIndex> = Vec::new();
        let mut missing: Vec<Name> = Vec::new();
        for binding in feeds.iter().filter(|binding| binding.pattern.fits(routing_key)) {
            match self.queue_index(&binding.queue) {
                Some(index) if self.queue(index).closing || found.contains(&index) => {}
                Some(index) => found.push(index),
                None => missing.push(binding.queue.clone()),
            }
        }
        let route = match found.len() {
            0 => Route::Nowhere,
            1 => Route::To(found[0]),
            _ => Route::ToSeveral(found),
        };
        (route, missing)
    }

    pub fn count_topic(&mut self, index: TopicIndex, kind: TallyKind, by: i64) {
        let topic = self.topics[index.0 as usize].as_mut().expect("a topic exists while something refers to it");
        let count = &mut topic.counts[slot_of(&TOPIC_KINDS, kind)];
        if count.unstored == 0 {
            self.counted_topics.insert(index);
        }
        count.add(by);
    }

    pub fn count_queue(&mut self, index: QueueIndex, kind: TallyKind, by: i64) {
        let queue = self.queues[index.0 as usize].as_mut().expect("a queue exists while something refers to it");
        let count = &mut queue.counts[slot_of(&QUEUE_KINDS, kind)];
        if count.unstored == 0 {
            self.counted_queues.insert(index);
        }
        count.add(by);
    }

    /// Takes over a count from the store.
    pub fn restore(&mut self, tally: &Tally, count: i64) {
        let name = tally.name.as_ref().expect("a count by topic or queue has a name");
        if QUEUE_KINDS.contains(&tally.kind) {
            let index = self.queue_index(name).expect("a counted queue has settings");
            self.queue_mut(index).counts[slot_of(&QUEUE_KINDS, tally.kind)].now = count;
        } else {
            let index = self.topic_index(name).expect("a counted topic has settings");
            self.topic_mut(index).counts[slot_of(&TOPIC_KINDS, tally.kind)].now = count;
        }
    }

    /// By how much the stored counts are to change.
    pub fn take_tallies(&mut self, tallies: &mut Vec<(Tally, i64)>) {
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

fn enter<T>(entries: &mut Vec<Option<T>>, entry: T) -> u32 {
    let free = entries.iter().position(Option::is_none);
    let index = free.unwrap_or(entries.len());
    match free {
        Some(index) => entries[index] = Some(entry),
        None => entries.push(Some(entry)),
    }
    u32::try_from(index).expect("there are fewer topics and queues than fill the memory")
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
        directory.topic_mut(topic).settings.feeds = Some(vec![]);
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
