//! The keeper: what is done beside the commits. It keeps free segments ready, sees to it that recent rows become
//! runs (`checkpoint.rs`), and gives back what is not needed any more.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use punctual_core::store::{Position, StoreError};

use crate::checkpoint::Checkpoint;
use crate::journal::{AppendError, Journal};
use crate::lock::lock;
use crate::retell::dead_bytes;
use crate::room::{need_of, no_room_for_run};
use crate::setback::Setback;
use crate::shared::{Shared, Vigil};
use crate::shelf::Shelved;

/// How often recent rows are told again at most before the keeper looks around.
const RETELLINGS: usize = 2;
/// How often the keeper looks around when nobody calls it.
const ROUND: Duration = Duration::from_secs(1);
/// After so many rounds in which hardly anything came, recent rows are merged although there is room for
/// more: what waits for long is to cost next to no memory.
const QUIET_ROUNDS: u32 = 5;
/// How much room dead blocks at the beginning of a run must take before it is given back.
const PUNCH: u64 = 1 << 20;

/// What the keeper remembers from one round to the next.
pub(crate) struct Keeper {
    /// A layer that was frozen and is not in the manifest yet.
    pub open: Option<Checkpoint>,
    /// The number of the next run.
    pub next_run: u64,
    /// By run and first block of a table: up to which block the room was given back.
    given_back: BTreeMap<(u64, usize), usize>,
    /// How many bytes of rows in runs were dead in the manifest after which room was last given back.
    pub dead_bytes: u64,
}

impl Keeper {
    pub fn starting_with(next_run: u64) -> Keeper {
        Keeper { open: None, next_run, given_back: BTreeMap::new(), dead_bytes: 0 }
    }

    /// Gives the room of dead rows back to the disk, at the beginning of each table of each run:
    /// rows die in the order of their times. Nothing refers to them any more, since they were dead
    /// before the journal that counts begins. `runs`: as that manifest knows them.
    pub fn give_back(&mut self, mut runs: Vec<(u16, Shelved)>, retired: &[(u16, Shelved)]) {
        runs.retain(|(place, _)| retired.iter().all(|(gone, _)| gone != place));
        let stays = |number: u64| runs.iter().any(|(_, then)| then.run.number() == number);
        self.given_back.retain(|(number, _), _| stays(*number));
        // Rows that have died since are still to be given back, so they do not count here.
        self.dead_bytes = dead_bytes(&runs);
        for (_, then) in &runs {
            let number = then.run.number();
            for (shard, table) in then.run.tables() {
                let blocks = then.run.blocks_from(shard, table, Position::START);
                let given = self.given_back.entry((number, blocks.start)).or_insert(blocks.start);
                let dead = *given..then.first_living(blocks);
                // Best effort: on a disk that cannot do it, the room comes back with the run's end.
                if then.run.span(dead.clone()) >= PUNCH && then.run.punch(dead.clone()).is_ok() {
                    *given = dead.end;
                }
            }
        }
    }
}

