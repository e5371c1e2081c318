//! Opening a shard: its settings and counts are read, its tasks stay in the store.

use std::collections::BTreeMap;

use super::catalogue::Catalogue;
use super::cramped::Shortage;
use super::desk::Desk;
use super::directory::{Closed, Directory};
use super::draft::Draft;
use super::draw::Buckets;
use super::flight::Flight;
use super::forecast::Forecast;
use super::meta::{Meta, Numbers};
use super::prepare::Agenda;
use super::retention::Retained;
use super::stock::Stock;
use super::sweeping::{SweepNote, Sweeps};
use super::timers::Timers;
use super::{Shard, ShardConfig};
use crate::name::Name;
use crate::settings::{QueueSettings, TopicSettings};
use crate::store::{
    Bodies, Found, Key, Look, Page, Position, Row, Scan, ShardId, Store, StoreError, Table, Tally, TallyKind, Tenure,
    Want,
};
use crate::stored::read_mark;
use crate::time::Timestamp;

/// How many rows of settings are read at once.
const STRETCH: usize = 1_024;

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

/// A part of the settings of a shard.
fn settings_from(from: Position) -> Scan {
    Scan { table: Table::Settings, from, until: Timestamp::NEVER, topic: None, limit: STRETCH, bodies: Bodies::Without }
}

/// Reads one thing for a shard's owner.
pub(super) fn read_one(store: &dyn Store, shard: ShardId, tenure: Tenure, want: Want<'_>) -> Result<Found, StoreError> {
    let mut found = store.read(shard, tenure, &[want])?;
    Ok(found.pop().expect("a store answers each want"))
}

/// What a shard is opened from.
struct Basis {
    settings: Vec<Row>,
    tallies: Vec<(Tally, i64)>,
}

/// All rows of settings of a shard, and its tallies. Almost always that is one read.
fn read_basis(store: &dyn Store, shard: ShardId, tenure: Tenure) -> Result<Basis, StoreError> {
    let first = settings_from(Position::START);
    let mut found = store.read(shard, tenure, &[Want::Scan(&first), Want::Tallies])?;
    let tallies = found.pop().expect("a store answers each want").tallies();
    let Page { rows: mut settings, mut next } = found.pop().expect("a store answers each want").span();
    while let Some(from) = next {
        let page = read_one(store, shard, tenure, Want::Scan(&settings_from(from)))?.span();
        settings.extend(page.rows);
        next = page.next;
    }
    Ok(Basis { settings, tallies })
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
    let mut next = Some(Position::START);
    let mut rows = Vec::new();
    while let Some(from) = next {
        let page = store.scan(shard, &settings_from(from))?;
        rows.extend(page.rows);
        next = page.next;
    }
    for row in rows.iter().filter(|row| row.key.id().is_empty()) {
        if !row.key.topic().is_empty() {
            settings.topics.insert(Name::stored(row.key.topic()), TopicSettings::read(&row.state));
        } else if !row.key.queue().is_empty() {
            settings.queues.insert(Name::stored(row.key.queue()), QueueSettings::read(&row.state));
        }
    }
    Ok(settings)
}

/// Into how many shards the tasks of a store are divided, if it was ever opened.
pub fn noted_shards(store: &dyn Store) -> Result<Option<u16>, StoreError> {
    let mut next = Some(Position::START);
    while let Some(from) = next {
        // The note is the first of a shard's settings, or close to it.
        let page = store.scan(ShardId(0), &Scan { limit: 16, ..settings_from(from) })?;
        if let Some(note) = page.rows.iter().find(|row| row.key == Meta::key()) {
            return Ok(Some(Meta::decode(&note.state).shards()));
        }
        next = page.next;
    }
    Ok(None)
}

/// What is said of a store that is being divided into more shards.
const GROWING: &str = "this store is being divided into more shards, and that is not finished: run the same `punctual shards grow` again, it continues";

/// Why a shard cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The store does not answer, does not know the fence, or cannot vouch for its data.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The tasks are divided into another number of shards, and would be looked for in the wrong ones.
    #[error("this store has {noted} shards, not {configured}: start with {noted}")]
    Shards {
        /// Into how many they are divided.
        noted: u16,
        /// Into how many they were said to be.
        configured: u16,
    },
    /// The shard is being divided, and some of its rows may be elsewhere.
    #[error("{GROWING}")]
    Growing,
}

