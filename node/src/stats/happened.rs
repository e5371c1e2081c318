//! How often what has happened, by topic.

use std::collections::BTreeMap;

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

/// Counts events. A topic is looked up once for all of its events that come one after the other.
pub(super) fn count(topics: &mut BTreeMap<Name, Happened>, events: &[Event]) {
    for events in events.chunk_by(|one, other| one.task.topic() == other.task.topic()) {
        let topic = events[0].task.topic();
        if !topics.contains_key(topic) {
            topics.insert(Name::stored(topic), Happened::default());
        }
        let happened = topics.get_mut(topic).expect("it was just made sure of");
        events.iter().for_each(|event| happened.count(&event.what));
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
        let mut topics = BTreeMap::new();
        let died = |reason| What::Died(reason);
        let events = [
            event("a", What::Fired),
            event("a", What::Done),
            event("b", died(Reason::Expired)),
            event("a", What::Fired),
        ];
        count(&mut topics, &events);
        assert_eq!(topics["a"], Happened { fired: 2, done: 1, ..Happened::default() });
        assert_eq!((topics["b"].dead_of(Reason::Expired), topics["b"].dead_of(Reason::Rejected)), (1, 0));
    }
}
