//! Random work on few keys of few shards: every kind of change, bodies of every size.

use std::collections::BTreeMap;

use bytes::Bytes;
use punctual_chance::Chance;
use punctual_core::store::{Batch, Change, Key, Row, ShardId, Table, Tally, TallyKind, Tenure};
use punctual_core::{Name, Timestamp};

use super::model::Model;

pub struct Work {
    pub shards: Vec<ShardId>,
    pub keys: Vec<Key>,
    pub groups: Vec<Name>,
    /// How the writer holds the shards, as far as it knows.
    pub tenures: BTreeMap<ShardId, Tenure>,
    next_seq: u64,
    largest: u64,
}

const TABLES: [Table; 4] = [Table::Live, Table::Live, Table::Dead, Table::History];

impl Work {
    /// Work on so many keys of each shard, with bodies that are seldom as large as this.
    pub fn new(keys: u64, largest: u64) -> Work {
        let key = |number: u64| {
            Key::new(
                ["orders", "mail"][number as usize % 2],
                &format!("{}", number / 3),
                ["", "a", "b"][number as usize % 3],
            )
        };
        Work {
            shards: [0, 1, 513].map(ShardId).to_vec(),
            keys: (0..keys).map(key).collect(),
            groups: ["red", "green", "blue"].map(|name| Name::new(name).unwrap()).to_vec(),
            tenures: BTreeMap::new(),
            next_seq: 1,
            largest,
        }
    }

    /// The batches of a commit, and what they make of the model.
    pub fn commit(&mut self, model: &Model, chance: &mut Chance) -> (Vec<Batch>, Model) {
        let mut after = model.clone();
        let batches = (0..1 + chance.below(3)).map(|_| {
            let shard = *chance.pick(&self.shards);
            let batch = self.batch(shard, &after, chance);
            after.apply(&batch);
            batch
        });
        (batches.collect(), after)
    }

    /// A batch that changes a few rows of a shard.
    pub fn batch(&mut self, shard: ShardId, model: &Model, chance: &mut Chance) -> Batch {
        let most = if chance.happens(1, 12) { 40 } else { 5 };
        let mut changes: Vec<Change> = Vec::new();
        for _ in 0..chance.below(most) {
            let key = chance.pick(&self.keys).clone();
            let settings = chance.happens(1, 8);
            let table = if settings { Table::Settings } else { *chance.pick(&TABLES) };
            let is_same = |change: &Change| *change.key() == key && is_settings(change) == settings;
            if !changes.iter().any(is_same) {
                changes.push(self.change(model.row_of(shard, table, &key), table, &key, chance));
            }
        }
        let mut tallies: BTreeMap<Tally, i64> = BTreeMap::new();
        for _ in 0..chance.below(3) {
            let tally = if chance.happens(1, 2) {
                Tally::named(TallyKind::Waiting, chance.pick(&self.groups))
            } else {
                Tally::slot(TallyKind::DueDay, chance.below(4))
            };
            tallies.insert(tally, chance.below(5) as i64 - 2);
        }
        let tenure = self.tenures.entry(shard).or_default();
        let batch = Batch {
            shard,
            fence: tenure.fence,
            serial: tenure.serial,
            changes,
            tallies: tallies.into_iter().collect(),
        };
        if batch.is_empty() {
            return batch;
        }
        tenure.serial += 1;
        Batch { serial: tenure.serial, ..batch }
    }

    /// What is written to an entry of the cluster, and under which key.
    pub fn entry(&mut self, chance: &mut Chance) -> (&'static str, Bytes) {
        (*chance.pick(&["shards", "level", "pins"]), self.state(chance))
    }

    fn change(&mut self, row: Option<&Row>, table: Table, key: &Key, chance: &mut Chance) -> Change {
        let Some(row) = row else {
            return Change::Insert { row: self.row(table, key, None, chance), replaces: None };
        };
        let place = row.place();
        match chance.below(8) {
            0 | 1 => Change::Remove { place },
            2 => Change::Insert { row: self.row(table, key, None, chance), replaces: Some(place) },
            3 => Change::Insert { row: self.row(table, key, Some(row.seq), chance), replaces: Some(place) },
            4 => Change::Update { place, table: row.table, at: row.at, state: self.state(chance) },
            _ => Change::Update { place, table, at: time(table, chance), state: self.state(chance) },
        }
    }

    fn row(&mut self, table: Table, key: &Key, seq: Option<u64>, chance: &mut Chance) -> Row {
        let group = chance.happens(1, 2).then(|| chance.pick(&self.groups).clone());
        let seq = seq.unwrap_or_else(|| self.next_seq());
        let (state, body) = (self.state(chance), self.body(chance));
        Row { table, key: key.clone(), seq, at: time(table, chance), group, state, body }
    }

    fn next_seq(&mut self) -> u64 {
        self.next_seq += 1;
        self.next_seq
    }

    /// No two bodies are alike, so that one in the place of another is noticed.
    fn body(&mut self, chance: &mut Chance) -> Bytes {
        let length = match chance.below(20) {
            0..5 => 0,
            5..14 => chance.below(100),
            14..19 => chance.below(1_500),
            _ => chance.below(self.largest),
        };
        let pattern = self.next_seq().to_le_bytes();
        pattern.into_iter().cycle().take(length as usize).collect()
    }

    fn state(&mut self, chance: &mut Chance) -> Bytes {
        let number = self.next_seq().to_le_bytes();
        number.into_iter().cycle().take(chance.below(24) as usize).collect()
    }
}

fn is_settings(change: &Change) -> bool {
    match change {
        Change::Insert { row, .. } => row.table == Table::Settings,
        Change::Update { place, .. } | Change::Remove { place } => place.table == Table::Settings,
    }
}

fn time(table: Table, chance: &mut Chance) -> Timestamp {
    match table {
        Table::Settings => Timestamp::ZERO,
        _ if chance.happens(1, 30) => Timestamp::NEVER,
        _ => Timestamp::from_millis(chance.below(40) * 1_000),
    }
}
