//! fjall at its best: write buffers of 256 MiB, so that it flushes and compacts seldom and in large pieces; a
//! journal that never forces a flush before that; no compression of what is random; each batch sorted by
//! time; and tombstones that vanish with what they hide, as a position is written only once.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use fjall::compaction::Leveled;
use fjall::config::{BlockSizePolicy, CompressionPolicy};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, OwnedWriteBatch, PersistMode};
use punctual_core::Timestamp;
use punctual_core::store::{Key, Position, Row};

use super::layout::{position_bytes, position_from, put_key, put_row, row_from};
use super::{Contestant, Inserts};

struct Fjall {
    database: Database,
    /// Position to row.
    timeline: Keyspace,
    /// Key to position.
    keys: Keyspace,
    buffer: Vec<u8>,
}

pub fn open(directory: &Path) -> Box<dyn Contestant> {
    Box::new(Fjall::open(directory, None))
}

/// With the values in files of their own, which compactions need not write again.
pub fn open_with_blobs(directory: &Path) -> Box<dyn Contestant> {
    let apart = KvSeparationOptions::default().separation_threshold(128).file_target_size(256 << 20);
    Box::new(Fjall::open(directory, Some(apart)))
}

impl Fjall {
    fn open(directory: &Path, apart: Option<KvSeparationOptions>) -> Fjall {
        let database = Database::builder(directory)
            .cache_size(256 << 20)
            .max_journaling_size(2 << 30)
            .manual_journal_persist(true)
            .open()
            .expect("fjall opens");
        let compaction = || Arc::new(Leveled::default().with_l0_threshold(8).with_table_target_size(128 << 20));
        let timeline = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(256 << 20)
                .compaction_strategy(compaction())
                .data_block_compression_policy(CompressionPolicy::disabled())
                .data_block_size_policy(BlockSizePolicy::all(8 << 10))
                .expect_point_read_hits(true)
                .with_kv_separation(apart)
        };
        let timeline = database.keyspace("timeline", timeline).expect("it opens");
        let keys = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(128 << 20)
                .compaction_strategy(compaction())
                .data_block_compression_policy(CompressionPolicy::disabled())
        };
        let keys = database.keyspace("keys", keys).expect("it opens");
        Fjall { database, timeline, keys, buffer: Vec::new() }
    }

    fn batch(&self, capacity: usize) -> OwnedWriteBatch {
        OwnedWriteBatch::with_capacity(self.database.clone(), capacity).durability(Some(PersistMode::SyncData))
    }

    fn position_of(&mut self, key: &Key) -> Option<Position> {
        put_key(key, &mut self.buffer);
        self.keys.get(&self.buffer).expect("fjall reads").map(|bytes| position_from(&bytes))
    }

    /// Enters a row at a position into a batch.
    fn put(&mut self, batch: &mut OwnedWriteBatch, row: &Row, position: Position, state: &[u8]) {
        let position = position_bytes(position);
        put_row(row, state, &mut self.buffer);
        batch.insert(&self.timeline, position, self.buffer.as_slice());
        put_key(&row.key, &mut self.buffer);
        batch.insert(&self.keys, self.buffer.as_slice(), position);
    }

    /// Strikes a row off in a batch.
    fn strike(&mut self, batch: &mut OwnedWriteBatch, key: &Key, position: Position) {
        batch.remove_weak(&self.timeline, position_bytes(position));
        put_key(key, &mut self.buffer);
        batch.remove(&self.keys, self.buffer.as_slice());
    }
}

impl Inserts for Fjall {
    fn insert(&mut self, mut rows: Vec<Row>) {
        rows.sort_unstable_by_key(Row::position);
        let mut batch = self.batch(rows.len() * 2);
        for row in &rows {
            self.put(&mut batch, row, row.position(), &row.state);
        }
        batch.commit().expect("fjall commits");
    }
}

impl Contestant for Fjall {
    fn due(&mut self, from: Position, until: Timestamp, limit: usize) -> Vec<Row> {
        let range = position_bytes(from)..position_bytes(Position::start_of(until));
        let row = |guard: fjall::Guard| {
            let (position, value) = guard.into_inner().expect("fjall reads");
            row_from(position_from(&position), &value)
        };
        self.timeline.range(range).take(limit).map(row).collect()
    }

    fn get(&mut self, keys: &[Key]) -> Vec<Option<Row>> {
        let mut get = |key| {
            let position = self.position_of(key)?;
            let value = self.timeline.get(position_bytes(position)).expect("fjall reads");
            Some(row_from(position, &value.expect("a key and its row come and go together")))
        };
        keys.iter().map(&mut get).collect()
    }

    fn remove_keys(&mut self, keys: &[Key]) -> usize {
        let mut batch = self.batch(keys.len() * 2);
        for key in keys {
            if let Some(position) = self.position_of(key) {
                self.strike(&mut batch, key, position);
            }
        }
        let count = batch.len() / 2;
        batch.commit().expect("fjall commits");
        count
    }

    fn update(&mut self, rows: &[Row], at: Timestamp, states: Vec<Bytes>) {
        let mut batch = self.batch(rows.len() * 3);
        for (row, state) in rows.iter().zip(states) {
            batch.remove_weak(&self.timeline, position_bytes(row.position()));
            self.put(&mut batch, row, Position { at, seq: row.seq }, &state);
        }
        batch.commit().expect("fjall commits");
    }

    fn remove(&mut self, rows: &[Row]) {
        let mut batch = self.batch(rows.len() * 2);
        for row in rows {
            self.strike(&mut batch, &row.key, row.position());
        }
        batch.commit().expect("fjall commits");
    }
}
