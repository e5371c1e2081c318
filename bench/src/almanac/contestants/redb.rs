//! redb: two tables in one file, batches sorted by time, every commit durable at once. Quick repair is left off, as
//! it comes: commits are faster for it, and opening after a crash is slower.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use punctual_core::Timestamp;
use punctual_core::store::{Key, Position, Row};
use redb::{Database, Durability, ReadableDatabase, Table, TableDefinition};

use super::layout::{put_key, put_row, row_from};
use super::{Contestant, Inserts};

const TIMELINE: TableDefinition<(u64, u64), &[u8]> = TableDefinition::new("timeline");
const KEYS: TableDefinition<&[u8], (u64, u64)> = TableDefinition::new("keys");

struct Redb {
    database: Database,
    buffer: Vec<u8>,
}

/// The tables while a transaction changes them.
struct Tables<'a> {
    timeline: Table<'a, (u64, u64), &'static [u8]>,
    keys: Table<'a, &'static [u8], (u64, u64)>,
    buffer: &'a mut Vec<u8>,
}

pub fn open(directory: &Path) -> Box<dyn Contestant> {
    fs::create_dir_all(directory).expect("the directory can be made");
    let database = Database::builder().set_cache_size(1 << 30).create(directory.join("redb")).expect("redb opens");
    let mut redb = Redb { database, buffer: Vec::new() };
    // Reading wants the tables to be there.
    redb.change(|_| {});
    Box::new(redb)
}

impl Redb {
    fn change<T>(&mut self, act: impl FnOnce(&mut Tables) -> T) -> T {
        let mut transaction = self.database.begin_write().expect("nobody else writes");
        transaction.set_durability(Durability::Immediate).expect("there are no savepoints");
        let outcome = act(&mut Tables {
            timeline: transaction.open_table(TIMELINE).expect("redb reads"),
            keys: transaction.open_table(KEYS).expect("redb reads"),
            buffer: &mut self.buffer,
        });
        transaction.commit().expect("redb commits");
        outcome
    }
}

impl Tables<'_> {
    fn put(&mut self, row: &Row, position: Position, state: &[u8]) {
        put_row(row, state, self.buffer);
        self.timeline.insert(pair(position), self.buffer.as_slice()).expect("redb writes");
        put_key(&row.key, self.buffer);
        self.keys.insert(self.buffer.as_slice(), pair(position)).expect("redb writes");
    }

    /// Whether there was a row under this key.
    fn strike(&mut self, key: &Key) -> bool {
        put_key(key, self.buffer);
        let position = self.keys.remove(self.buffer.as_slice()).expect("redb writes").map(|position| position.value());
        let Some(position) = position else { return false };
        self.timeline.remove(position).expect("redb writes").is_some()
    }
}

impl Inserts for Redb {
    fn insert(&mut self, mut rows: Vec<Row>) {
        rows.sort_unstable_by_key(Row::position);
        self.change(|tables| rows.iter().for_each(|row| tables.put(row, row.position(), &row.state)));
    }
}

impl Contestant for Redb {
    fn due(&mut self, from: Position, until: Timestamp, limit: usize) -> Vec<Row> {
        let reading = self.database.begin_read().expect("redb reads");
        let timeline = reading.open_table(TIMELINE).expect("the table is there");
        let range = timeline.range(pair(from)..pair(Position::start_of(until))).expect("redb reads");
        let entries = range.take(limit).map(|entry| entry.expect("redb reads"));
        entries.map(|(position, value)| row_from(unpair(position.value()), value.value())).collect()
    }

    fn get(&mut self, keys: &[Key]) -> Vec<Option<Row>> {
        let reading = self.database.begin_read().expect("redb reads");
        let timeline = reading.open_table(TIMELINE).expect("the table is there");
        let positions = reading.open_table(KEYS).expect("the table is there");
        let mut get = |key| {
            put_key(key, &mut self.buffer);
            let position = positions.get(self.buffer.as_slice()).expect("redb reads")?.value();
            let value = timeline.get(position).expect("redb reads").expect("a key and its row come and go together");
            Some(row_from(unpair(position), value.value()))
        };
        keys.iter().map(&mut get).collect()
    }

    fn remove_keys(&mut self, keys: &[Key]) -> usize {
        self.change(|tables| keys.iter().filter(|key| tables.strike(key)).count())
    }

    fn update(&mut self, rows: &[Row], at: Timestamp, states: Vec<Bytes>) {
        self.change(|tables| {
            for (row, state) in rows.iter().zip(states) {
                tables.timeline.remove(pair(row.position())).expect("redb writes");
                tables.put(row, Position { at, seq: row.seq }, &state);
            }
        });
    }

    fn remove(&mut self, rows: &[Row]) {
        self.change(|tables| {
            for row in rows {
                assert!(tables.strike(&row.key), "the row is there");
            }
        });
    }
}

fn pair(position: Position) -> (u64, u64) {
    (position.at.as_millis(), position.seq)
}

fn unpair((at, seq): (u64, u64)) -> Position {
    Position { at: Timestamp::from_millis(at), seq }
}
