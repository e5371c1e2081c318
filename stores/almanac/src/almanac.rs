//! The almanac as a store: who may write, what is written first, and who waits for whom.
//!
//! ```text
//! commit:  journal lock ── write ── sync ──┐ holdings lock ── apply ──┐ answer
//! read:                      holdings lock ┴ find ──┐ disk ──┐ copy out
//! keeper:  both locks, briefly ── freeze ──┐ disk … ┴ holdings lock, briefly ── adopt
//! ```
//! Locks are taken in this order: keeper, journal, holdings.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use punctual_core::store::{
    Batch, Bodies, Claim, Fence, Fenced, Find, FindBack, Hardship, Key, Owner, Position, Room, Row, Scan, ScanBack,
    ShardId, Store, StoreError, Tally,
};
use punctual_core::{Clock, Millis, Name};
use punctual_disk::Disk;

use crate::blocks::Blocks;
use crate::config::{Config, SyncPolicy, Tending};
use crate::error::OpenError;
use crate::holdings::{ApplyError, Holdings};
use crate::journal::{Journal, Reach, Reached};
use crate::keeper::Keeper;
use crate::lock::lock;
use crate::open;
use crate::payload::{write_batch, write_claim};
use crate::read::Reader;
use crate::setback::Setback;
use crate::weight::Weight;

/// How long a commit waits at most while the keeper is behind, but not so far that memory runs out.
const LONGEST_WAIT: Duration = Duration::from_millis(8);

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

/// What the callers' threads and the keeper share.
pub(crate) struct Shared {
    pub disk: Arc<dyn Disk>,
    pub config: Config,
    pub clock: Arc<dyn Clock>,
    pub journal: Mutex<Journal>,
    pub holdings: Mutex<Holdings>,
    pub blocks: Blocks,
    pub keeper: Mutex<Keeper>,
    /// About how much memory the active layer takes; to look at without a lock.
    pub recent_bytes: AtomicUsize,
    pub signals: Mutex<Signals>,
    /// Rung when the keeper has something to do.
    pub bell: Condvar,
    /// Rung when the syncer is to look up.
    pub tick: Condvar,
    /// Rung when the keeper has finished something.
    pub calm: Condvar,
    pub closing: AtomicBool,
    /// Why nothing can be trusted any more.
    pub poison: OnceLock<String>,
    /// How many bytes telling all recent rows again takes at most; to look at without a lock.
    pub to_tell: AtomicU64,
    /// How long the latest manifest is.
    pub manifest_bytes: AtomicU64,
    /// Whether there is room for recent rows to grow.
    pub may_grow: AtomicBool,
    /// What keeps the keeper from its work, if anything does.
    pub hardship: Mutex<Option<Hardship>>,
    pub is_troubled: AtomicBool,
    /// Whether the disk had so much room, when it was last looked at, that none need be set aside.
    pub has_plenty: AtomicBool,
    /// Where it is noted how far the journal reaches; none in an almanac of an older version on a full disk.
    pub reach: Mutex<Option<Reach>>,
    /// The latest segment for which that was done.
    pub noted_segment: AtomicU64,
    /// What was lost and is done without.
    pub losses: Vec<String>,
    /// Keeps other processes out.
    pub _held: Box<dyn Any + Send + std::marker::Sync>,
}

#[derive(Default)]
pub(crate) struct Signals {
    pub wake: bool,
    pub stop: bool,
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
            cleared.map_err(OpenError::io("what is left could not be written"))?;
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

/// Poisons the almanac if the thread panics meanwhile: what it had in hand may be half done.
pub(crate) struct Vigil<'a>(pub &'a Shared);

impl Drop for Vigil<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            _ = self.0.poison(
                "a thread met a bug and panicked while it changed something; its message is in the log".to_owned(),
            );
        }
    }
}

impl Shared {
    /// Whether the almanac can still vouch for its data.
    pub fn check(&self) -> Result<(), StoreError> {
        self.poison.get().map_or(Ok(()), |why| Err(StoreError::Poisoned(why.clone())))
    }

    /// Stops everything, because what is on disk is not known.
    pub fn poison(&self, why: String) -> StoreError {
        let why = format!("{why}. What was confirmed is kept; restart to go on from there");
        StoreError::Poisoned(self.poison.get_or_init(|| why).clone())
    }

    pub fn has_reach(&self) -> bool {
        lock(&self.reach).is_some()
    }

    /// Notes durably how far the journal reaches. If that fails, less will be missed should it be lost, and nothing else.
    pub fn note_reach(&self, reached: Reached) {
        let draft = lock(&self.reach).as_mut().and_then(|reach| reach.draft(reached).ok()).flatten();
        // Synced without the lock, so that commits can note what they have done meanwhile.
        if let Some(draft) = draft.filter(|draft| draft.sync().is_ok()) {
            lock(&self.reach).as_mut().expect("it was just there").confirm(&draft);
            self.noted_segment.fetch_max(reached.segment, Ordering::Relaxed);
        }
    }

    /// Notes how far the journal reaches, for the case that this process is killed: a write of a few bytes and no sync.
    pub fn note_reach_lightly(&self, reached: Reached) {
        if let Some(reach) = lock(&self.reach).as_mut() {
            // It only vouches for what is there. What it says is said again by the next one.
            _ = reach.note(reached);
        }
    }

    pub fn set_hardship(&self, hardship: Option<Hardship>) {
        self.is_troubled.store(hardship.is_some(), Ordering::Relaxed);
        *lock(&self.hardship) = hardship;
        if !self.is_troubled.load(Ordering::Relaxed) {
            self.may_grow.store(true, Ordering::Relaxed);
        }
    }

