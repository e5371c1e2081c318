//! What the callers' threads and the keeper share: who may write, what is written first, and who waits for whom.
//!
//! ```text
//! commit:  journal lock ── write ── sync ──┐ holdings lock ── apply ──┐ answer
//! read:                      holdings lock ┴ find ──┐ disk ──┐ copy out
//! keeper:  both locks, briefly ── freeze ──┐ disk … ┴ holdings lock, briefly ── adopt
//! ```
//! Locks are taken in this order: keeper, journal, holdings.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use punctual_core::Clock;
use punctual_core::store::{Hardship, StoreError};
use punctual_disk::Disk;

use crate::blocks::Blocks;
use crate::config::{Config, SyncPolicy, Tending};
use crate::holdings::{ApplyError, Holdings};
use crate::journal::{Journal, Reach, Reached};
use crate::keeper::Keeper;
use crate::lock::lock;
use crate::read::Reader;
use crate::setback::Setback;

/// How long a commit waits at most while the keeper is behind, but not so far that memory runs out.
const LONGEST_WAIT: Duration = Duration::from_millis(8);

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

/// Poisons the almanac if the thread panics meanwhile: what it had in hand may be half done.
pub(crate) struct Vigil<'a>(pub &'a Shared);

impl Drop for Vigil<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            _ = self.0.poison(
                "a thread panicked because of a bug while it made a change; see the log for its message".to_owned(),
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
        let why = format!("{why}. Everything confirmed is safe; restart to continue from there");
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

    pub fn reader(&self) -> Result<Reader<'_>, StoreError> {
        self.check()?;
        Ok(Reader { holdings: &self.holdings, blocks: &self.blocks })
    }

    /// Writes a record, makes it durable and applies it; `applied` is what else changes in the same moment.
    pub fn record(
        &self,
        journal: &mut Journal,
        write: impl FnOnce(&mut Vec<u8>),
        applied: impl FnOnce(&mut Holdings),
    ) -> Result<(), StoreError> {
        let _vigil = Vigil(self);
        let kept = self.kept();
        journal.append(kept, write).map_err(|error| self.append_failed(error))?;
        if let Some(error) = journal.take_lacking() {
            let setback = Setback::io("a segment of the journal could not be created")(error);
            self.set_hardship(setback.hardship());
        }
        // Before it is applied: with this policy no reader sees what a power loss could take back.
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
        applied(&mut holdings);
        self.recent_bytes.store(holdings.active.bytes(), Ordering::Relaxed);
        self.to_tell.store(holdings.to_tell(), Ordering::Relaxed);
        let is_frozen = holdings.frozen.is_some();
        drop(holdings);
        self.set_may_grow(journal);
        // While a layer is frozen the keeper is at work, and looks again when it is done.
        if (!is_frozen && self.is_due(journal)) || self.is_worth_waking(journal, kept) {
            self.wake_keeper();
        }
        Ok(())
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
            ApplyError::Malformed => "an invalid record was written".to_owned(),
            ApplyError::Astray(what) => format!("the caller broke the store's contract: {what}"),
            ApplyError::Read(error) => error.to_string(),
        })
    }

    /// Lets a writer wait a little while the keeper is behind, the longer the farther it is: so memory
    /// stays within bounds, and no single commit waits long for all that is to be made up for.
    pub fn hold_back(&self) -> Result<(), StoreError> {
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
