//! Punctual's store in memory: for tests, the simulation, and delay centers that may forget.
//!
//! It is deterministic: no threads, no randomness, and the time comes from the clock it is given.
//! What goes wrong goes wrong because the caller said so, through [`Faults`] and the three words
//! for buffered writing, [`MemoryStore::hold`], [`MemoryStore::sync`] and [`MemoryStore::crash`], with
//! [`MemoryStore::fail_over`] for a copy that was behind.
//!
//! A caller that breaks the contract (inserts a key twice, changes a row that is not where it says)
//! has a bug that other stores might hide: this one panics and says what was expected.
//!
//! ```
//! use std::sync::Arc;
//!
//! use punctual_core::store::{Claim, Fence, Incarnation, ShardId, Store};
//! use punctual_core::{Clock, Name, Timestamp};
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
//! let claim = |node: &str| {
//!     let who = Incarnation { node: Name::stored(node), number: 1 };
//!     store.claim(&who, &[(ShardId(0), Fence::default())])
//! };
//! assert!(matches!(claim("node-1")?[0], Claim::Granted(_)));
//! assert!(matches!(claim("node-2")?[0], Claim::Outrun(_)), "a shard has one owner");
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod faults;
mod keys;
mod numbers;
mod shard;
mod slab;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use punctual_core::Clock;
use punctual_core::store::{
    Batch, Beat, Claim, Entry, Fence, Found, Hardship, Incarnation, Members, Outdated, Refusal, Roll, Room, ShardId,
    Store, StoreError, Tenure, Terms, Want,
};

pub use faults::{Fate, Faults};

use shard::ShardRows;

/// A store that keeps its rows in memory, in the order of their times.
///
/// Share it in an [`Arc`]; one clone goes to the node as its store, another stays with the test that
/// tells it what shall go wrong.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    faults: Faults,
    terms: Terms,
    holdings: Mutex<Holdings>,
}

#[derive(Default)]
struct Holdings {
    members: Members,
    shards: BTreeMap<ShardId, ShardRows>,
    /// While commits are held: what there was before them.
    before: Option<Box<(Members, BTreeMap<ShardId, ShardRows>)>>,
    /// How often the store has crashed; a commit belongs to the life in which it began.
    crashes: u64,
}

impl MemoryStore {
    /// An empty store; the clock tells when leases on shards end.
    pub fn new(clock: Arc<dyn Clock>) -> MemoryStore {
        MemoryStore { clock, faults: Faults::default(), terms: Terms::default(), holdings: Mutex::default() }
    }

    /// The same, to be worked with like a store that has these terms.
    #[must_use]
    pub fn on_terms(self, terms: Terms) -> MemoryStore {
        MemoryStore { terms, ..self }
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
        holdings.before = Some(Box::new((holdings.members.clone(), holdings.shards.clone())));
    }

    /// Makes all held commits durable, and holds on if commits were held.
    pub fn sync(&self) {
        let holds = self.holdings().before.is_some();
        if holds {
            self.hold();
        }
    }

    /// Loses what was not committed, as when the process or the machine dies: commits that are
    /// still under way come to nothing, and so do those held since the last
    /// [`sync`](MemoryStore::sync). The owners and their fences are never held, so they stay.
    pub fn crash(&self) {
        let mut holdings = self.holdings();
        holdings.crashes += 1;
        let Some(before) = holdings.before.clone() else { return };
        let (members, shards) = *before;
        for (shard, _) in holdings.members.clone().fences() {
            holdings.members.go_back(shard, members.tenure(shard).serial);
        }
        holdings.shards = shards;
    }

    /// Goes back to how everything was when commits were held, or synced after that: like a copy that was behind and
    /// takes over. Owners, their fences and the entries of the cluster are as they were then, too.
    pub fn fail_over(&self) {
        let mut holdings = self.holdings();
        holdings.crashes += 1;
        let Some(before) = holdings.before.clone() else { return };
        (holdings.members, holdings.shards) = *before;
    }

