//! How much topics and queues hold, and by how much that differs from what the store has.
//!
//! **Invariant**: the total is the sum of all counts, and whatever differs from the stored counts is told to the store at
//! the end of the step.

use super::{Directory, Queue, QueueIndex, Topic, TopicIndex};
use crate::name::Name;
use crate::shard::counts::Total;
use crate::store::{Tally, TallyKind};

/// A count, and by how much it differs from the stored one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub now: i64,
    unstored: i64,
}

impl Count {
    fn add(&mut self, by: i64) {
        self.now += by;
        self.unstored += by;
    }
}

pub(super) const TOPIC_KINDS: [TallyKind; 4] =
    [TallyKind::Waiting, TallyKind::TopicLeased, TallyKind::TopicDead, TallyKind::History];
pub(super) const QUEUE_KINDS: [TallyKind; 2] = [TallyKind::QueueLeased, TallyKind::QueueDead];

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
}

impl Directory {
    /// All counts together, and how many topics and queues there are.
    pub fn total(&self) -> Total {
        Total { topics: self.topic_names.len() as u64, queues: self.queue_names.len() as u64, ..self.total }
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
    use crate::settings::TopicSettings;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
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
