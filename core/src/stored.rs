//! How settings are stored: a byte that says which version follows, and that version's fields in postcard form.
//!
//! Each version that was ever written is a type, and is never changed again: it is an earlier one with something
//! behind it. What is written is the first version that says everything, so that servers from before a setting
//! open all stores that do not use it.
//!
//! Behind the fields of any version stands the note of a pause, if there is one. Nothing depends on it, so it is not worth
//! a version that older servers could not open: they read the fields and do not look behind them.

use bytes::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::name::Name;
use crate::pause::PauseNote;
use crate::settings::{Binding, Order, Overflow, QueueSettings, Rate, Retry, TopicSettings};
use crate::time::{Millis, Timestamp};

/// Lays out a version of something.
pub(crate) fn lay<T: Serialize>(version: u8, form: &T) -> Bytes {
    postcard::to_extend(form, vec![version]).expect("what is noted can be laid out as bytes").into()
}

/// The version of what is stored, and its fields.
pub(crate) fn version(bytes: &[u8]) -> (u8, &[u8]) {
    let (version, fields) = bytes.split_first().expect("what is stored starts with its version");
    (*version, fields)
}

/// Reads the fields of a version.
pub(crate) fn read<T: DeserializeOwned>(fields: &[u8]) -> T {
    postcard::from_bytes(fields).expect("what is stored can be read back")
}

/// Lays out a version of settings, and the note of a pause behind it.
fn lay_noted<T: Serialize>(version: u8, form: &T, pause: Option<&PauseNote>) -> Bytes {
    let settings = lay(version, form);
    let Some(PauseNote { by, since, reason }) = pause.cloned() else { return settings };
    [settings, lay(1, &Pause1 { by, since, reason })].concat().into()
}

/// Reads the fields of a version of settings, and the note behind them. One that a newer server has written in another
/// form is none.
fn read_noted<T: DeserializeOwned>(fields: &[u8]) -> (T, Option<PauseNote>) {
    let (form, behind) = postcard::take_from_bytes(fields).expect("what is stored can be read back");
    let note = match behind.split_first() {
        Some((1, note)) => {
            let Pause1 { by, since, reason } = read(note);
            Some(PauseNote { by, since, reason })
        }
        _ => None,
    };
    (form, note)
}

#[derive(Serialize, Deserialize)]
struct Pause1 {
    by: String,
    since: Timestamp,
    reason: Option<String>,
}

/// A version that this server does not know. To guess would be to lose what somebody has set.
pub(crate) fn newer(what: &str) -> ! {
    panic!("a newer version of Punctual wrote {what}: do not go back to an older one")
}

/// The time since when something is being deleted, as its mark has it.
pub(crate) fn lay_mark(since: Timestamp) -> Bytes {
    lay(1, &since)
}

pub(crate) fn read_mark(bytes: &[u8]) -> Timestamp {
    match version(bytes) {
        (1, fields) => read(fields),
        _ => newer("these settings"),
    }
}

#[derive(Serialize, Deserialize)]
struct Topic1 {
    owner: Option<String>,
    feeds: Option<Vec<Binding>>,
    history: Millis,
    paused: bool,
    rate: Option<Rate>,
    priority: u32,
    ttl: Option<Millis>,
}

impl TopicSettings {
    /// Their stored form.
    pub(crate) fn lay(&self) -> Bytes {
        let TopicSettings { owner, feeds, history, paused, pause, rate, priority, ttl } = self.clone();
        lay_noted(1, &Topic1 { owner, feeds, history, paused, rate, priority, ttl }, pause.as_ref())
    }

    /// What was stored.
    pub(crate) fn read(bytes: &[u8]) -> TopicSettings {
        let (Topic1 { owner, feeds, history, paused, rate, priority, ttl }, pause) = match version(bytes) {
            (1, fields) => read_noted(fields),
            _ => newer("these settings"),
        };
        TopicSettings { owner, feeds, history, paused, pause, rate, priority, ttl }
    }
}

#[derive(Serialize, Deserialize)]
struct Queue1 {
    lease: Millis,
    retry: Retry,
    max_length: Option<u64>,
    overflow: Overflow,
    dead_letter: Option<Name>,
    dead_retention: Option<Millis>,
    paused_until: Option<Timestamp>,
    rate: Option<Rate>,
}

#[derive(Serialize, Deserialize)]
struct Queue2 {
    before: Queue1,
    order: Order,
}

#[derive(Serialize, Deserialize)]
struct Queue3 {
    before: Queue2,
    max_lease: Millis,
}

