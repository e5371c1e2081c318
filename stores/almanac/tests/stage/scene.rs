//! An almanac on a simulated disk, and a model of what was confirmed: for tests of one fact.

use std::sync::Arc;

use bytes::Bytes;
use punctual_almanac::{Almanac, Config, OpenError};
use punctual_chance::Chance;
use punctual_core::store::{Batch, Change, Claim, Key, Row, ShardId, Store, StoreError, Table};
use punctual_core::{Millis, Name, Timestamp};
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
            match almanac.claim(shard, &Name::new("node").unwrap(), Millis::from_secs(10))? {
                Claim::Granted(fence) => _ = self.work.fences.insert(shard, fence),
                held @ Claim::Held { .. } => panic!("{held:?}"),
            }
        }
        Ok(())
    }

    /// Random work. If it fails, gives what there would be if the commit had happened all the same.
    pub fn commit(&mut self, almanac: &Almanac) -> Result<(), (StoreError, Model)> {
        let (batches, after) = self.work.commit(&self.model, &mut self.chance);
        self.confirm(almanac, batches, after)
    }

    /// Changes to the one shard.
    pub fn change(&mut self, almanac: &Almanac, changes: Vec<Change>) -> Result<(), (StoreError, Model)> {
        let batch = Batch { shard: SHARD, fence: self.work.fences[&SHARD], changes, tallies: Vec::new() };
        let mut after = self.model.clone();
        after.apply(&batch);
        self.confirm(almanac, vec![batch], after)
    }

    fn confirm(&mut self, almanac: &Almanac, batches: Vec<Batch>, after: Model) -> Result<(), (StoreError, Model)> {
        match almanac.commit(batches) {
            Ok(_) => {
                self.model = after;
                Ok(())
            }
            Err(error) => Err((error, after)),
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