    pub fn wake_keeper(&self) {
        let mut signals = lock(&self.signals);
        if !signals.wake {
            signals.wake = true;
            self.bell.notify_one();
        }
    }

    fn reader(&self) -> Reader<'_> {
        Reader { holdings: &self.holdings, blocks: &self.blocks }
    }

    /// Writes a record, makes it durable and applies it.
    fn record(&self, journal: &mut Journal, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), StoreError> {
        let _vigil = Vigil(self);
        let kept = self.kept();
        journal.append(kept, write).map_err(|error| self.append_failed(error))?;
        if let Some(error) = journal.take_lacking() {
            let setback = Setback::io("a segment of the journal could not be made")(error);
            self.set_hardship(setback.hardship());
        }
        if self.config.sync == SyncPolicy::Always {
            journal.sync().map_err(|error| self.poison(format!("the journal could not be synced: {error}")))?;
        }
        let reached = journal.reached();
        if reached.segment != self.noted_segment.load(Ordering::Relaxed) {
            // A segment that is begun will be missed if it goes, whatever happens next.
            self.note_reach(reached);
        } else {
            self.note_reach_lightly(reached);
        }
        let mut holdings = lock(&self.holdings);
        holdings.apply(journal.payload(), &self.blocks).map_err(|error| self.apply_failed(error))?;
        self.recent_bytes.store(holdings.active.bytes(), Ordering::Relaxed);
        self.to_tell.store(holdings.to_tell(), Ordering::Relaxed);
        let is_frozen = holdings.frozen.is_some();
        drop(holdings);
        self.set_may_grow(journal);
        if (!is_frozen && self.is_due(journal)) || self.is_worth_waking(journal, kept) {
            self.wake_keeper();
        }
        Ok(())
    }

    /// Nothing is written yet, so a caller whose memory is not what the store has can begin anew from that.
    fn verify_failed(&self, error: ApplyError) -> StoreError {
        match error {
            ApplyError::Astray(what) => StoreError::Unavailable(format!(
                "the caller broke the store's contract, and nothing was written: {what}"
            )),
            error => self.apply_failed(error),
        }
    }

    /// Whether the keeper is to see to free segments before its next round.
    fn is_worth_waking(&self, journal: &Journal, kept: usize) -> bool {
        // In hard times it has tried, and looks again by itself, until nothing but the last part is left.
        let is_hard = self.is_troubled.load(Ordering::Relaxed);
        let least = if is_hard { self.to_retell() + 1 } else { kept.max(self.set_aside()) };
        journal.free() <= least
    }

    fn apply_failed(&self, error: ApplyError) -> StoreError {
        self.poison(match error {
            ApplyError::Malformed => "a record was written that cannot be understood".to_owned(),
            ApplyError::Astray(what) => format!("the caller broke the store's contract: {what}"),
            ApplyError::Read(error) => error.to_string(),
        })
    }

    /// Lets a writer wait a little while the keeper is behind, the longer the farther it is: so memory
    /// stays within bounds, and no single commit waits long for all that is to be made up for.
    fn hold_back(&self) -> Result<(), StoreError> {
        let limit = self.config.recent();
        let most = limit / 2;
        let over = || self.recent_bytes.load(Ordering::Relaxed).saturating_sub(limit);
        if over() == 0 || self.config.tending == Tending::Manual {
            return Ok(());
        }
        let mut signals = lock(&self.signals);
        let begun = Instant::now();
        while !signals.stop {
            self.check()?;
            let (over, waited) = (over(), begun.elapsed());
            if over < most && waited >= LONGEST_WAIT.mul_f64(over as f64 / most as f64) {
                break;
            }
            if self.is_troubled.load(Ordering::Relaxed) {
                // The keeper cannot go on. New tasks are refused by now, and what remains to be done for the others has
                // the reserve. Without room that is what bounds it, and nothing that makes rows fewer may be refused.
                if over < 2 * limit + self.config.reserve as usize || self.is_short_of_room() {
                    break;
                }
                let hardship = lock(&self.hardship).clone();
                let why = hardship.as_ref().map_or("", Hardship::why);
                return Err(StoreError::Unavailable(format!("recent rows cannot be moved to disk: {why}")));
            }
            signals.wake = true;
            self.bell.notify_one();
            let wait = self.calm.wait_timeout(signals, Duration::from_millis(1));
            signals = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
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
                Some(Hardship::NoRoom(format!("{why}; hardly anything is handed out until that gives room back")))
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
        self.shared.check()?;
        self.shared.reader().get(shard, keys, bodies)
    }

    fn fetch(&self, shard: ShardId, positions: &[Position], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        self.shared.check()?;
        self.shared.reader().fetch(shard, positions, bodies)
    }

    fn numbered(&self, shard: ShardId, numbers: &[u64], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        self.shared.check()?;
        self.shared.reader().numbered(shard, numbers, bodies)
    }

    fn scan(&self, shard: ShardId, scan: &Scan) -> Result<Vec<Row>, StoreError> {
        self.shared.check()?;
        self.shared.reader().scan(shard, scan)
    }

    fn find(&self, shard: ShardId, find: &Find) -> Result<Vec<Row>, StoreError> {
        self.shared.check()?;
        self.shared.reader().find(shard, find)
    }

    fn scan_back(&self, shard: ShardId, back: &ScanBack) -> Result<Vec<Row>, StoreError> {
        self.shared.check()?;
        self.shared.reader().scan_back(shard, back)
    }

    fn find_back(&self, shard: ShardId, back: &FindBack) -> Result<Vec<Row>, StoreError> {
        self.shared.check()?;
        self.shared.reader().find_back(shard, back)
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
