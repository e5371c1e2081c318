//! Opening a shard: its settings and counts are read, its tasks stay in the store.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use punctual_wheel::Wheel;
use serde::{Serialize, de::DeserializeOwned};

use super::desk::Desk;
use super::directory::Directory;
use super::forecast::Forecast;
use super::late::Late;
use super::meta::{Meta, Numbers};
use super::needs::Pending;
use super::retention::Retention;
use super::{Closed, Shard, ShardConfig};
use crate::name::Name;
use crate::settings::{Order, QueueSettings, TopicSettings};
use crate::store::{
    Batch, Bodies, Fence, Key, Position, Room, Row, Scan, ShardId, Store, StoreError, Table, TallyKind,
};
use crate::time::Timestamp;

/// The version of the layout of settings.
const VERSION: u8 = 1;
/// The same for a queue, followed by its order. It is written only if that is not the usual one.
const WITH_ORDER: u8 = 2;
/// The same, followed by its longest lease. It is written only if that is not the usual one.
const WITH_MAX_LEASE: u8 = 3;

/// How many rows of settings are read at once.
const PAGE: usize = 1_024;

/// The stored form of a topic's, a queue's or the shard's own settings.
pub(super) fn encode_setting<T: Serialize>(setting: &T) -> Bytes {
    postcard::to_extend(setting, vec![VERSION]).expect("settings can be laid out as bytes").into()
}

fn decode_setting<T: DeserializeOwned>(bytes: &[u8]) -> T {
    let (version, rest) = bytes.split_first().expect("stored settings start with their version");
    assert_eq!(*version, VERSION, "a newer version of Punctual wrote these settings: do not go back to an older one");
    postcard::from_bytes(rest).expect("stored settings can be read back")
}

/// The stored form of a queue's settings.
pub(super) fn encode_queue(settings: &QueueSettings) -> Bytes {
    let lay = |version| postcard::to_extend(settings, vec![version]).expect("settings can be laid out as bytes");
    if settings.max_lease != QueueSettings::usual_max_lease(settings.lease) {
        let tail = (settings.order, settings.max_lease);
        return postcard::to_extend(&tail, lay(WITH_MAX_LEASE)).expect("a tail can be laid out as bytes").into();
    }
    if settings.order != Order::default() {
        let bytes = postcard::to_extend(&settings.order, lay(WITH_ORDER));
        return bytes.expect("an order can be laid out as bytes").into();
    }
    lay(VERSION).into()
}

fn decode_queue(bytes: &[u8]) -> QueueSettings {
    let (version, rest) = bytes.split_first().expect("stored settings start with their version");
    let (mut settings, tail): (QueueSettings, &[u8]) =
        postcard::take_from_bytes(rest).expect("stored settings can be read back");
    settings.max_lease = QueueSettings::usual_max_lease(settings.lease);
    match *version {
        VERSION => {}
        WITH_ORDER => settings.order = postcard::from_bytes(tail).expect("a stored order can be read back"),
        WITH_MAX_LEASE => {
            (settings.order, settings.max_lease) = postcard::from_bytes(tail).expect("a stored tail can be read back");
        }
        _ => panic!("a newer version of Punctual wrote these settings: do not go back to an older one"),
    }
    settings
}

/// The row under which a topic's settings are stored.
pub(super) fn topic_key(name: &Name) -> Key {
    Key::new(name, "", "")
}

/// The row under which a queue's settings are stored.
pub(super) fn queue_key(name: &Name) -> Key {
    Key::new("", "", name)
}

/// What a row of settings has for an id that says that a topic or queue is being deleted.
const MARK: &str = "closing";

/// The row that says that a topic is being deleted, and since when.
pub(super) fn topic_mark(name: &Name) -> Key {
    Key::new(name, MARK, "")
}

/// The row that says that a queue is being deleted, and since when.
pub(super) fn queue_mark(name: &Name) -> Key {
    Key::new("", MARK, name)
}

/// All rows of settings of a shard.
fn setting_rows(store: &dyn Store, shard: ShardId) -> Result<Vec<Row>, StoreError> {
    let mut rows: Vec<Row> = Vec::new();
    loop {
        let from = rows.last().map_or(Position::START, |row| row.position().next());
        let scan = Scan {
            table: Table::Settings,
            from,
            until: Timestamp::NEVER,
            topic: None,
            limit: PAGE,
            bodies: Bodies::Without,
        };
        let page = store.scan(shard, &scan)?;
        let last = page.len() < PAGE;
        rows.extend(page);
        if last {
            return Ok(rows);
        }
    }
}

