//! Series of what happens: of all together, and of so many topics and queues, each for itself.
//!
//! Who has a series keeps it; the place of one to which nothing has happened for an hour, or that is deleted, goes to the
//! next one that comes. So names that clients make up cost no more memory than the places there are.

use std::collections::BTreeMap;

use punctual_center::{Gauges, Grain, Series, Slot};
use punctual_core::{Event, Millis, Name, Subject, Timestamp};

use super::ring::{Track, count};

/// For how long nothing has to happen to who gives way to others.
const REST: Millis = Millis::from_hours(1);

/// The series of topics, or those of queues.
#[derive(Debug)]
struct Named {
    most: usize,
    tracks: BTreeMap<Name, Track>,
    /// Nobody gives way before.
    full_until: Timestamp,
}

impl Named {
    fn new(most: usize) -> Named {
        Named { most, tracks: BTreeMap::new(), full_until: Timestamp::ZERO }
    }

    /// The series of this one, if it has a place or gets one.
    fn track(&mut self, name: &str, now: Timestamp) -> Option<&mut Track> {
        if !self.tracks.contains_key(name) {
            if self.tracks.len() >= self.most && !self.make_room(now) {
                return None;
            }
            self.tracks.insert(Name::stored(name), Track::new(now));
        }
        self.tracks.get_mut(name)
    }

    /// Takes the place of who has rested longest, if that is long enough.
    fn make_room(&mut self, now: Timestamp) -> bool {
        if now < self.full_until {
            return false;
        }
        let resting = self.tracks.iter().min_by_key(|(_, track)| track.busy_at);
        let Some((name, gives_way_at)) = resting.map(|(name, track)| (name.clone(), track.busy_at.plus(REST))) else {
            return false;
        };
        if now < gives_way_at {
            self.full_until = gives_way_at;
            return false;
        }
        self.tracks.remove(&name).is_some()
    }

    fn forget(&mut self, name: &Name) {
        if self.tracks.remove(name).is_some() {
            self.full_until = Timestamp::ZERO;
        }
    }
}

/// All series of a node.
#[derive(Debug)]
pub(super) struct Tracks {
    all: Track,
    topics: Named,
    queues: Named,
}

impl Tracks {
    /// With places for so many topics and so many queues.
    pub fn new(now: Timestamp, most: usize) -> Tracks {
        Tracks { all: Track::new(now), topics: Named::new(most), queues: Named::new(most) }
    }

    /// Counts what happened.
    pub fn count(&mut self, events: &[Event], now: Timestamp) {
        let is_of_same =
            |one: &Event, other: &Event| one.task.topic() == other.task.topic() && one.queue == other.queue;
        for events in events.chunk_by(is_of_same) {
            let mut counts = Slot::default();
            events.iter().for_each(|event| count(&mut counts, &event.what));
            if counts == Slot::default() {
                continue;
            }
            self.all.count(now, &counts);
            if let Some(track) = self.topics.track(events[0].task.topic(), now) {
                track.count(now, &counts);
            }
            if let Some(track) = events[0].queue.as_deref().and_then(|queue| self.queues.track(queue, now)) {
                track.count(now, &counts);
            }
        }
    }

    /// A delivery was handed over so late.
    pub fn late(&mut self, topic: &Name, queue: &Name, micros: u64, now: Timestamp) {
        self.all.late(now, micros);
        let tracks = [self.topics.tracks.get_mut(topic), self.queues.tracks.get_mut(queue)];
        tracks.into_iter().flatten().for_each(|track| track.late(now, micros));
    }

    /// A topic or queue is not there any more.
    pub fn forget_topic(&mut self, topic: &Name) {
        self.topics.forget(topic);
    }

    pub fn forget_queue(&mut self, queue: &Name) {
        self.queues.forget(queue);
    }

    /// The topics and the queues that have series.
    pub fn names(&self) -> [Vec<Name>; 2] {
        [&self.topics, &self.queues].map(|named| named.tracks.keys().cloned().collect())
    }

    /// There is so much in all, and in topics and queues that have series.
    pub fn gauge(&mut self, all: &Gauges, some: &BTreeMap<Subject, Gauges>, now: Timestamp) {
        self.all.gauge(now, all);
        for (subject, gauges) in some {
            let track = match subject {
                Subject::Topic(topic) => self.topics.tracks.get_mut(topic),
                Subject::Queue(queue) => self.queues.tracks.get_mut(queue),
            };
            if let Some(track) = track {
                track.gauge(now, gauges);
            }
        }
    }

    /// So many slots of a series from the one of a time on.
    pub fn read(
        &mut self,
        of: Option<&Subject>,
        grain: Grain,
        from: Timestamp,
        slots: usize,
        now: Timestamp,
    ) -> Series {
        let track = match of {
            None => Some(&mut self.all),
            Some(Subject::Topic(topic)) => self.topics.tracks.get_mut(topic),
            Some(Subject::Queue(queue)) => self.queues.tracks.get_mut(queue),
        };
        let Some(track) = track else { return Series { known_since: None, slots: vec![Slot::default(); slots] } };
        Series { known_since: Some(track.since), slots: track.read(grain, from, slots, now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::What;
    use punctual_core::store::Key;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn done(topic: &str, queue: &str) -> Event {
        let task = Key::new(topic, "1", "");
        Event { at: at(0), task, number: 1, queue: Some(name(queue)), key: None, by: None, what: What::Done }
    }

    fn known(tracks: &mut Tracks, of: Option<Subject>, now: Timestamp) -> Option<u64> {
        let series = tracks.read(of.as_ref(), Grain::Minute, now, 1, now);
        series.known_since.map(|_| series.slots[0].done)
    }

    #[test]
    fn what_happens_counts_for_its_topic_its_queue_and_all() {
        let mut tracks = Tracks::new(at(60), 9);
        tracks.count(&[done("a", "q"), done("a", "q"), done("b", "q"), done("a", "r")], at(61));
        let topic = |topic| Some(Subject::Topic(name(topic)));
        let queue = |queue| Some(Subject::Queue(name(queue)));
        let mut of = |of| known(&mut tracks, of, at(61));
        assert_eq!(
            [of(None), of(topic("a")), of(topic("b")), of(queue("q")), of(queue("r"))].map(Option::unwrap),
            [4, 3, 1, 3, 1]
        );
        assert_eq!(of(topic("q")), None, "nothing happened to it");
    }

    #[test]
    fn the_place_of_who_rests_goes_to_the_next() {
        let mut tracks = Tracks::new(at(0), 2);
        let topic = |topic| Some(Subject::Topic(name(topic)));
        tracks.count(&[done("a", "q")], at(0));
        tracks.count(&[done("b", "q"), done("c", "q")], at(10));
        assert_eq!(known(&mut tracks, topic("c"), at(10)), None, "there is no place");
        tracks.count(&[done("c", "q")], at(3_599));
        assert_eq!(known(&mut tracks, topic("c"), at(3_599)), None, "nobody has rested for long enough");
        tracks.count(&[done("c", "q")], at(3_600));
        assert_eq!([topic("a"), topic("c")].map(|of| known(&mut tracks, of, at(3_600))), [None, Some(1)]);
        tracks.forget_topic(&name("c"));
        tracks.count(&[done("d", "q")], at(3_601));
        assert_eq!(known(&mut tracks, topic("d"), at(3_601)), Some(1), "who is deleted leaves at once");
        assert_eq!(tracks.names(), [vec![name("b"), name("d")], vec![name("q")]]);
    }
}
