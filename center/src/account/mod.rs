//! What nodes tell each other of their work, so that whoever asks one of them hears of all.

mod buckets;
mod happened;
mod pulse;
mod series;
mod spread;

use std::collections::BTreeMap;

use punctual_core::{Name, Scope, Subject, Timestamp};

pub use buckets::{Buckets, MICROS};
pub use happened::Happened;
pub use pulse::Pulse;
pub use series::{Gauges, Grain, Series, Slot};
pub use spread::Spread;

/// What a node wants to know of another one's work since that started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inquiry {
    /// How it works, and which topics are busy.
    Work {
        /// Of these topics.
        within: Scope,
        /// So many.
        most: usize,
    },
    /// What has happened to these topics.
    Topics(Vec<Name>),
    /// How long the deliveries of these queues took.
    Queues(Vec<Name>),
    /// Which consumers wait there.
    Consumers {
        /// Only those for this queue.
        queue: Option<Name>,
        /// Only those for queues among these.
        within: Scope,
        /// At most so many.
        most: usize,
    },
    /// How it is doing right now.
    Pulse {
        /// With what has happened to these topics.
        topics: Vec<Name>,
    },
    /// What it has counted in slots of time.
    Series {
        /// Of this topic or queue; else of all together.
        of: Option<Subject>,
        /// How long the slots are.
        grain: Grain,
        /// When the first one begins.
        from: Timestamp,
        /// How many.
        slots: usize,
    },
}

/// What a node says to that, in the order of what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Account {
    /// How it works.
    Work(Box<Work>),
    /// What has happened to topics.
    Topics(Vec<Happened>),
    /// How long deliveries took.
    Queues(Vec<Timing>),
    /// Which consumers wait there.
    Consumers(Consumers),
    /// How it is doing.
    Pulse(Box<Pulse>),
    /// What it has counted.
    Series(Series),
}

/// The consumers that wait at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumers {
    /// The node.
    pub node: Name,
    /// Those who have waited longest.
    pub longest: Vec<Consumer>,
    /// How many there are in all.
    pub count: u64,
}

/// A consumer that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// Its name.
    pub name: Name,
    /// The queues it waits for, as far as who asks has to do with them.
    pub queues: Vec<Name>,
    /// How many deliveries it takes at once.
    pub max: u64,
}

/// How long the deliveries of a queue took, in microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From when they should have been available until they were offered to consumers.
    pub offered: Buckets,
    /// From when they were offered until they were handed over.
    pub taken: Buckets,
}

impl Timing {
    /// Adds those of another node.
    pub fn add(&mut self, other: &Timing) {
        self.offered.add(&other.offered);
        self.taken.add(&other.taken);
    }
}

/// How a node, or several of them, have been working since they started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// When the first of them started.
    pub started_at: Timestamp,
    /// How late deliveries were handed over, in microseconds.
    pub lateness: Spread,
    /// How long after they should have been deliveries were offered to consumers, in microseconds.
    pub offered: Spread,
    /// How long after they were offered deliveries were handed over, in microseconds.
    pub taken: Spread,
    /// How long the store took to make a commit durable, in microseconds.
    pub commit_time: Spread,
    /// How many rows each commit changed.
    pub commit_changes: Spread,
    /// How many commits failed or were refused, in part or wholly.
    pub failed_commits: u64,
    /// Commits that the store had confirmed and does not have any more.
    pub lost_commits: u64,
    /// How many answers were given.
    pub answers: u64,
    /// How many consumers wait.
    pub waiting_consumers: u64,
    /// How many requests wait.
    pub waiting_requests: u64,
    /// How often what has happened to all topics, those included that are deleted.
    pub happened: Happened,
    /// The busiest topics, by their names.
    pub busiest: Vec<Busy>,
    /// How many requests were not carried out, by their codes.
    pub refusals: Vec<Refusals>,
}

