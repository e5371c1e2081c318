//! The almanac as a store: opening and closing it, and what callers ask of it.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use punctual_core::store::{
    Batch, Bodies, Claim, Fence, Fenced, Find, FindBack, Hardship, Key, Owner, Position, Room, Row, Scan, ScanBack,
    ShardId, Store, StoreError, Tally,
};
use punctual_core::{Clock, Millis, Name};
use punctual_disk::Disk;

use crate::config::{Config, SyncPolicy, Tending};
use crate::error::OpenError;
use crate::lock::lock;
use crate::open;
use crate::payload::{write_batch, write_claim};
use crate::shared::{Shared, Vigil};
use crate::weight::Weight;

/// The embedded store. It belongs to one process at a time.
pub struct Almanac {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What an almanac takes of memory and disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Memory of rows that no run holds.
    pub recent_bytes: usize,
    /// Memory of the index by which rows in runs are found.
    pub key_bytes: usize,
    /// Memory of blocks of runs that were read.
    pub block_bytes: usize,
    /// How many living rows the runs have.
    pub rows_in_runs: u64,
    /// How many runs there are.
    pub runs: usize,
    /// How long their files are, room that was given back included.
    pub run_bytes: u64,
    /// How much of the journal is needed.
    pub journal_bytes: u64,
    /// How many segments of the journal are ready to be written over.
    pub free_segments: usize,
}

impl Almanac {
    /// Opens the almanac in a directory, or begins one there. The clock tells when leases on shards end.
    pub fn open(disk: Arc<dyn Disk>, config: Config, clock: Arc<dyn Clock>) -> Result<Almanac, OpenError> {
        let shared = Arc::new(open::open(disk, config, clock)?);
        shared.look_for_room();
        shared.clear_the_way();
        if !shared.losses.is_empty() {
            // What cannot be read any more is not to be met again.
            let cleared = shared.tend(true).map_err(io::Error::other);
            cleared.map_err(OpenError::io("the remaining data could not be written"))?;
            shared.forget_lost();
        }
        // From here on, what has been started is stopped if something goes wrong.
        let mut almanac = Almanac { shared: Arc::clone(&shared), threads: Vec::new() };
        if shared.config.tending == Tending::Thread {
            almanac.threads.push(start(&shared, "keeper", Shared::keep)?);
            if let SyncPolicy::Every(time) = shared.config.sync {
                almanac.threads.push(start(&shared, "syncer", move |shared| shared.sync_every(time))?);
            }
        }
        Ok(almanac)
    }

    /// Does now what the keeper would do; for [`Tending::Manual`].
    pub fn tend(&self) -> Result<(), StoreError> {
        self.shared.tend(false)
    }

    /// What the almanac takes of memory and disk.
    pub fn usage(&self) -> Usage {
        let (segments, free_segments) = {
            let journal = lock(&self.shared.journal);
            (journal.bytes(), journal.free())
        };
        let holdings = lock(&self.shared.holdings);
        Usage {
            recent_bytes: holdings.active.bytes() + holdings.frozen.as_ref().map_or(0, |frozen| frozen.layer().bytes()),
            key_bytes: holdings.shelf.keys().bytes(),
            block_bytes: self.shared.blocks.bytes() as usize,
            rows_in_runs: holdings.shelf.keys().len() as u64,
            runs: holdings.shelf.runs().count(),
            run_bytes: holdings.shelf.runs().map(|(_, shelved)| shelved.run.file_bytes()).sum(),
            journal_bytes: segments,
            free_segments,
        }
    }

    /// What was lost when it was opened and is done without, if [`Config::accepts_loss`] says so.
    pub fn losses(&self) -> &[String] {
        &self.shared.losses
    }

    /// Moves all recent rows into a run now, though it is not due yet.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        self.shared.tend(true)
    }
}

/// Starts a thread; if it panics, the almanac stops.
fn start(
    shared: &Arc<Shared>,
    name: &str,
    work: impl FnOnce(&Shared) + Send + 'static,
) -> Result<JoinHandle<()>, OpenError> {
    let shared = Arc::clone(shared);
    let run = move || {
        let _vigil = Vigil(&shared);
        work(&shared);
    };
    let thread = std::thread::Builder::new().name(format!("punctual-{name}")).spawn(run);
    thread.map_err(OpenError::io(format!("the {name}'s thread could not be started")))
}

impl fmt::Debug for Almanac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Almanac({})", self.shared.disk.place())
    }
}

impl fmt::Display for Almanac {
    /// What an operator should see at the start: where it is, and what a confirmation is worth.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "almanac in {}, {}", self.shared.disk.place(), self.shared.config.sync)
    }
}

impl Drop for Almanac {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        lock(&self.shared.signals).stop = true;
        self.shared.bell.notify_all();
        self.shared.tick.notify_all();
        for thread in self.threads.drain(..) {
            // One that panicked has said so.
            _ = thread.join();
        }
        if self.shared.poison.get().is_none() {
            // With this, damage to the last record would be noticed at the next opening. If it cannot
            // be written, nothing is lost.
            let mut journal = lock(&self.shared.journal);
            _ = journal.mark();
            self.shared.note_reach(journal.reached());
        }
    }
}