impl Shared {
    /// The keeper's life, until the almanac is closed.
    pub fn keep(&self) {
        let mut quiet = Quiet::default();
        loop {
            let mut signals = lock(&self.signals);
            if !signals.wake && !signals.stop {
                signals = self.bell.wait_timeout(signals, ROUND).unwrap_or_else(PoisonError::into_inner).0;
            }
            if signals.stop {
                return;
            }
            signals.wake = false;
            drop(signals);
            let is_quiet = quiet.round(self.recent_bytes.load(Ordering::Relaxed), self.config.recent());
            // Memory is kept for the next rows only while there are some: neither what is spare now nor
            // what becomes so.
            if is_quiet {
                lock(&self.holdings).spare = None;
            }
            let tended = self.tend(is_quiet);
            if is_quiet {
                lock(&self.holdings).spare = None;
            }
            if tended.is_err() {
                // What failed is tried again, but not in a hurry.
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }

    /// Makes commits durable from time to time, until the almanac is closed. A thread of its own,
    /// because the keeper may be busy for longer.
    pub fn sync_every(&self, time: Duration) {
        let mut signals = lock(&self.signals);
        while !signals.stop {
            signals = self.tick.wait_timeout(signals, time).unwrap_or_else(PoisonError::into_inner).0;
            drop(signals);
            if self.sync_journal().is_err() {
                return;
            }
            signals = lock(&self.signals);
        }
    }

    /// Does all that is to be done. `forced`: also a checkpoint that is not due yet.
    pub fn tend(&self, forced: bool) -> Result<(), StoreError> {
        let mut keeper = lock(&self.keeper);
        let _vigil = Vigil(self);
        self.check()?;
        // A freeze syncs with the journal held. Most of that is done here, while commits go on.
        self.sync_journal()?;
        let reached = lock(&self.journal).reached();
        self.note_reach(reached);
        let mut round = self.round(&mut keeper, forced);
        // Without room, what is dead gives some back, and it goes on; but not for ever in one go.
        for _ in 0..RETELLINGS {
            if !round.lacks_room() || !self.is_worth_retelling(&keeper) {
                break;
            }
            match self.retell(&mut keeper) {
                Ok(()) => round = self.round(&mut keeper, forced),
                Err(Setback::Store(error @ StoreError::Poisoned(_))) => return Err(error),
                // What was wrong before is what is wrong.
                Err(_) => break,
            }
        }
        self.set_hardship(round.setback().and_then(Setback::hardship));
        self.set_may_grow(&lock(&self.journal));
        self.calm.notify_all();
        Ok(round.merged?)
    }

    /// Free segments come first, since commits need them at once and merging may take seconds; and again at the end,
    /// since commits have taken some meanwhile.
    fn round(&self, keeper: &mut Keeper, forced: bool) -> Round {
        self.look_for_room();
        let refilled = self.refill();
        let merged = self.merge_what_is_due(keeper, forced);
        let refilled = if merged.is_ok() { refilled.and_then(|()| self.refill()) } else { refilled };
        Round { merged, refilled }
    }

    fn merge_what_is_due(&self, keeper: &mut Keeper, forced: bool) -> Result<(), Setback> {
        loop {
            if keeper.open.is_none() {
                if !forced && !self.is_due(&lock(&self.journal)) && !self.is_due_early() {
                    return Ok(());
                }
                self.check_room_for_run()?;
                keeper.open = Some(self.freeze(keeper.next_run)?);
            }
            let finished = self.finish(keeper);
            // Commits that are held back wait for this, not until there is nothing more to do.
            self.calm.notify_all();
            if finished.is_err() || forced {
                return finished;
            }
        }
    }

    /// Whether recent rows, with the bodies that are still in runs, would soon be too large for a run that
    /// there is room for.
    fn is_due_early(&self) -> bool {
        if !self.is_short_of_room() {
            return false;
        }
        let (room, need) = (self.room_for_run(), self.need_of_active());
        need >= self.config.segment && need <= room && need >= room / 2
    }

    /// In hard times a layer is not frozen for a run that there is no room for: each freeze begins a new segment.
    fn check_room_for_run(&self) -> Result<(), Setback> {
        if !self.is_short_of_room() {
            return Ok(());
        }
        let (room, need) = (self.room_for_run(), self.need_of_active());
        if need <= room { Ok(()) } else { Err(no_room_for_run(need, room)) }
    }

    fn need_of_active(&self) -> u64 {
        let holdings = lock(&self.holdings);
        let runs = holdings.shelf.as_it_is();
        need_of(holdings.active.rows(), &runs)
    }

    /// Makes what was written durable, if that is not done with each commit.
    pub fn sync_journal(&self) -> Result<(), StoreError> {
        let Some(unsynced) = lock(&self.journal).unsynced() else { return Ok(()) };
        match unsynced.sync() {
            Ok(sequence) => {
                let mut journal = lock(&self.journal);
                journal.mark_synced(sequence);
                self.note_reach_lightly(journal.reached());
                Ok(())
            }
            Err(error) => Err(self.poison(format!("the journal could not be synced: {error}"))),
        }
    }

    /// Whether recent rows or the journal have grown enough.
    pub fn is_due(&self, journal: &Journal) -> bool {
        self.recent_bytes.load(Ordering::Relaxed) >= self.config.recent() || journal.bytes() >= self.config.journal
    }

    pub fn append_failed(&self, error: AppendError) -> StoreError {
        match error {
            AppendError::Full(error) => self.not_appended(Setback::NoRoom(format!("the journal has no room: {error}"))),
            AppendError::Unmade(error) => {
                self.not_appended(Setback::Failing(format!("a segment of the journal could not be created: {error}")))
            }
            AppendError::Unknown(error) => self.poison(format!("the journal could not be written: {error}")),
        }
    }

    fn not_appended(&self, setback: Setback) -> StoreError {
        self.set_hardship(setback.hardship());
        setback.into()
    }
}

/// Notices when recent rows have been left alone for a while.
#[derive(Default)]
struct Quiet {
    bytes: usize,
    rounds: u32,
}

impl Quiet {
    /// Notes how much memory recent rows take of what they may; says whether it is time to merge them.
    fn round(&mut self, bytes: usize, limit: usize) -> bool {
        // So little is not worth a run of its own.
        let is_little = bytes < limit / 16;
        let has_moved = bytes.abs_diff(self.bytes) > limit / 256;
        if is_little || has_moved {
            *self = Quiet { bytes, rounds: 0 };
            return false;
        }
        self.rounds += 1;
        self.rounds >= QUIET_ROUNDS
    }
}

/// What came of a round of the keeper's.
struct Round {
    merged: Result<(), Setback>,
    refilled: Result<(), Setback>,
}

impl Round {
    fn setback(&self) -> Option<&Setback> {
        self.merged.as_ref().err().or(self.refilled.as_ref().err())
    }

    fn lacks_room(&self) -> bool {
        [&self.merged, &self.refilled].into_iter().any(|done| done.as_ref().is_err_and(Setback::is_no_room))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_is_when_enough_was_left_alone_for_long_enough() {
        let limit = 1_600;
        let mut quiet = Quiet::default();
        let mut rounds = |bytes: usize, times: u32| (0..times).any(|_| quiet.round(bytes, limit));
        assert!(!rounds(1_000, QUIET_ROUNDS), "the first round sees it come");
        assert!(rounds(1_001, 1), "a little more is no more");
        assert!(!rounds(1_500, QUIET_ROUNDS), "it has grown");
        assert!(!rounds(99, 10 * QUIET_ROUNDS), "it is not worth it");
    }
}
