//! The store of a run: the memory store, reads that fail or stop early, and lies told on purpose
//! to show that the auditor notices.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use punctual_core::store::{
    Batch, Beat, Change, Claim, Entry, Fence, Find, Found, Hardship, Incarnation, Look, Outdated, Page, Position,
    Refusal, Roll, Room, Row, Scan, ShardId, Store, StoreError, Table, Tenure, Want,
};
use punctual_core::{Fetched, Needs};
use punctual_memory::MemoryStore;

use crate::Sabotage;
use crate::clock::TrueClock;

/// A store that can be told to fail and to lie.
pub struct FaultyStore {
    memory: MemoryStore,
    clock: TrueClock,
    /// How many rows a read looks at before it stops and says where.
    looks: usize,
    sabotage: Option<Sabotage>,
    /// So many reads pass before one fails; `u64::MAX` means that none does.
    reads_left: AtomicU64,
    /// How often a page stopped early.
    stops: AtomicU64,
    /// What the read that is under way has found, if it does not look at the fence yet.
    record: Mutex<Option<Vec<Found>>>,
    /// What the next read has found before, by want.
    early: Mutex<Vec<Option<Found>>>,
    /// After so many commits of new tasks one is said to be durable and is not.
    forget_after: AtomicU64,
    forgot: AtomicBool,
}

impl FaultyStore {
    /// A store whose reads look at so many rows at once.
    pub fn new(clock: TrueClock, looks: usize, sabotage: Option<Sabotage>) -> FaultyStore {
        let forget_after = match sabotage {
            Some(Sabotage::ForgetCommit { after }) => after,
            _ => u64::MAX,
        };
        FaultyStore {
            memory: MemoryStore::new(std::sync::Arc::new(clock.clone())),
            clock,
            looks,
            sabotage,
            reads_left: AtomicU64::new(u64::MAX),
            stops: AtomicU64::new(0),
            record: Mutex::default(),
            early: Mutex::default(),
            forget_after: AtomicU64::new(forget_after),
            forgot: AtomicBool::new(false),
        }
    }

    /// The store itself, for faults of commits and for what is true.
    pub fn memory(&self) -> &MemoryStore {
        &self.memory
    }

    /// After so many reads one fails.
    pub fn fail_read_after(&self, reads: u64) {
        self.reads_left.store(reads, Ordering::Relaxed);
    }

    /// Begins a read: the rows are looked at, and the fence is not, which the store does after them. What was found, by
    /// want.
    pub fn begin_read(&self, shard: ShardId, tenure: Tenure, needs: &Needs) -> Result<Vec<Found>, StoreError> {
        *lock(&self.record) = Some(Vec::new());
        let read = needs.clone().read(self, shard, tenure);
        let found = lock(&self.record).take().unwrap_or_default();
        read.map(|_| found)
    }

    /// Ends a read of which some was found before.
    pub fn end_read(
        &self,
        shard: ShardId,
        tenure: Tenure,
        needs: Needs,
        early: Vec<Option<Found>>,
    ) -> Result<Fetched, StoreError> {
        *lock(&self.early) = early;
        needs.read(self, shard, tenure)
    }

    /// How often a page has stopped early.
    pub fn stops(&self) -> u64 {
        self.stops.load(Ordering::Relaxed)
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

    fn lies(&self, sabotage: Sabotage) -> bool {
        self.sabotage == Some(sabotage)
    }

    fn count_read(&self) -> Result<(), StoreError> {
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

    /// Whether the shard is held so.
    fn check_tenure(&self, shard: ShardId, mut tenure: Tenure) -> Result<(), StoreError> {
        if self.lies(Sabotage::UnnoticedLoss) {
            tenure.serial = tenure.serial.min(self.memory.tenure(shard).serial);
        }
        if self.lies(Sabotage::UnfencedReads) {
            return Ok(());
        }
        self.memory.read(shard, tenure, &[]).map(drop)
    }

    fn find(&self, shard: ShardId, want: Want<'_>) -> Result<Found, StoreError> {
        let found = match want {
            Want::Scan(scan) if self.looks < usize::MAX => Found::Span(self.scan_shortly(shard, scan)?),
            Want::Find(find) if self.looks < usize::MAX => {
                let find = Find { limit: find.limit.min(self.looks), ..find.clone() };
                Found::Members(self.memory.find(shard, &find)?)
            }
            other => self.memory.look_for(shard, other)?,
        };
        Ok(if self.lies(Sabotage::EndsEarly) { ended(found) } else { found })
    }

    /// A part of a table by a store that stops after a few rows, of whatever topic. Now and then it has come past none
    /// when it stops.
    fn scan_shortly(&self, shard: ShardId, scan: &Scan) -> Result<Page<Position>, StoreError> {
        let limit = scan.limit.min(self.looks);
        let mut page = self.memory.scan(shard, &Scan { topic: None, limit, ..scan.clone() })?;
        let stops = self.stops.fetch_add(u64::from(page.next.is_some()), Ordering::Relaxed);
        let first = page.rows.first().map(Row::position).filter(|first| page.next.is_some() && *first > scan.from);
        if let Some(first) = first.filter(|_| stops.is_multiple_of(4)) {
            return Ok(Page { rows: Vec::new(), next: Some(first) });
        }
        page.rows.retain(|row| scan.topic.as_ref().is_none_or(|topic| row.key.topic() == topic.as_str()));
        Ok(page)
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

    /// Makes batches look as if they were in order.
    fn tamper(&self, batches: &mut [Batch]) {
        let mut latest: BTreeMap<ShardId, u64> = BTreeMap::new();
        for batch in batches {
            let tenure = self.memory.tenure(batch.shard);
            let latest = latest.entry(batch.shard).or_insert(tenure.serial);
            let next = if batch.is_empty() { *latest } else { *latest + 1 };
            match self.sabotage {
                Some(Sabotage::UnfencedCommits) => batch.fence = tenure.fence,
                Some(Sabotage::CommitsTwice) if batch.serial <= *latest => batch.serial = next,
                Some(Sabotage::UnnoticedLoss) => batch.serial = batch.serial.min(next),
                Some(Sabotage::ForgetTallies) => batch.tallies.clear(),
                _ => {}
            }
            *latest = batch.serial.max(*latest);
        }
    }
}

/// How a node reaches the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// As it should be.
    Whole,
    /// What it asks for happens, and it never hears of that.
    OneWay,
    /// Not at all.
    None,
}

/// The store as a node reaches it.
#[derive(Clone, Copy)]
pub struct Reached<'a> {
    /// The store.
    pub store: &'a FaultyStore,
    /// How it is reached.
    pub reach: Reach,
}

impl Reached<'_> {
    /// Asks for something.
    pub fn ask<T>(&self, ask: impl FnOnce(&FaultyStore) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let unavailable = || StoreError::Unavailable("the node is cut off from the store".to_owned());
        match self.reach {
            Reach::Whole => ask(self.store),
            Reach::OneWay => ask(self.store).and_then(|_| Err(unavailable())),
            Reach::None => Err(unavailable()),
        }
    }
}