/// The settings of topics and queues, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredSettings {
    /// Topics.
    pub topics: BTreeMap<Name, TopicSettings>,
    /// Queues.
    pub queues: BTreeMap<Name, QueueSettings>,
}

/// Looks at the settings that a shard has stored.
pub fn settings_of(store: &dyn Store, shard: ShardId) -> Result<StoredSettings, StoreError> {
    let mut settings = StoredSettings::default();
    let rows = setting_rows(store, shard)?;
    for row in rows.iter().filter(|row| row.key.id() != MARK) {
        if !row.key.topic().is_empty() {
            settings.topics.insert(Name::stored(row.key.topic()), decode_setting(&row.state));
        } else if !row.key.queue().is_empty() {
            settings.queues.insert(Name::stored(row.key.queue()), decode_queue(&row.state));
        }
    }
    Ok(settings)
}

/// Why a shard cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The store does not answer, does not know the fence, or cannot vouch for its data.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The tasks are divided into another number of shards, and would be looked for in the wrong ones.
    #[error("the number of shards in this store is {noted}, not {configured}: start with {noted}")]
    Shards {
        /// Into how many they are divided.
        noted: u16,
        /// Into how many they were said to be.
        configured: u16,
    },
}

impl<R> Shard<R> {
    /// Opens a shard that was claimed under this fence. The first time its note is written, and is
    /// durable when this comes back: whoever opens all shards, the first one first, can never
    /// have tasks in one of them without the first one knowing how many there are.
    pub fn open(
        id: ShardId,
        fence: Fence,
        config: ShardConfig,
        now: Timestamp,
        store: &dyn Store,
    ) -> Result<Shard<R>, OpenError> {
        let mut shard = Shard::empty(id, fence, config, now);
        let (marks, settings): (Vec<Row>, Vec<Row>) =
            setting_rows(store, id)?.into_iter().partition(|row| row.key.id() == MARK);
        for row in settings {
            shard.restore_setting(&row)?;
        }
        for mark in marks {
            shard.go_on_deleting(&mark);
        }
        if !shard.stored_settings.contains_key(&Meta::key()) {
            shard.write_first_note(store)?;
        }
        let (mut is_right, mut absent) = (true, Vec::new());
        for (tally, count) in store.tallies(id)? {
            is_right &= count >= 0;
            let is_known = match tally.kind {
                TallyKind::DueDay | TallyKind::DueMinute => shard.forecast.restore(&tally, count),
                _ => shard.directory.restore(&tally, count),
            };
            if !is_known {
                absent.push((tally, count));
            }
        }
        if !is_right || !absent.is_empty() {
            shard.recount(store, absent)?;
        }
        shard.forecast.go_back(now);
        Ok(shard)
    }

    fn empty(id: ShardId, fence: Fence, config: ShardConfig, now: Timestamp) -> Shard<R> {
        Shard {
            id,
            fence,
            now,
            hand_over_at: now,
            handed: super::handed::HandOvers::default(),
            opened_at: now,
            is_catching_up: true,
            step: 0,
            in_flight: VecDeque::new(),
            numbers: Numbers::new(),
            directory: Directory::default(),
            desk: Desk::new(config.cache, config.seed),
            wheel: Wheel::new(now.as_millis()),
            late: Late::default(),
            horizon: Position::START,
            next_far: Timestamp::ZERO,
            expiries: BTreeSet::new(),
            doomed: Vec::new(),
            stocked: BTreeSet::new(),
            restocked: BTreeSet::new(),
            limited: BTreeMap::new(),
            forgotten: BTreeSet::new(),
            pauses: BTreeSet::new(),
            forecast: Forecast::default(),
            noted_horizon: Position::START,
            history: match config.keeps_history {
                true => Retention::off(Table::History),
                false => Retention::new(Table::History),
            },
            dead: Retention::new(Table::Dead),
            room: Room::Enough,
            held_up: Vec::new(),
            next_expiry: Timestamp::ZERO,
            jobs: Vec::new(),
            mended: Vec::new(),
            told_mended: 0,
            pending: Pending::default(),
            postponed: Vec::new(),
            answers: Vec::new(),
            forwards: Vec::new(),
            rates: Vec::new(),
            events: Vec::new(),
            gone: Vec::new(),
            gone_queues: Vec::new(),
            firing: None,
            offers: Vec::new(),
            takes: Vec::new(),
            settings: BTreeMap::new(),
            stored_settings: BTreeMap::new(),
            closed: BTreeSet::new(),
            rate_wake: Timestamp::NEVER,
            giving: BTreeSet::new(),
            cleared_for_consumers: 0,
            config,
        }
    }

