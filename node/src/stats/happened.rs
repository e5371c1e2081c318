//! How often what has happened, by topic.

use std::collections::BTreeMap;
use std::ops::Bound;

use punctual_core::{Event, Name, Reason, What};

/// How often what has happened to the tasks and deliveries of a topic since the node started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Happened {
    /// Tasks were taken in, in the place of another one or not.
    pub scheduled: u64,
    /// Tasks were changed.
    pub rescheduled: u64,
    /// Deliveries became available to consumers, for the first time or again.
    pub fired: u64,
    /// Deliveries were handed out.
    pub leased: u64,
    /// Leases were extended.
    pub extended: u64,
    /// Deliveries were given back, which was no failure.
    pub released: u64,
    /// Attempts failed, and others come.
    pub failed: u64,
    /// Deliveries were acknowledged.
    pub done: u64,
    /// Tasks or deliveries were cancelled.
    pub cancelled: u64,
    /// Deliveries were given up, in the order of [`Reason::ALL`].
    pub dead: [u64; Reason::ALL.len()],
    /// Dead letters arrived in another topic.
    pub forwarded: u64,
    /// Dead letters or finished tasks were handed out again.
    pub replayed: u64,
    /// Dead letters were removed.
    pub purged: u64,
}

impl Happened {
    /// Adds what happened elsewhere.
    pub fn add(&mut self, other: &Happened) {
        self.change(other, u64::saturating_add);
    }

    /// Takes off what happened elsewhere.
    pub fn subtract(&mut self, other: &Happened) {
        self.change(other, u64::saturating_sub);
    }

    fn change(&mut self, other: &Happened, change: fn(u64, u64) -> u64) {
        let Happened { dead, .. } = other;
        let counts = [
            (&mut self.scheduled, other.scheduled),
            (&mut self.rescheduled, other.rescheduled),
            (&mut self.fired, other.fired),
            (&mut self.leased, other.leased),
            (&mut self.extended, other.extended),
            (&mut self.released, other.released),
            (&mut self.failed, other.failed),
            (&mut self.done, other.done),
            (&mut self.cancelled, other.cancelled),
            (&mut self.forwarded, other.forwarded),
            (&mut self.replayed, other.replayed),
            (&mut self.purged, other.purged),
        ];
        for (count, other) in counts.into_iter().chain(self.dead.iter_mut().zip(*dead)) {
            *count = change(*count, other);
        }
    }

    /// How much went on, to tell the busy from the idle.
    fn bustle(&self) -> u64 {
        self.scheduled + self.fired + self.leased + self.done
    }

    /// How many deliveries were given up for this reason.
    pub fn dead_of(&self, reason: Reason) -> u64 {
        self.dead[place(reason)]
    }

    fn count(&mut self, what: &What) {
        let count = match what {
            What::Scheduled { .. } | What::Replaced { .. } => &mut self.scheduled,
            What::Rescheduled { .. } => &mut self.rescheduled,
            What::Fired => &mut self.fired,
            What::Leased { .. } => &mut self.leased,
            What::Extended { .. } => &mut self.extended,
            What::Released { .. } => &mut self.released,
            What::Failed { .. } => &mut self.failed,
            What::Done => &mut self.done,
            What::Cancelled => &mut self.cancelled,
            What::Died(reason) => &mut self.dead[place(*reason)],
            What::Forwarded => &mut self.forwarded,
            What::Replayed => &mut self.replayed,
            What::Purged => &mut self.purged,
        };
        *count += 1;
    }
}

fn place(reason: Reason) -> usize {
    Reason::ALL.iter().position(|known| *known == reason).expect("all reasons are among all reasons")
}

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
    found: BTreeMap<(u64, Name), Happened>,
}

impl Busiest {
    pub fn new(most: usize) -> Busiest {
        Busiest { most, found: BTreeMap::new() }
    }

    fn note(&mut self, topic: &Name, happened: &Happened) {
        let bustle = happened.bustle();
        if self.found.len() >= self.most && self.found.first_key_value().is_none_or(|((least, _), _)| *least >= bustle)
        {
            return;
        }
        self.found.insert((bustle, topic.clone()), happened.clone());
        if self.found.len() > self.most {
            self.found.pop_first();
        }
    }

    pub fn into_topics(self) -> BTreeMap<Name, Happened> {
        self.found.into_iter().map(|((_, topic), happened)| (topic, happened)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::Timestamp;
    use punctual_core::store::Key;

    #[test]
    fn events_are_counted_for_their_topics() {
        let event = |topic: &str, what| Event {
            at: Timestamp::ZERO,
            task: Key::new(topic, "1", ""),
            queue: None,
            key: None,
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
        assert_eq!(busiest.into_topics().into_keys().collect::<Vec<_>>(), [b]);
    }
}
