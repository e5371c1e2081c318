//! Punctual's store in memory: for tests, the simulation, and delay centers that may forget.
//!
//! It is deterministic: no threads, no randomness, and the time comes from the clock it is given.
//! What goes wrong goes wrong because the caller said so, through [`Faults`] and the three words
//! for buffered writing, [`MemoryStore::hold`], [`MemoryStore::sync`] and [`MemoryStore::crash`].
//!
//! A caller that breaks the contract (inserts a key twice, changes a row that is not where it says)
//! has a bug that other stores might hide: this one panics and says what was expected.
//!
//! ```
//! use std::sync::Arc;
//!
//! use punctual_core::store::{Claim, ShardId, Store};
//! use punctual_core::{Clock, Millis, Name, Timestamp};
//! use punctual_memory::MemoryStore;
//!
//! struct Noon;
//! impl Clock for Noon {
//!     fn now(&self) -> Timestamp {
//!         Timestamp::from_millis(43_200_000)
//!     }
//! }
//!
//! let store = MemoryStore::new(Arc::new(Noon));
//! let claim = |node: &str| store.claim(ShardId(0), &Name::stored(node), Millis::from_secs(10));
//! assert!(matches!(claim("node-1")?, Claim::Granted(_)));
//! assert!(matches!(claim("node-2")?, Claim::Held { .. }), "a shard has one owner");
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod faults;
mod keys;
mod numbers;
mod shard;
mod slab;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use punctual_core::store::{
    Batch, Bodies, Claim, Fence, Fenced, Find, FindBack, Hardship, Key, Owner, Ownership, Position, Room, Row, Scan,
    ScanBack, ShardId, Store, StoreError, Tally,
};
use punctual_core::{Clock, Millis, Name};

pub use faults::{Fate, Faults};

use shard::ShardRows;

/// A store that keeps its rows in memory, in the order of their times.
///
/// Share it in an [`Arc`]; one clone goes to the node as its store, another stays with the test that
/// tells it what shall go wrong.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    faults: Faults,
    holdings: Mutex<Holdings>,
}

#[derive(Default)]
struct Holdings {
    ownership: Ownership,
    shards: BTreeMap<ShardId, ShardRows>,
    /// While commits are held: the shards as a crash leaves them.
    durable: Option<BTreeMap<ShardId, ShardRows>>,
    /// How often the store has crashed; a commit belongs to the life in which it began.
    crashes: u64,
}

impl MemoryStore {
    /// An empty store; the clock tells when leases on shards end.
    pub fn new(clock: Arc<dyn Clock>) -> MemoryStore {
        MemoryStore { clock, faults: Faults::default(), holdings: Mutex::default() }
    }

    /// What shall go wrong.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Holds commits from now on, like a store that answers before it has synced: they are seen by
    /// reads, but a [`crash`](MemoryStore::crash) forgets them unless a
    /// [`sync`](MemoryStore::sync) came in between. Copies the rows: for small stores.
    pub fn hold(&self) {
        let mut holdings = self.holdings();
        holdings.durable = Some(holdings.shards.clone());
    }

    /// Makes all held commits durable, and holds on if commits were held.
    pub fn sync(&self) {
        let mut holdings = self.holdings();
        if holdings.durable.is_some() {
            holdings.durable = Some(holdings.shards.clone());
        }
    }

    /// Loses what was not committed, as when the process or the machine dies: commits that are
    /// still under way come to nothing, and so do those held since the last
    /// [`sync`](MemoryStore::sync). The owners and their fences are never held, so they stay.
    pub fn crash(&self) {
        let mut holdings = self.holdings();
        holdings.crashes += 1;
        if let Some(durable) = &holdings.durable {
            holdings.shards = durable.clone();
        }
    }