    fn write_first_note(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        let note = Meta::new(self.config.shards, &self.numbers, self.noted_horizon);
        let changes = vec![self.put_setting(Meta::key(), note.encode())];
        let batch = Batch { shard: self.id, fence: self.fence, changes, tallies: Vec::new() };
        for answer in store.commit(vec![batch])? {
            answer?;
        }
        Ok(())
    }

    /// A deletion was cut short: it goes on.
    fn go_on_deleting(&mut self, mark: &Row) {
        let since: Timestamp = decode_setting(&mark.state);
        self.stored_settings.insert(mark.key.clone(), mark.seq);
        let (name, what) = match mark.key.topic() {
            "" => (mark.key.queue(), self.directory.queue_index(mark.key.queue()).map(Closed::Queue)),
            topic => (topic, self.directory.topic_index(topic).map(Closed::Topic)),
        };
        if let Some(what) = what {
            self.begin_deletion(what, &Name::stored(name), since.min(self.now), Vec::new());
        }
    }

    fn restore_setting(&mut self, row: &Row) -> Result<(), OpenError> {
        let (topic, queue) = (row.key.topic(), row.key.queue());
        if !topic.is_empty() {
            let settings: TopicSettings = decode_setting(&row.state);
            self.directory.add_topic(&Name::stored(topic), settings.clone());
            self.adopt_topic(&Name::stored(topic), &settings);
            self.history.look_again(settings.history);
        } else if !queue.is_empty() {
            let settings = decode_queue(&row.state);
            self.directory.add_queue(&Name::stored(queue), settings.clone());
            self.adopt_queue(&Name::stored(queue), &settings);
            if let Some(period) = settings.dead_retention {
                self.dead.look_again(period);
            }
        } else {
            let meta = Meta::decode(&row.state);
            let (noted, configured) = (meta.shards(), self.config.shards);
            if noted != configured {
                return Err(OpenError::Shards { noted, configured });
            }
            self.numbers = meta.numbers();
            self.forecast.set_horizon(meta.minutes());
            self.noted_horizon = meta.minutes();
        }
        self.stored_settings.insert(row.key.clone(), row.seq);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Millis;

    /// The bytes of settings, as they stand in stores that exist.
    #[test]
    fn settings_of_queues_stay_readable() {
        let usual = [176, 234, 1, 5, 1, 232, 7, 128, 221, 219, 1, 10, 0, 0, 0, 0, 0, 0];
        let version_1 = [&[1], &usual[..]].concat();
        assert_eq!(decode_queue(&version_1), QueueSettings::default());
        assert_eq!(encode_queue(&QueueSettings::default()), version_1, "the usual order is written as before");
        let version_2 = [&[2], &usual[..], &[1]].concat();
        let by_arrival = QueueSettings { order: Order::Arrival, ..QueueSettings::default() };
        assert_eq!(decode_queue(&version_2), by_arrival);
        assert_eq!(encode_queue(&by_arrival), version_2);
        let version_3 = [&[3], &usual[..], &[1, 224, 212, 3]].concat();
        let brief = QueueSettings { max_lease: Millis(60_000), ..by_arrival };
        assert_eq!(decode_queue(&version_3), brief);
        assert_eq!(encode_queue(&brief), version_3);
    }

    #[test]
    fn a_lease_from_before_there_was_a_longest_one_is_not_cut() {
        let day = Millis::from_hours(24);
        let old = QueueSettings { lease: day, max_lease: day, ..QueueSettings::default() };
        assert_eq!(encode_queue(&old)[0], VERSION, "it is written as it was then");
        assert_eq!(decode_queue(&encode_queue(&old)), old);
    }
}