    /// How a shard is held and how far it is, whatever shall go wrong.
    pub fn tenure(&self, shard: ShardId) -> Tenure {
        self.holdings().members.tenure(shard)
    }

    /// The holdings, if calls come through.
    fn reach(&self) -> Result<MutexGuard<'_, Holdings>, StoreError> {
        self.faults.check()?;
        Ok(self.holdings())
    }

    fn holdings(&self) -> MutexGuard<'_, Holdings> {
        self.holdings.lock().expect("no call has broken the contract and panicked before")
    }

    /// Lets the delay of each scan pass.
    fn delay_scans<'a>(&self, wants: impl Iterator<Item = &'a Want<'a>>) {
        for want in wants {
            if let Want::Scan(scan) = want {
                self.faults.delay_scan(scan.table);
            }
        }
    }

    fn micros(&self) -> u64 {
        self.clock.micros()
    }
}

impl Holdings {
    /// What is wanted of a shard. A read sorts what it comes by, hence it is exclusive.
    fn find(&mut self, shard: ShardId, want: &Want<'_>) -> Found {
        self.shards.entry(shard).or_default().find_all(want)
    }
}

impl Store for MemoryStore {
    fn beat(&self, beat: &Beat) -> Result<Roll, StoreError> {
        Ok(self.reach()?.members.beat(beat, self.micros()))
    }

    fn claim(&self, who: &Incarnation, wanted: &[(ShardId, Fence)]) -> Result<Vec<Claim>, StoreError> {
        Ok(self.reach()?.members.claim(who, wanted, self.micros()))
    }

    fn release(&self, shard: ShardId, fence: Fence, to: Option<&Incarnation>) -> Result<Fence, StoreError> {
        Ok(self.reach()?.members.release(shard, fence, to, self.micros())?)
    }

    fn cluster_get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        Ok(self.reach()?.members.entry(key).cloned())
    }

    fn cluster_put(&self, key: &str, seen: u64, value: &[u8]) -> Result<Result<u64, Outdated>, StoreError> {
        Ok(self.reach()?.members.put(key, seen, value, self.micros()))
    }

    fn read(&self, shard: ShardId, tenure: Tenure, wants: &[Want<'_>]) -> Result<Vec<Found>, StoreError> {
        self.delay_scans(wants.iter());
        let mut holdings = self.reach()?;
        holdings.members.admit_read(shard, tenure)?;
        Ok(wants.iter().map(|want| holdings.find(shard, want)).collect())
    }

    fn look(&self, wants: &[(ShardId, Want<'_>)]) -> Result<Vec<Found>, StoreError> {
        self.delay_scans(wants.iter().map(|(_, want)| want));
        let mut holdings = self.reach()?;
        Ok(wants.iter().map(|(shard, want)| holdings.find(*shard, want)).collect())
    }

    fn commit(&self, batches: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        let life = self.reach()?.crashes;
        self.faults.delay();
        let mut holdings = self.holdings();
        if holdings.crashes != life {
            return Err(StoreError::Unavailable("the store crashed before the commit took effect".to_owned()));
        }
        let fate = self.faults.take_fate()?;
        let kept = fate.map_or(batches.len(), |fate| fate.kept(batches.len()));
        let mut answers = Vec::with_capacity(kept);
        for batch in batches.into_iter().take(kept) {
            let is_new = holdings.members.admit_commit(&batch);
            if is_new == Ok(true) {
                holdings.shards.entry(batch.shard).or_default().apply(batch.changes, batch.tallies);
            }
            answers.push(is_new.map(drop));
        }
        match fate {
            None => Ok(answers),
            Some(fate) => Err(StoreError::Unavailable(format!("this commit was to fail: {fate:?}"))),
        }
    }

    fn terms(&self) -> Terms {
        self.terms
    }

    fn hardship(&self) -> Option<Hardship> {
        self.faults.hardship()
    }

    fn room(&self) -> Room {
        self.faults.room()
    }
}