impl Store for Reached<'_> {
    fn beat(&self, beat: &Beat) -> Result<Roll, StoreError> {
        self.ask(|store| store.beat(beat))
    }

    fn claim(&self, who: &Incarnation, wanted: &[(ShardId, Fence)]) -> Result<Vec<Claim>, StoreError> {
        self.ask(|store| store.claim(who, wanted))
    }

    fn release(&self, shard: ShardId, fence: Fence, to: Option<&Incarnation>) -> Result<Fence, StoreError> {
        self.ask(|store| store.release(shard, fence, to))
    }

    fn cluster_get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.ask(|store| store.cluster_get(key))
    }

    fn cluster_put(&self, key: &str, seen: u64, value: &[u8]) -> Result<Result<u64, Outdated>, StoreError> {
        self.ask(|store| store.cluster_put(key, seen, value))
    }

    fn read(&self, shard: ShardId, tenure: Tenure, wants: &[Want<'_>]) -> Result<Vec<Found>, StoreError> {
        self.ask(|store| store.read(shard, tenure, wants))
    }

    fn look(&self, wants: &[(ShardId, Want<'_>)]) -> Result<Vec<Found>, StoreError> {
        self.ask(|store| store.look(wants))
    }

    fn commit(&self, batches: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        self.ask(|store| store.commit(batches))
    }

    fn hardship(&self) -> Option<Hardship> {
        self.store.hardship()
    }

    fn room(&self) -> Room {
        self.store.room()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("a run has one thread")
}

/// What was found, as if there were nothing after it.
fn ended(found: Found) -> Found {
    match found {
        Found::Span(page) => Found::Span(Page { next: None, ..page }),
        other => other,
    }
}

impl Store for FaultyStore {
    fn beat(&self, beat: &Beat) -> Result<Roll, StoreError> {
        self.memory.beat(beat)
    }

    fn claim(&self, who: &Incarnation, wanted: &[(ShardId, Fence)]) -> Result<Vec<Claim>, StoreError> {
        if self.lies(Sabotage::BlindClaims) {
            let in_force = |(shard, _): &(ShardId, Fence)| (*shard, self.memory.tenure(*shard).fence);
            return self.memory.claim(who, &wanted.iter().map(in_force).collect::<Vec<_>>());
        }
        if self.lies(Sabotage::CountedFences) {
            return self.clock.hide(|| self.memory.claim(who, wanted));
        }
        self.memory.claim(who, wanted)
    }

    fn release(&self, shard: ShardId, fence: Fence, to: Option<&Incarnation>) -> Result<Fence, StoreError> {
        if self.lies(Sabotage::CountedFences) {
            return self.clock.hide(|| self.memory.release(shard, fence, to));
        }
        self.memory.release(shard, fence, to)
    }

    fn cluster_get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.memory.cluster_get(key)
    }

    fn cluster_put(&self, key: &str, seen: u64, value: &[u8]) -> Result<Result<u64, Outdated>, StoreError> {
        if self.lies(Sabotage::CountedRevisions) {
            return self.clock.hide(|| self.memory.cluster_put(key, seen, value));
        }
        self.memory.cluster_put(key, seen, value)
    }

    fn read(&self, shard: ShardId, tenure: Tenure, wants: &[Want<'_>]) -> Result<Vec<Found>, StoreError> {
        let mut early = std::mem::take(&mut *lock(&self.early)).into_iter();
        self.count_read()?;
        let mut find = |want: &Want<'_>| match early.next().flatten() {
            Some(found) => Ok(found),
            None => self.find(shard, *want),
        };
        let found: Vec<Found> = wants.iter().map(&mut find).collect::<Result<_, _>>()?;
        match &mut *lock(&self.record) {
            Some(record) => record.clone_from(&found),
            None => self.check_tenure(shard, tenure)?,
        }
        Ok(found)
    }

    fn look(&self, wants: &[(ShardId, Want<'_>)]) -> Result<Vec<Found>, StoreError> {
        self.count_read()?;
        wants.iter().map(|(shard, want)| self.find(*shard, *want)).collect()
    }

    fn commit(&self, mut batches: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        self.tamper(&mut batches);
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
