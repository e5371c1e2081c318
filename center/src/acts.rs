//! Acts: who did what, as all nodes of a center keep it together in one entry of the store.
//!
//! **Invariant**: what is kept is bounded in bytes, whoever acts how often. The earliest acts give way, and it is known since
//! when none is missing.

use std::collections::VecDeque;

use punctual_core::{Name, Timestamp};
use serde::{Deserialize, Serialize};

/// How many bytes of acts are kept, about: those of more than a thousand of the usual length.
const MOST_BYTES: usize = 128 << 10;

/// The form of the entry that is written.
const VERSION: u8 = 1;

/// Something that somebody did, or had done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// When.
    pub at: Timestamp,
    /// The name of the token.
    pub by: String,
    /// The person, if the request named one.
    pub person: Option<String>,
    /// The node that was asked.
    pub node: String,
    /// What was done, in a word.
    pub what: String,
    /// The topic, if it was done to one or to its tasks.
    pub topic: Option<Name>,
    /// The id of the task, if it was done to one.
    pub id: Option<Name>,
    /// The queue, if it was done to one or to its deliveries.
    pub queue: Option<Name>,
    /// What else it was done to.
    pub subject: Option<String>,
    /// The reason that was given, or what came of it.
    pub detail: Option<String>,
}

impl Act {
    /// What it costs to keep, about.
    fn weight(&self) -> usize {
        let names = [&self.topic, &self.id, &self.queue].map(|name| name.as_ref().map_or(0, |name| name.len()));
        let texts = [&self.person, &self.subject, &self.detail].map(|text| text.as_ref().map_or(0, String::len));
        let words = [&self.by, &self.node, &self.what].map(String::len);
        // Times and lengths.
        24 + [names, texts, words].iter().flatten().sum::<usize>()
    }
}

/// The latest acts, the earliest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acts {
    since: Timestamp,
    kept: VecDeque<Act>,
    weight: usize,
}

/// The entry was written by a newer version, or by something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a newer version of Punctual keeps what was done on this store, and this one cannot read it: ask a newer node")]
pub struct UnreadableActs;

#[derive(Serialize, Deserialize)]
struct Acts1 {
    since: Timestamp,
    acts: Vec<Act1>,
}

#[derive(Serialize, Deserialize)]
struct Act1 {
    at: Timestamp,
    by: String,
    person: Option<String>,
    node: String,
    what: String,
    topic: Option<Name>,
    id: Option<Name>,
    queue: Option<Name>,
    subject: Option<String>,
    detail: Option<String>,
}

impl Acts {
    /// The key of the entry.
    pub const KEY: &str = "acts";

    /// None so far, and none is missing since then.
    pub fn since(since: Timestamp) -> Acts {
        Acts { since, kept: VecDeque::new(), weight: 0 }
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Since when none is missing.
    pub fn known_since(&self) -> Timestamp {
        self.since
    }

    /// All that are kept, the latest first.
    pub fn latest(&self) -> impl Iterator<Item = &Act> {
        self.kept.iter().rev()
    }

    /// One more was done. Clocks may differ a little, so it need not be the latest.
    pub fn push(&mut self, act: Act) {
        let place = self.kept.partition_point(|kept| kept.at <= act.at);
        self.weight += act.weight();
        self.kept.insert(place, act);
        while self.weight > MOST_BYTES {
            let Some(gone) = self.kept.pop_front() else { break };
            self.weight -= gone.weight();
            self.since = self.since.max(gone.at.plus(punctual_core::Millis(1)));
        }
    }

    /// Adds what was noted elsewhere. What is here already, because nobody knew whether it was written, is not added again.
    pub fn add(&mut self, others: &Acts) {
        self.since = self.since.max(others.since);
        for act in &others.kept {
            let same_time = self.kept.partition_point(|kept| kept.at < act.at);
            let is_known = self.kept.range(same_time..).take_while(|kept| kept.at == act.at).any(|kept| kept == act);
            if !is_known {
                self.push(act.clone());
            }
        }
    }

    /// Reads the entry.
    pub fn read(bytes: &[u8]) -> Result<Acts, UnreadableActs> {
        let Some((&VERSION, fields)) = bytes.split_first() else { return Err(UnreadableActs) };
        let Acts1 { since, acts } = postcard::from_bytes(fields).map_err(|_| UnreadableActs)?;
        let mut read = Acts::since(since);
        for act in acts {
            let Act1 { at, by, person, node, what, topic, id, queue, subject, detail } = act;
            read.push(Act { at, by, person, node, what, topic, id, queue, subject, detail });
        }
        Ok(read)
    }

    /// The entry's bytes.
    pub fn lay(&self) -> Vec<u8> {
        let act = |act: &Act| {
            let Act { at, by, person, node, what, topic, id, queue, subject, detail } = act.clone();
            Act1 { at, by, person, node, what, topic, id, queue, subject, detail }
        };
        let form = Acts1 { since: self.since, acts: self.kept.iter().map(act).collect() };
        postcard::to_extend(&form, vec![VERSION]).expect("acts can be laid out as bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(at: u64, detail: &str) -> Act {
        Act {
            at: Timestamp::from_millis(at),
            by: "amy".into(),
            person: None,
            node: "n".into(),
            what: "purge".into(),
            topic: Name::new("t").ok(),
            id: None,
            queue: None,
            subject: None,
            detail: Some(detail.into()),
        }
    }

    fn times(acts: &Acts) -> Vec<u64> {
        acts.latest().map(|act| act.at.as_millis()).collect()
    }

    #[test]
    fn the_earliest_give_way_and_it_is_known_since_when_none_is_missing() {
        let mut acts = Acts::since(Timestamp::from_millis(5));
        let long = "x".repeat(MOST_BYTES / 4);
        (10..20).for_each(|at| acts.push(act(at, &long)));
        assert_eq!(times(&acts), [19, 18, 17]);
        assert_eq!(acts.known_since(), Timestamp::from_millis(17));
        assert!(acts.lay().len() < MOST_BYTES + 1_024);
    }

    #[test]
    fn what_others_noted_is_put_in_its_place() {
        let (mut acts, mut others) = (Acts::since(Timestamp::ZERO), Acts::since(Timestamp::from_millis(3)));
        [4, 8].into_iter().for_each(|at| acts.push(act(at, "")));
        [6, 9].into_iter().for_each(|at| others.push(act(at, "")));
        acts.add(&others);
        acts.add(&others);
        assert_eq!(times(&acts), [9, 8, 6, 4]);
        assert_eq!(acts.known_since(), Timestamp::from_millis(3), "what was before may be missing there");
    }

    /// The bytes of acts, as they stand in stores that exist.
    #[test]
    fn acts_stay_readable() {
        let bytes = [&[1, 5, 1, 9, 3], &b"amy"[..], &[0, 1, b'n', 5], b"purge", &[1, 1, b't', 0, 0, 0, 1, 2], b"no"];
        let mut acts = Acts::since(Timestamp::from_millis(5));
        acts.push(act(9, "no"));
        assert_eq!(acts.lay(), bytes.concat());
        assert_eq!(Acts::read(&bytes.concat()), Ok(acts));
        for bad in [&[][..], &[2], &[1], &[1, 5, 9]] {
            assert_eq!(Acts::read(bad), Err(UnreadableActs));
        }
    }
}
