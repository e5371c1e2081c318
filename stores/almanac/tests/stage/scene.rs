//! An almanac on a simulated disk, and a model of what was confirmed: for tests of one fact.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use punctual_almanac::{Almanac, Config, OpenError};
use punctual_chance::Chance;
use punctual_core::store::{Change, Key, Refusal, Row, ShardId, Store, StoreError, Table, Tenure};
use punctual_core::{Clock, Name, Timestamp};
use punctual_simulated_disk::SimulatedDisk;

use super::ManualClock;
use super::model::Model;
use super::work::Work;

/// The shard that the simple changes concern.
pub const SHARD: ShardId = ShardId(1);

pub struct Scene {
    pub disk: SimulatedDisk,
    pub config: Config,
    pub work: Work,
    pub model: Model,
    pub chance: Chance,
    clock: Arc<ManualClock>,
}

impl Scene {
    pub fn new(seed: u64, config: Config) -> Scene {
        Scene {
            disk: SimulatedDisk::new(seed),
            work: Work::new(30, 2 * config.segment),
            config,
            model: Model::default(),
            chance: Chance::new(seed),
            clock: Arc::default(),
        }
    }

    pub fn try_open(&self) -> Result<Almanac, OpenError> {
        Almanac::open(Arc::new(self.disk.clone()), self.config.clone(), Arc::clone(&self.clock) as _)
    }

    /// Opens the almanac and claims all shards.
    pub fn open(&mut self) -> Almanac {
        let almanac = self.try_open().unwrap_or_else(|error| panic!("it does not open: {error}"));
        self.claim(&almanac).unwrap();
        almanac
    }

    /// Why the almanac does not open.
    pub fn refusal(&self) -> OpenError {
        self.try_open().expect_err("it was not to open")
    }

    pub fn claim(&mut self, almanac: &Almanac) -> Result<(), StoreError> {
        for shard in self.work.shards.clone() {
            let tenure = super::claim(almanac, shard)?;
            self.work.tenures.insert(shard, tenure);
        }
        Ok(())
    }

    /// Random work. If it fails, gives what there would be if the commit had happened all the same.
    pub fn commit(&mut self, almanac: &Almanac) -> Result<(), (StoreError, Model)> {
        let before = self.work.tenures.clone();
        let (batches, after) = self.work.commit(&self.model, &mut self.chance);
        let outcome = almanac.commit(batches);
        self.confirm(outcome.map(all_done), before, after)
    }

    /// Changes to the one shard.
    pub fn change(&mut self, almanac: &Almanac, changes: Vec<Change>) -> Result<(), (StoreError, Model)> {
        let before = self.work.tenures.clone();
        let batch = super::batch(SHARD, before[&SHARD], changes);
        self.work.tenures.insert(SHARD, Tenure { serial: batch.serial, ..before[&SHARD] });
        let mut after = self.model.clone();
        after.apply(&batch);
        let outcome = almanac.commit(vec![batch]);
        self.confirm(outcome.map(all_done), before, after)
    }

    /// Writes an entry of the cluster; gives its revision.
    pub fn put(&mut self, almanac: &Almanac, key: &str, value: &[u8]) -> Result<u64, (StoreError, Model)> {
        let mut after = self.model.clone();
        let (seen, revision) = after.put(key, value, self.clock.micros());
        let outcome = almanac.cluster_put(key, seen, value);
        self.confirm(outcome.map(|put| assert_eq!(put, Ok(revision))), self.work.tenures.clone(), after)?;
        Ok(revision)
    }

    /// Notes what came of something; if it was refused, the writer stands where it stood before.
    fn confirm(
        &mut self,
        outcome: Result<(), StoreError>,
        before: BTreeMap<ShardId, Tenure>,
        after: Model,
    ) -> Result<(), (StoreError, Model)> {
        match outcome {
            Ok(()) => {
                self.model = after;
                Ok(())
            }
            Err(error) => {
                self.work.tenures = before;
                Err((error, after))
            }
        }
    }

    pub fn read(&self, almanac: &Almanac) -> Result<Model, StoreError> {
        Model::read(almanac, &self.work.shards, &self.work.keys)
    }

    /// Makes sure that every read gives what was confirmed.
    pub fn compare(&mut self, almanac: &Almanac) {
        let Work { shards, keys, groups, .. } = &self.work;
        self.model.compare(almanac, shards, keys, groups, &mut self.chance);
    }

    /// Goes on with another disk, which may hold any of these; tells which.
    pub fn resume(&mut self, disk: SimulatedDisk, possible: &[Model]) -> Almanac {
        self.disk = disk;
        let almanac = self.open();
        let found = self.read(&almanac).unwrap();
        assert!(possible.contains(&found), "{}", found.differences(&possible[0]));
        self.model = found;
        self.compare(&almanac);
        almanac
    }
}

fn all_done(verdicts: Vec<Result<(), Refusal>>) {
    assert!(verdicts.iter().all(Result::is_ok), "{verdicts:?}");
}

/// A new live row under a number.
pub fn insert(number: u64, body: usize) -> Change {
    let row = Row {
        table: Table::Live,
        key: key(number),
        seq: 1_000_000 + number,
        at: Timestamp::from_millis(number * 1_000),
        group: Some(Name::new("red").unwrap()),
        state: Bytes::from_static(b"new"),
        body: number.to_le_bytes().into_iter().cycle().take(body).collect(),
    };
    Change::Insert { row, replaces: None }
}

pub fn key(number: u64) -> Key {
    Key::new("parcels", &format!("{number:06}"), "")
}

/// The row's state becomes another one of the same length.
pub fn update(model: &Model, number: u64) -> Change {
    let row = model.row_of(SHARD, Table::Live, &key(number)).unwrap();
    let state = Bytes::from_static(if row.state == b"new"[..] { b"old" } else { b"new" });
    Change::Update { place: row.place(), table: row.table, at: row.at, state }
}

/// The row's state becomes so long.
pub fn grow(model: &Model, number: u64, length: usize) -> Change {
    let row = model.row_of(SHARD, Table::Live, &key(number)).unwrap();
    Change::Update { place: row.place(), table: row.table, at: row.at, state: vec![b'g'; length].into() }
}

pub fn remove(model: &Model, number: u64) -> Change {
    Change::Remove { place: model.row_of(SHARD, Table::Live, &key(number)).unwrap().place() }
}
