//! How often what has happened, by topic.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use punctual_center::{Busy, Happened};
use punctual_core::{Event, Name};

/// What happened, by topic and in all.
#[derive(Default)]
pub(super) struct Happenings {
    topics: BTreeMap<Name, Happened>,
    /// To all topics, those included that are gone.
    ever: Happened,
    /// To those that are gone.
    gone: Happened,
}

impl Happenings {
    /// Counts events. A topic is looked up once for all of its events that come one after the other.
    pub fn count(&mut self, events: &[Event]) {
        for events in events.chunk_by(|one, other| one.task.topic() == other.task.topic()) {
            let topic = events[0].task.topic();
            if !self.topics.contains_key(topic) {
                self.topics.insert(Name::stored(topic), Happened::default());
            }
            let happened = self.topics.get_mut(topic).expect("it was just made sure of");
            for event in events {
                happened.count(&event.what);
                self.ever.count(&event.what);
            }
        }
    }

    /// A topic is not there any more.
    pub fn forget(&mut self, topic: &Name) {
        if let Some(happened) = self.topics.remove(topic) {
            self.gone.add(&happened);
        }
    }

    pub fn ever(&self) -> Happened {
        self.ever.clone()
    }

    /// To all topics that are there.
    pub fn present(&self) -> Happened {
        let mut present = self.ever();
        present.subtract(&self.gone);
        present
    }

    pub fn of(&self, topic: &Name) -> Option<&Happened> {
        self.topics.get(topic)
    }

    /// Looks at some topics after a name, and notes the busiest so far; says where to go on.
    pub fn look_for_busiest(
        &self,
        after: Option<&Name>,
        looked_at: usize,
        is_meant: &impl Fn(&Name) -> bool,
        busiest: &mut Busiest,
    ) -> Option<Name> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut last = None;
        let mut count = 0;
        for (topic, happened) in self.topics.range::<Name, _>((from, Bound::Unbounded)).take(looked_at) {
            if is_meant(topic) {
                busiest.note(topic, happened);
            }
            last = Some(topic.clone());
            count += 1;
        }
        last.filter(|_| count == looked_at)
    }
}

/// The busiest topics of those that were looked at.
pub(super) struct Busiest {
    most: usize,
    found: BTreeSet<(u64, Name)>,
}

impl Busiest {
    pub fn new(most: usize) -> Busiest {
        Busiest { most, found: BTreeSet::new() }
    }

    fn note(&mut self, topic: &Name, happened: &Happened) {
        let bustle = happened.bustle();
        if self.found.len() >= self.most && self.found.first().is_none_or(|(least, _)| *least >= bustle) {
            return;
        }
        self.found.insert((bustle, topic.clone()));
        if self.found.len() > self.most {
            self.found.pop_first();
        }
    }

    pub fn into_topics(self) -> Vec<Busy> {
        self.found.into_iter().map(|(bustle, topic)| Busy { topic, bustle }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::store::Key;
    use punctual_core::{Reason, Timestamp, What};

    #[test]
    fn events_are_counted_for_their_topics() {
        let event = |topic: &str, what| Event {
            at: Timestamp::ZERO,
            task: Key::new(topic, "1", ""),
            number: 1,
            queue: None,
            key: None,
            by: None,
            what,
        };
        let mut happenings = Happenings::default();
        let died = |reason| What::Died(reason);
        let events = [
            event("a", What::Fired),
            event("a", What::Done),
            event("b", died(Reason::Expired)),
            event("a", What::Fired),
        ];
        happenings.count(&events);
        let [a, b] = ["a", "b"].map(|name| Name::new(name).unwrap());
        assert_eq!(happenings.of(&a), Some(&Happened { fired: 2, done: 1, ..Happened::default() }));
        let dead = happenings.of(&b).unwrap();
        assert_eq!((dead.dead_of(Reason::Expired), dead.dead_of(Reason::Rejected)), (1, 0));
        happenings.forget(&a);
        assert_eq!((happenings.ever().fired, happenings.present().fired, happenings.present().dead[2]), (2, 0, 1));
        let mut busiest = Busiest::new(1);
        assert_eq!(happenings.look_for_busiest(None, 5, &|_| true, &mut busiest), None);
        assert_eq!(busiest.into_topics(), [Busy { topic: b, bustle: 0 }]);
    }
}
