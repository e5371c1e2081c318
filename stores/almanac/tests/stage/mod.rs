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
    Batch, Beat, Change, Claim, Entry, Fence, Found, Incarnation, Outdated, Refusal, Roll, ShardId, Store, StoreError,
    Tenure, Want,
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

/// What the store says of nodes, shards and entries, to somebody who is not there.
pub fn roll(store: &impl Store) -> Result<Roll, StoreError> {
    store.beat(&Beat { who: life("looker"), address: String::new(), lease: Millis::ZERO })
}

pub fn life(node: &str) -> Incarnation {
    Incarnation { node: Name::new(node).unwrap(), number: 1 }
}

/// Takes a shard, whoever has it.
pub fn claim(store: &impl Store, shard: ShardId) -> Result<Tenure, StoreError> {
    let seen = roll(store)?.fence(shard);
    match store.claim(&life("node"), &[(shard, seen)])?[..] {
        [Claim::Granted(tenure)] => Ok(tenure),
        ref claims => panic!("{claims:?}"),
    }
}

/// A batch of changes alone; one without any only asks.
pub fn batch(shard: ShardId, tenure: Tenure, changes: Vec<Change>) -> Batch {
    let serial = tenure.serial + u64::from(!changes.is_empty());
    Batch { shard, fence: tenure.fence, serial, changes, tallies: Vec::new() }
}

/// Commits changes to a shard, and counts on.
pub fn commit(store: &impl Store, shard: ShardId, tenure: &mut Tenure, changes: Vec<Change>) {
    let batch = batch(shard, *tenure, changes);
    tenure.serial = batch.serial;
    assert_eq!(store.commit(vec![batch]), Ok(vec![Ok(())]));
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
    fn beat(&self, beat: &Beat) -> Result<Roll, StoreError> {
        self.almanac.beat(beat)
    }
    fn claim(&self, who: &Incarnation, wanted: &[(ShardId, Fence)]) -> Result<Vec<Claim>, StoreError> {
        self.almanac.claim(who, wanted)
    }
    fn release(&self, shard: ShardId, fence: Fence, to: Option<&Incarnation>) -> Result<Fence, StoreError> {
        self.almanac.release(shard, fence, to)
    }
    fn cluster_get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.almanac.cluster_get(key)
    }
    fn cluster_put(&self, key: &str, seen: u64, value: &[u8]) -> Result<Result<u64, Outdated>, StoreError> {
        self.almanac.cluster_put(key, seen, value)
    }
    fn read(&self, shard: ShardId, tenure: Tenure, wants: &[Want<'_>]) -> Result<Vec<Found>, StoreError> {
        self.almanac.read(shard, tenure, wants)
    }
    fn look(&self, wants: &[(ShardId, Want<'_>)]) -> Result<Vec<Found>, StoreError> {
        self.almanac.look(wants)
    }
    fn commit(&self, batches: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
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
