//! What a test or the simulation can tell the store to do wrong.
//!
//! Nothing here decides anything by itself: the same words at the same moments give the same run.
//! To have an old fence refused, claim the shard again, under the same name or another.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use punctual_core::store::{Hardship, Room, StoreError, Table};

/// What becomes of a commit that fails; the caller hears the same in all cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing of it took effect.
    Lost,
    /// The first so many batches took effect, the rest did not.
    Partly(usize),
    /// All of it took effect; only the answer was lost.
    Kept,
}

impl Fate {
    /// How many of the batches take effect.
    pub(crate) fn kept(self, batches: usize) -> usize {
        match self {
            Fate::Lost => 0,
            Fate::Partly(kept) => kept.min(batches),
            Fate::Kept => batches,
        }
    }
}

/// What shall go wrong in a [`MemoryStore`](crate::MemoryStore), from now on or the next time.
#[derive(Default)]
pub struct Faults {
    plan: Mutex<Plan>,
    /// Whether the plan knows of a hardship: every new task asks, and need not take the lock.
    is_hard: AtomicBool,
}

#[derive(Default)]
struct Plan {
    /// What every call answers.
    refusal: Option<StoreError>,
    /// What keeps the store from taking more.
    hardship: Option<Hardship>,
    /// Whether there is no room for rows to grow.
    is_crammed: bool,
    next_commit: Option<Fate>,
    delay: Option<Arc<dyn Fn() + Send + Sync>>,
    scan_delay: Option<Arc<dyn Fn(Table) + Send + Sync>>,
}

impl Faults {
    /// The next commit fails as [`StoreError::Unavailable`], with this fate; those after it do not.
    pub fn fail_next_commit(&self, fate: Fate) {
        self.plan().next_commit = Some(fate);
    }

    /// Every call fails as [`StoreError::Unavailable`] and without effect, until
    /// [`heal`](Faults::heal).
    pub fn cut(&self) {
        self.plan().refusal = Some(StoreError::Unavailable("the store is cut off".to_owned()));
    }

    /// Every call fails as [`StoreError::Poisoned`] and without effect, until
    /// [`heal`](Faults::heal), which stands for opening the store anew.
    pub fn poison(&self, reason: &str) {
        self.plan().refusal = Some(StoreError::Poisoned(reason.to_owned()));
    }

    /// Says that there is no room for more, for this reason, until [`heal`](Faults::heal). Commits go
    /// on: it is for the caller to heed.
    pub fn fill(&self, reason: &str) {
        self.endure(Hardship::NoRoom(reason.to_owned()));
    }

    /// Says that there is no room for rows to grow either, for this reason, until [`heal`](Faults::heal). Commits go on.
    pub fn cram(&self, reason: &str) {
        self.fill(reason);
        self.plan().is_crammed = true;
    }

    /// Says that more cannot be taken, until [`heal`](Faults::heal). Commits go on.
    pub fn endure(&self, hardship: Hardship) {
        let mut plan = self.plan();
        plan.hardship = Some(hardship);
        self.is_hard.store(true, Ordering::SeqCst);
    }

    /// Calls this at the beginning of every commit, outside all locks: it may sleep, or block until
    /// the test lets it go on. Other calls are not held up.
    pub fn slow_down(&self, delay: impl Fn() + Send + Sync + 'static) {
        self.plan().delay = Some(Arc::new(delay));
    }

    /// Calls this at the beginning of every scan, with its table, outside all locks.
    pub fn slow_down_scans(&self, delay: impl Fn(Table) + Send + Sync + 'static) {
        self.plan().scan_delay = Some(Arc::new(delay));
    }

    /// Nothing goes wrong any more.
    pub fn heal(&self) {
        let mut plan = self.plan();
        *plan = Plan::default();
        self.is_hard.store(false, Ordering::SeqCst);
    }

    /// What keeps the store from taking more.
    pub(crate) fn hardship(&self) -> Option<Hardship> {
        if self.is_hard.load(Ordering::SeqCst) { self.plan().hardship.clone() } else { None }
    }

    /// How much room there is.
    pub(crate) fn room(&self) -> Room {
        if !self.is_hard.load(Ordering::SeqCst) {
            return Room::Enough;
        }
        let plan = self.plan();
        if plan.is_crammed { Room::None } else { Room::under(plan.hardship.as_ref()) }
    }

    /// Whether calls come through.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.plan().refusal.clone().map_or(Ok(()), Err)
    }

    /// Lets the caller's delay pass.
    pub(crate) fn delay(&self) {
        let delay = self.plan().delay.clone();
        if let Some(delay) = delay {
            delay();
        }
    }

    /// Lets the caller's delay of a scan pass.
    pub(crate) fn delay_scan(&self, table: Table) {
        let delay = self.plan().scan_delay.clone();
        if let Some(delay) = delay {
            delay(table);
        }
    }

    /// What becomes of the commit that is about to take effect; nothing special if `None`.
    pub(crate) fn take_fate(&self) -> Result<Option<Fate>, StoreError> {
        let mut plan = self.plan();
        match &plan.refusal {
            Some(refusal) => Err(refusal.clone()),
            None => Ok(plan.next_commit.take()),
        }
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().expect("nothing panics while it holds the plan")
    }
}