impl Store for Almanac {
    fn room(&self) -> Room {
        if !self.shared.is_troubled.load(Ordering::Relaxed) {
            return Room::Enough;
        }
        if !self.shared.may_grow.load(Ordering::Relaxed) {
            return Room::None;
        }
        Room::under(self.hardship().as_ref())
    }

    fn hardship(&self) -> Option<Hardship> {
        if !self.shared.is_troubled.load(Ordering::Relaxed) {
            return None;
        }
        let hardship = lock(&self.shared.hardship).clone();
        match hardship {
            Some(Hardship::NoRoom(why)) if !self.shared.may_grow.load(Ordering::Relaxed) => {
                Some(Hardship::NoRoom(format!("{why}; few deliveries are handed out until there is room again")))
            }
            hardship => hardship,
        }
    }

    fn claim(&self, shard: ShardId, node: &Name, lease: Millis) -> Result<Claim, StoreError> {
        let shared = &*self.shared;
        shared.check()?;
        // Whatever is left, a shard can be claimed: that takes next to nothing, and nothing works without it.
        let mut journal = match shared.make_way(|_| Weight::default()) {
            Ok(journal) => journal,
            Err(poisoned @ StoreError::Poisoned(_)) => return Err(poisoned),
            Err(_) => lock(&shared.journal),
        };
        let claim = lock(&shared.holdings).ownership.claim(shard, node, lease, shared.clock.now());
        if let Claim::Granted(fence) = claim {
            shared.record(&mut journal, |to| write_claim(shard, fence, to))?;
            // Whoever was granted a fence relies on it that no later one is the same.
            journal.sync().map_err(|error| shared.poison(format!("the journal could not be synced: {error}")))?;
            shared.note_reach_lightly(journal.reached());
        }
        Ok(claim)
    }

    fn renew(&self, shard: ShardId, fence: Fence, lease: Millis) -> Result<(), StoreError> {
        self.shared.check()?;
        Ok(lock(&self.shared.holdings).ownership.renew(shard, fence, lease, self.shared.clock.now())?)
    }

    fn release(&self, shard: ShardId, fence: Fence) -> Result<(), StoreError> {
        self.shared.check()?;
        Ok(lock(&self.shared.holdings).ownership.release(shard, fence)?)
    }

    fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        self.shared.check()?;
        Ok(lock(&self.shared.holdings).ownership.owners())
    }

    fn get(&self, shard: ShardId, keys: &[Key], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        self.shared.reader()?.get(shard, keys, bodies)
    }

    fn fetch(&self, shard: ShardId, positions: &[Position], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        self.shared.reader()?.fetch(shard, positions, bodies)
    }

    fn numbered(&self, shard: ShardId, numbers: &[u64], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        self.shared.reader()?.numbered(shard, numbers, bodies)
    }

    fn scan(&self, shard: ShardId, scan: &Scan) -> Result<Vec<Row>, StoreError> {
        self.shared.reader()?.scan(shard, scan)
    }

    fn find(&self, shard: ShardId, find: &Find) -> Result<Vec<Row>, StoreError> {
        self.shared.reader()?.find(shard, find)
    }

    fn scan_back(&self, shard: ShardId, back: &ScanBack) -> Result<Vec<Row>, StoreError> {
        self.shared.reader()?.scan_back(shard, back)
    }

    fn find_back(&self, shard: ShardId, back: &FindBack) -> Result<Vec<Row>, StoreError> {
        self.shared.reader()?.find_back(shard, back)
    }

    fn tallies(&self, shard: ShardId) -> Result<Vec<(Tally, i64)>, StoreError> {
        self.shared.check()?;
        Ok(lock(&self.shared.holdings).tallies(shard))
    }

    fn commit(&self, batches: Vec<Batch>) -> Result<Vec<Result<(), Fenced>>, StoreError> {
        let shared = &*self.shared;
        shared.hold_back()?;
        let mut journal = shared.make_way(|holdings| holdings.weigh(&batches, &shared.blocks))?;
        shared.check()?;
        let verdicts: Vec<Result<(), Fenced>> = {
            let holdings = lock(&shared.holdings);
            batches.iter().map(|batch| holdings.ownership.admit(batch.shard, batch.fence)).collect()
        };
        let says_something = |batch: &Batch| !batch.changes.is_empty() || !batch.tallies.is_empty();
        let admitted = || batches.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_ok()).map(|(batch, _)| batch);
        if admitted().any(says_something) {
            let verified = lock(&shared.holdings).verify(admitted(), &shared.blocks);
            verified.map_err(|error| shared.verify_failed(error))?;
            shared.record(&mut journal, |to| admitted().for_each(|batch| write_batch(batch, to)))?;
        }
        Ok(verdicts)
    }
}
