//! What the almanac's tests share.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
#![allow(dead_code, reason = "each test uses its part")]

pub mod model;
pub mod scene;
pub mod work;
pub mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use punctual_almanac::{Almanac, Config, Tending};
use punctual_core::store::{
    Batch, Bodies, Claim, Fence, Fenced, Find, FindBack, Key, Owner, Position, Row, Scan, ScanBack, ShardId, Store,
    StoreError, Tally,
};
use punctual_core::{Clock, Millis, Name, Timestamp};

/// A clock that stands still until it is told.
#[derive(Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    pub fn pass(&self, time: Millis) {
        self.0.fetch_add(time.0, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_000_000 + self.0.load(Ordering::Relaxed))
    }
}

/// So small that everything happens often.
pub fn tiny() -> Config {
    Config {
        memory: 96 << 10,
        segment: 8 << 10,
        journal: 24 << 10,
        reserve: 8 << 10,
        tending: Tending::Manual,
        ..Config::default()
    }
}

/// An almanac that tends itself at every third commit, if it has no keeper: runs are written at
/// moments that do not depend on threads.
pub struct Tended {
    almanac: Almanac,
    tending: Tending,
    commits: AtomicU64,
}

impl Tended {
    pub fn new(almanac: Almanac, tending: Tending) -> Tended {
        Tended { almanac, tending, commits: AtomicU64::new(0) }
    }
}

impl Store for Tended {
    fn claim(&self, shard: ShardId, node: &Name, lease: Millis) -> Result<Claim, StoreError> {
        self.almanac.claim(shard, node, lease)
    }
    fn renew(&self, shard: ShardId, fence: Fence, lease: Millis) -> Result<(), StoreError> {
        self.almanac.renew(shard, fence, lease)
    }
    fn release(&self, shard: ShardId, fence: Fence) -> Result<(), StoreError> {
        self.almanac.release(shard, fence)
    }
    fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        self.almanac.owners()
    }
    fn get(&self, shard: ShardId, keys: &[Key], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        self.almanac.get(shard, keys, bodies)
    }
    fn fetch(&self, shard: ShardId, positions: &[Position], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        self.almanac.fetch(shard, positions, bodies)
    }
    fn numbered(&self, shard: ShardId, numbers: &[u64], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        self.almanac.numbered(shard, numbers, bodies)
    }
    fn scan(&self, shard: ShardId, scan: &Scan) -> Result<Vec<Row>, StoreError> {
        self.almanac.scan(shard, scan)
    }
    fn find(&self, shard: ShardId, find: &Find) -> Result<Vec<Row>, StoreError> {
        self.almanac.find(shard, find)
    }
    fn scan_back(&self, shard: ShardId, back: &ScanBack) -> Result<Vec<Row>, StoreError> {
        self.almanac.scan_back(shard, back)
    }
    fn find_back(&self, shard: ShardId, back: &FindBack) -> Result<Vec<Row>, StoreError> {
        self.almanac.find_back(shard, back)
    }
    fn tallies(&self, shard: ShardId) -> Result<Vec<(Tally, i64)>, StoreError> {
        self.almanac.tallies(shard)
    }
    fn commit(&self, batches: Vec<Batch>) -> Result<Vec<Result<(), Fenced>>, StoreError> {
        let verdicts = self.almanac.commit(batches)?;
        if self.tending == Tending::Manual {
            match self.commits.fetch_add(1, Ordering::Relaxed) % 6 {
                2 => self.almanac.tend()?,
                5 => self.almanac.checkpoint()?,
                _ => {}
            }
        }
        Ok(verdicts)
    }
}