impl<R> Shard<R> {
    /// Opens a shard that was claimed, and is held like this. The first time its note is written, and is
    /// durable when this comes back: whoever opens all shards, the first one first, can never
    /// have tasks in one of them without the first one knowing how many there are.
    pub fn open(
        id: ShardId,
        tenure: Tenure,
        config: ShardConfig,
        now: Timestamp,
        store: &dyn Store,
    ) -> Result<Shard<R>, OpenError> {
        let mut shard = Shard::empty(id, tenure, config, now);
        let Basis { settings, tallies } = read_basis(store, id, tenure)?;
        let (marks, settings): (Vec<Row>, Vec<Row>) = settings.into_iter().partition(|row| row.key.id() == MARK);
        let (sweeps, settings): (Vec<Row>, Vec<Row>) = settings.into_iter().partition(SweepNote::is_in);
        for row in settings {
            shard.restore_setting(&row)?;
        }
        for mark in marks {
            shard.go_on_deleting(&mark);
        }
        shard.go_on_sweeping(&sweeps);
        shard.numbers.give_tokens_under(tenure.fence);
        if let Some(note) = shard.catalogue.first_note(&mut shard.numbers) {
            for answer in store.commit(vec![shard.flight.seal(vec![note], Vec::new())])? {
                answer.map_err(StoreError::from)?;
            }
            shard.flight.arrived();
        }
        let (mut is_right, mut absent) = (true, Vec::new());
        for (tally, count) in tallies {
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

    fn empty(id: ShardId, tenure: Tenure, config: ShardConfig, now: Timestamp) -> Shard<R> {
        Shard {
            now,
            flight: Flight::new(id, tenure, now),
            numbers: Numbers::new(),
            catalogue: Catalogue::new(config.shards),
            directory: Directory::default(),
            desk: Desk::new(config.cache, config.seed),
            timers: Timers::new(now),
            stock: Stock::new(),
            forecast: Forecast::default(),
            retained: Retained::new(config.keeps_history),
            shortage: Shortage::new(),
            buckets: Buckets::new(now),
            jobs: Vec::new(),
            sweeps: Sweeps::default(),
            agenda: Agenda::default(),
            draft: Draft::new(),
            config,
        }
    }

    /// A deletion was cut short: it goes on.
    fn go_on_deleting(&mut self, mark: &Row) {
        let since = read_mark(&mark.state);
        self.catalogue.restore(mark.key.clone(), mark.seq);
        let (name, what) = match mark.key.topic() {
            "" => (mark.key.queue(), self.directory.queue_index(mark.key.queue()).map(Closed::Queue)),
            topic => (topic, self.directory.topic_index(topic).map(Closed::Topic)),
        };
        if let Some(what) = what {
            // Which rows came in after it began is not known any more.
            self.begin_deletion(what, &Name::stored(name), since.min(self.now), u64::MAX);
        }
    }

    fn restore_setting(&mut self, row: &Row) -> Result<(), OpenError> {
        let (topic, queue) = (row.key.topic(), row.key.queue());
        if !topic.is_empty() {
            let settings = TopicSettings::read(&row.state);
            self.directory.add_topic(&Name::stored(topic), settings.clone());
            self.adopt_topic(&Name::stored(topic), &settings);
            self.retained.history.look_again(settings.history);
        } else if !queue.is_empty() {
            let settings = QueueSettings::read(&row.state);
            self.directory.add_queue(&Name::stored(queue), settings.clone());
            self.adopt_queue(&Name::stored(queue), &settings);
            if let Some(period) = settings.dead_retention {
                self.retained.dead.look_again(period);
            }
        } else {
            let meta = Meta::decode(&row.state);
            let (noted, configured) = (meta.shards(), self.config.shards);
            if noted == 0 {
                return Err(OpenError::Growing);
            }
            if noted != configured {
                return Err(OpenError::Shards { noted, configured });
            }
            self.numbers = meta.numbers();
            self.forecast.set_horizon(meta.minutes());
            self.catalogue.restore_note(&meta);
        }
        self.catalogue.restore(row.key.clone(), row.seq);
        Ok(())
    }
}
