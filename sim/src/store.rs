//! The store of a run: the memory store, reads that fail now and then, and lies told on purpose
//! to show that the auditor notices.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::store::{
    Batch, Bodies, Change, Claim, Fence, Fenced, Find, FindBack, Hardship, Key, Owner, Position, Room, Row, Scan,
    ScanBack, ShardId, Store, StoreError, Table, Tally,
};
use punctual_core::{Millis, Name};
use punctual_memory::MemoryStore;

use crate::clock::TrueClock;

/// A store that can be told to fail and to lie.
pub struct FaultyStore {
    memory: MemoryStore,
    /// So many reads pass before one fails; `u64::MAX` means that none does.
    reads_left: AtomicU64,
    /// After so many commits of new tasks one is said to be durable and is not.
    forget_after: AtomicU64,
    forgot: AtomicBool,
    keeps_tallies: AtomicBool,
}

impl FaultyStore {
    /// An honest store without faults.
    pub fn new(clock: TrueClock) -> FaultyStore {
        FaultyStore {
            memory: MemoryStore::new(std::sync::Arc::new(clock)),
            reads_left: AtomicU64::new(u64::MAX),
            forget_after: AtomicU64::new(u64::MAX),
            forgot: AtomicBool::new(false),
            keeps_tallies: AtomicBool::new(true),
        }
    }

    /// The store itself, for faults of commits.
    pub fn memory(&self) -> &MemoryStore {
        &self.memory
    }

    /// After so many reads one fails.
    pub fn fail_read_after(&self, reads: u64) {
        self.reads_left.store(reads, Ordering::Relaxed);
    }

    /// After so many commits of nothing but new tasks one is said to be durable and is not.
    pub fn forget_after(&self, commits: u64) {
        self.forget_after.store(commits, Ordering::Relaxed);
    }

    /// From now on tallies are not kept.
    pub fn forget_tallies(&self) {
        self.keeps_tallies.store(false, Ordering::Relaxed);
    }

    /// Whether a commit was just forgotten.
    pub fn has_forgotten(&self) -> bool {
        self.forgot.swap(false, Ordering::Relaxed)
    }

    /// Nothing fails any more.
    pub fn heal(&self) {
        self.memory.faults().heal();
        self.reads_left.store(u64::MAX, Ordering::Relaxed);
    }

    fn read(&self) -> Result<(), StoreError> {
        match self.reads_left.load(Ordering::Relaxed) {
            u64::MAX => Ok(()),
            0 => {
                self.reads_left.store(u64::MAX, Ordering::Relaxed);
                Err(StoreError::Unavailable("this read was to fail".into()))
            }
            left => {
                self.reads_left.store(left - 1, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Whether to lie about this commit.
    fn forgets(&self, batches: &[Batch]) -> bool {
        let new_task = |change: &Change| matches!(change, Change::Insert { row, .. } if row.table == Table::Live);
        let only_new = |batch: &Batch| !batch.changes.is_empty() && batch.changes.iter().all(new_task);
        let left = self.forget_after.load(Ordering::Relaxed);
        if left == u64::MAX || batches.is_empty() || !batches.iter().all(only_new) {
            return false;
        }
        self.forget_after.store(left.checked_sub(1).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.forgot.fetch_or(left == 0, Ordering::Relaxed);
        left == 0
    }
}

impl Store for FaultyStore {
    fn claim(&self, shard: ShardId, node: &Name, lease: Millis) -> Result<Claim, StoreError> {
        self.memory.claim(shard, node, lease)
    }

    fn renew(&self, shard: ShardId, fence: Fence, lease: Millis) -> Result<(), StoreError> {
        self.memory.renew(shard, fence, lease)
    }

    fn release(&self, shard: ShardId, fence: Fence) -> Result<(), StoreError> {
        self.memory.release(shard, fence)
    }

    fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        self.memory.owners()
    }

    fn get(&self, shard: ShardId, keys: &[Key], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        self.read()?;
        self.memory.get(shard, keys, bodies)
    }

    fn fetch(&self, shard: ShardId, positions: &[Position], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        self.read()?;
        self.memory.fetch(shard, positions, bodies)
    }

    fn numbered(&self, shard: ShardId, numbers: &[u64], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        self.read()?;
        self.memory.numbered(shard, numbers, bodies)
    }

    fn scan(&self, shard: ShardId, scan: &Scan) -> Result<Vec<Row>, StoreError> {
        self.read()?;
        self.memory.scan(shard, scan)
    }

    fn find(&self, shard: ShardId, find: &Find) -> Result<Vec<Row>, StoreError> {
        self.read()?;
        self.memory.find(shard, find)
    }

    fn scan_back(&self, shard: ShardId, back: &ScanBack) -> Result<Vec<Row>, StoreError> {
        self.read()?;
        self.memory.scan_back(shard, back)
    }

    fn find_back(&self, shard: ShardId, back: &FindBack) -> Result<Vec<Row>, StoreError> {
        self.read()?;
        self.memory.find_back(shard, back)
    }

    fn tallies(&self, shard: ShardId) -> Result<Vec<(Tally, i64)>, StoreError> {
        self.read()?;
        self.memory.tallies(shard)
    }

    fn commit(&self, mut batches: Vec<Batch>) -> Result<Vec<Result<(), Fenced>>, StoreError> {
        if !self.keeps_tallies.load(Ordering::Relaxed) {
            batches.iter_mut().for_each(|batch| batch.tallies.clear());
        }
        if self.forgets(&batches) {
            return Ok(batches.iter().map(|_| Ok(())).collect());
        }
        self.memory.commit(batches)
    }

    fn hardship(&self) -> Option<Hardship> {
        self.memory.hardship()
    }

    fn room(&self) -> Room {
        self.memory.room()
    }
}