/// A topic to which much happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// The topic.
    pub topic: Name,
    /// How much, to tell the busy from the idle.
    pub bustle: u64,
}

/// How many requests were not carried out for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusals {
    /// The code of the reason.
    pub code: String,
    /// How many.
    pub count: u64,
}

impl Work {
    /// Adds that of another node.
    pub fn add(&mut self, other: &Work) {
        self.started_at = self.started_at.min(other.started_at);
        let spreads = [
            (&mut self.lateness, &other.lateness),
            (&mut self.offered, &other.offered),
            (&mut self.taken, &other.taken),
            (&mut self.commit_time, &other.commit_time),
            (&mut self.commit_changes, &other.commit_changes),
        ];
        spreads.into_iter().for_each(|(spread, other)| spread.add(other));
        let counts = [
            (&mut self.failed_commits, other.failed_commits),
            (&mut self.lost_commits, other.lost_commits),
            (&mut self.answers, other.answers),
            (&mut self.waiting_consumers, other.waiting_consumers),
            (&mut self.waiting_requests, other.waiting_requests),
        ];
        counts.into_iter().for_each(|(count, other)| *count = count.saturating_add(other));
        self.happened.add(&other.happened);
        let bustle = added(&self.busiest, &other.busiest, |busy| (busy.topic.clone(), busy.bustle));
        self.busiest = bustle.into_iter().map(|(topic, bustle)| Busy { topic, bustle }).collect();
        let refusals = added(&self.refusals, &other.refusals, |refused| (refused.code.clone(), refused.count));
        self.refusals = refusals.into_iter().map(|(code, count)| Refusals { code, count }).collect();
    }
}

/// What is counted by name here and there.
fn added<T, K: Ord>(here: &[T], there: &[T], read: impl Fn(&T) -> (K, u64)) -> BTreeMap<K, u64> {
    let mut sums = BTreeMap::new();
    for (name, count) in here.iter().chain(there).map(read) {
        let sum: &mut u64 = sums.entry(name).or_default();
        *sum = sum.saturating_add(count);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(value: u64, topic: &str, code: &str) -> Work {
        let spread = || Spread::of([(value, 2)]);
        Work {
            started_at: Timestamp::from_millis(value),
            lateness: spread(),
            offered: spread(),
            taken: spread(),
            commit_time: spread(),
            commit_changes: spread(),
            failed_commits: value,
            lost_commits: value,
            answers: value,
            waiting_consumers: value,
            waiting_requests: u64::MAX,
            happened: Happened { fired: value, ..Happened::default() },
            busiest: vec![Busy { topic: Name::stored(topic), bustle: value }],
            refusals: vec![Refusals { code: code.into(), count: value }],
        }
    }

    #[test]
    fn the_work_of_nodes_adds_up() {
        let mut sum = work(7, "a", "x");
        sum.add(&work(3, "a", "y"));
        assert_eq!((sum.started_at, sum.answers, sum.happened.fired), (Timestamp::from_millis(3), 10, 10));
        assert_eq!(sum.lateness, Spread::of([(3, 2), (7, 2)]));
        assert_eq!(sum.busiest, [Busy { topic: Name::stored("a"), bustle: 10 }]);
        let codes: Vec<(&str, u64)> = sum.refusals.iter().map(|refused| (&*refused.code, refused.count)).collect();
        assert_eq!((codes, sum.waiting_requests), (vec![("x", 7), ("y", 3)], u64::MAX));
    }

    #[test]
    fn timings_of_nodes_add_up() {
        let timing = |count: u64| {
            let buckets = || Buckets { bounds: MICROS, counts: vec![count; MICROS.len()], count, sum: 7 };
            Timing { offered: buckets(), taken: buckets() }
        };
        let mut sum = timing(1);
        sum.add(&timing(2));
        assert_eq!((&sum.taken.counts, sum.offered.count, sum.taken.sum), (&vec![3; MICROS.len()], 3, 14));
    }
}