impl From<Queue1> for Queue2 {
    fn from(before: Queue1) -> Queue2 {
        Queue2 { before, order: Order::default() }
    }
}

impl From<Queue2> for Queue3 {
    fn from(before: Queue2) -> Queue3 {
        let max_lease = QueueSettings::usual_max_lease(before.before.lease);
        Queue3 { before, max_lease }
    }
}

impl QueueSettings {
    /// Their stored form.
    pub(crate) fn lay(&self) -> Bytes {
        let QueueSettings {
            lease,
            max_lease,
            retry,
            max_length,
            overflow,
            dead_letter,
            dead_retention,
            paused_until,
            pause,
            rate,
            order,
        } = self.clone();
        let first = Queue1 { lease, retry, max_length, overflow, dead_letter, dead_retention, paused_until, rate };
        let third = Queue3 { before: Queue2 { before: first, order }, max_lease };
        let second = &third.before;
        if max_lease != QueueSettings::usual_max_lease(lease) {
            lay_noted(3, &third, pause.as_ref())
        } else if order != Order::default() {
            lay_noted(2, second, pause.as_ref())
        } else {
            lay_noted(1, &second.before, pause.as_ref())
        }
    }

    /// What was stored.
    pub(crate) fn read(bytes: &[u8]) -> QueueSettings {
        let (third, pause): (Queue3, _) = match version(bytes) {
            (1, fields) => {
                let (first, pause) = read_noted::<Queue1>(fields);
                (Queue2::from(first).into(), pause)
            }
            (2, fields) => {
                let (second, pause) = read_noted::<Queue2>(fields);
                (second.into(), pause)
            }
            (3, fields) => read_noted(fields),
            _ => newer("these settings"),
        };
        let Queue3 { before: Queue2 { before: first, order }, max_lease } = third;
        let Queue1 { lease, retry, max_length, overflow, dead_letter, dead_retention, paused_until, rate } = first;
        QueueSettings {
            lease,
            max_lease,
            retry,
            max_length,
            overflow,
            dead_letter,
            dead_retention,
            paused_until,
            pause,
            rate,
            order,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;
    use crate::settings::Backoff;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    /// The bytes of settings, as they stand in stores that exist.
    #[test]
    fn settings_of_queues_stay_readable() {
        let usual = [176, 234, 1, 5, 1, 232, 7, 128, 221, 219, 1, 10, 0, 0, 0, 0, 0, 0];
        let version_1 = [&[1], &usual[..]].concat();
        assert_eq!(QueueSettings::read(&version_1), QueueSettings::default());
        assert_eq!(QueueSettings::default().lay(), version_1, "the usual order is written as before");
        let version_2 = [&[2], &usual[..], &[1]].concat();
        let by_arrival = QueueSettings { order: Order::Arrival, ..QueueSettings::default() };
        assert_eq!(QueueSettings::read(&version_2), by_arrival);
        assert_eq!(by_arrival.lay(), version_2);
        let version_3 = [&[3], &usual[..], &[1, 224, 212, 3]].concat();
        let brief = QueueSettings { max_lease: Millis(60_000), ..by_arrival };
        assert_eq!(QueueSettings::read(&version_3), brief);
        assert_eq!(brief.lay(), version_3);
    }

    /// Nothing in it has its default, so that a field that changes its place or its form shows.
    #[test]
    fn a_queue_with_everything_set_stays_readable() {
        let first = [7, 3, 0, 9, 20, 1, 12, 1, 1, 6, 103, 114, 97, 118, 101, 115, 1, 5, 1, 233, 7, 1, 4, 8];
        let mut all = QueueSettings {
            lease: Millis(7),
            max_lease: QueueSettings::usual_max_lease(Millis(7)),
            retry: Retry { attempts: 3, backoff: Backoff::Fixed(Millis(9)), jitter_percent: 20 },
            max_length: Some(12),
            overflow: Overflow::DropOldest,
            dead_letter: Some(name("graves")),
            dead_retention: Some(Millis(5)),
            paused_until: Some(Timestamp::from_millis(1_001)),
            pause: None,
            rate: Some(Rate { per_second: 4, burst: 8 }),
            order: Order::Due,
        };
        for (version, behind, order, max_lease) in [
            (1, &[][..], Order::Due, all.max_lease),
            (2, &[1], Order::Arrival, all.max_lease),
            (3, &[1, 11], Order::Arrival, Millis(11)),
            (3, &[0, 11], Order::Due, Millis(11)),
        ] {
            let bytes = [&[version], &first[..], behind].concat();
            (all.order, all.max_lease) = (order, max_lease);
            assert_eq!(QueueSettings::read(&bytes), all, "version {version}");
            assert_eq!(all.lay(), bytes, "version {version}");
        }
    }

    #[test]
    fn settings_of_topics_stay_readable() {
        let usual = [1, 0, 0, 128, 184, 153, 41, 0, 0, 128, 128, 4, 0];
        assert_eq!(TopicSettings::read(&usual), TopicSettings::default());
        assert_eq!(TopicSettings::default().lay(), &usual[..]);
        let feeds = [1, 2, 1, 97, 0, 1, 98, 1, 3, 120, 46, 35];
        let version_1 = [&[1, 1, 2, 109, 101], &feeds[..], &[5, 1, 1, 4, 8, 10, 1, 9]].concat();
        let all = TopicSettings {
            owner: Some("me".into()),
            feeds: Some(vec![
                Binding::all(name("a")),
                Binding { queue: name("b"), pattern: Pattern::Words("x.#".into()) },
            ]),
            history: Millis(5),
            paused: true,
            pause: None,
            rate: Some(Rate { per_second: 4, burst: 8 }),
            priority: 10,
            ttl: Some(Millis(9)),
        };
        assert_eq!(TopicSettings::read(&version_1), all);
        assert_eq!(all.lay(), version_1);
    }

    /// The bytes of a note, and the note.
    fn noted() -> (Vec<u8>, PauseNote) {
        let bytes = [&[1, 3], &b"amy"[..], &[233, 7, 1, 4], b"down"].concat();
        (bytes, PauseNote { by: "amy".into(), since: Timestamp::from_millis(1_001), reason: Some("down".into()) })
    }

    #[test]
    fn the_note_of_a_pause_stands_behind_any_version() {
        let (bytes, note) = noted();
        let brief = QueueSettings { max_lease: Millis(60_000), ..QueueSettings::default() };
        let by_arrival = QueueSettings { order: Order::Arrival, ..QueueSettings::default() };
        for plain in [QueueSettings::default(), by_arrival, brief] {
            let plain = QueueSettings { paused_until: Some(Timestamp::NEVER), ..plain };
            let settings = QueueSettings { pause: Some(note.clone()), ..plain.clone() };
            assert_eq!(settings.lay(), [&plain.lay()[..], &bytes].concat());
            assert_eq!(QueueSettings::read(&settings.lay()), settings);
        }
        let topic = TopicSettings { paused: true, pause: Some(note), ..TopicSettings::default() };
        assert_eq!(TopicSettings::read(&topic.lay()), topic);
    }

    #[test]
    fn servers_from_before_there_were_notes_read_the_settings_without_one() {
        let (_, note) = noted();
        let paused = QueueSettings { paused_until: Some(Timestamp::NEVER), ..QueueSettings::default() };
        let settings = QueueSettings { pause: Some(note), ..paused.clone() };
        let (bytes, plain) = (settings.lay(), paused.lay());
        // This is how they read, and what they write then.
        assert_eq!(lay(1, &read::<Queue1>(&bytes[1..])), plain);
        assert_eq!(QueueSettings::read(&plain).pause, None);
    }

    #[test]
    fn a_note_in_a_form_of_the_future_is_none() {
        let paused = TopicSettings { paused: true, ..TopicSettings::default() };
        assert_eq!(TopicSettings::read(&[&paused.lay()[..], &[2, 255]].concat()), paused);
    }

    #[test]
    fn marks_stay_readable() {
        let since = Timestamp::from_millis(1_001);
        assert_eq!(read_mark(&[1, 233, 7]), since);
        assert_eq!(lay_mark(since), &[1, 233, 7][..]);
    }

    #[test]
    fn a_lease_from_before_there_was_a_longest_one_is_not_cut() {
        let day = Millis::from_hours(24);
        let old = QueueSettings { lease: day, max_lease: day, ..QueueSettings::default() };
        assert_eq!(old.lay()[0], 1, "it is written as it was then");
        assert_eq!(QueueSettings::read(&old.lay()), old);
    }

    #[test]
    #[should_panic(expected = "a newer version of Punctual wrote these settings: do not go back to an older one")]
    fn a_newer_version_of_a_queue_is_refused() {
        QueueSettings::read(&[4, 0]);
    }

    #[test]
    #[should_panic(expected = "a newer version of Punctual wrote these settings: do not go back to an older one")]
    fn a_newer_version_of_a_topic_is_refused() {
        TopicSettings::read(&[2, 0]);
    }
}