    /// The holdings, if calls come through.
    fn reach(&self) -> Result<MutexGuard<'_, Holdings>, StoreError> {
        self.faults.check()?;
        Ok(self.holdings())
    }

    fn holdings(&self) -> MutexGuard<'_, Holdings> {
        self.holdings.lock().expect("no call has broken the contract and panicked before")
    }

    /// What `read` finds in a shard; nothing if the shard never had a row. A read sorts what it
    /// comes by, hence it is exclusive.
    fn in_shard<T: Default>(&self, shard: ShardId, read: impl FnOnce(&mut ShardRows) -> T) -> Result<T, StoreError> {
        Ok(self.reach()?.shards.get_mut(&shard).map(read).unwrap_or_default())
    }
}

impl Store for MemoryStore {
    fn claim(&self, shard: ShardId, node: &Name, lease: Millis) -> Result<Claim, StoreError> {
        Ok(self.reach()?.ownership.claim(shard, node, lease, self.clock.now()))
    }

    fn renew(&self, shard: ShardId, fence: Fence, lease: Millis) -> Result<(), StoreError> {
        Ok(self.reach()?.ownership.renew(shard, fence, lease, self.clock.now())?)
    }

    fn release(&self, shard: ShardId, fence: Fence) -> Result<(), StoreError> {
        Ok(self.reach()?.ownership.release(shard, fence)?)
    }

    fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        Ok(self.reach()?.ownership.owners())
    }

    fn get(&self, shard: ShardId, keys: &[Key], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        let holdings = self.reach()?;
        let shard = holdings.shards.get(&shard);
        Ok(keys.iter().map(|key| shard?.get(key, bodies)).collect())
    }

    fn fetch(&self, shard: ShardId, positions: &[Position], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        let holdings = self.reach()?;
        let shard = holdings.shards.get(&shard);
        Ok(positions.iter().map(|position| shard?.fetch(*position, bodies)).collect())
    }

    fn numbered(&self, shard: ShardId, numbers: &[u64], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        let holdings = self.reach()?;
        let shard = holdings.shards.get(&shard);
        Ok(numbers.iter().map(|number| shard?.numbered(*number, bodies)).collect())
    }

    fn scan(&self, shard: ShardId, scan: &Scan) -> Result<Vec<Row>, StoreError> {
        self.faults.delay_scan(scan.table);
        self.in_shard(shard, |shard| shard.scan(scan))
    }

    fn find(&self, shard: ShardId, find: &Find) -> Result<Vec<Row>, StoreError> {
        self.in_shard(shard, |shard| shard.find(find))
    }

    fn scan_back(&self, shard: ShardId, back: &ScanBack) -> Result<Vec<Row>, StoreError> {
        self.in_shard(shard, |shard| shard.scan_back(back))
    }

    fn find_back(&self, shard: ShardId, back: &FindBack) -> Result<Vec<Row>, StoreError> {
        self.in_shard(shard, |shard| shard.find_back(back))
    }

    fn tallies(&self, shard: ShardId) -> Result<Vec<(Tally, i64)>, StoreError> {
        self.in_shard(shard, |shard| shard.tallies())
    }

    fn commit(&self, batches: Vec<Batch>) -> Result<Vec<Result<(), Fenced>>, StoreError> {
        let life = self.reach()?.crashes;
        self.faults.delay();
        let mut holdings = self.holdings();
        if holdings.crashes != life {
            return Err(StoreError::Unavailable("the store crashed before the commit took effect".to_owned()));
        }
        let fate = self.faults.take_fate()?;
        let kept = fate.map_or(batches.len(), |fate| fate.kept(batches.len()));
        let mut answers = Vec::with_capacity(kept);
        for Batch { shard, fence, changes, tallies } in batches.into_iter().take(kept) {
            let admitted = holdings.ownership.admit(shard, fence);
            if admitted.is_ok() {
                holdings.shards.entry(shard).or_default().apply(changes, tallies);
            }
            answers.push(admitted);
        }
        match fate {
            None => Ok(answers),
            Some(fate) => Err(StoreError::Unavailable(format!("this commit was to fail: {fate:?}"))),
        }
    }

    fn hardship(&self) -> Option<Hardship> {
        self.faults.hardship()
    }

    fn room(&self) -> Room {
        self.faults.room()
    }
}
