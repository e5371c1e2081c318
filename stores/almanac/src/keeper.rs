//! The keeper: what is done beside the commits. It keeps free segments ready, merges recent rows into
//! runs, replaces the manifest, gives back what is not needed any more.
//!
//! Each step can fail and be made again, because nothing that counts is given up before the next
//! manifest is durable.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use punctual_core::store::{Position, StoreError};

use crate::adopt::{adopt, forget_keys};
use crate::almanac::{Shared, Vigil};
use crate::error::is_no_room;
use crate::journal::{AppendError, Journal, SegmentFile};
use crate::lock::lock;
use crate::manifest::{Manifest, Tallies};
use crate::merge::{MergeError, Merged, Merger, Plan};
use crate::recent::{Frozen, Recent};
use crate::retell::dead_bytes;
use crate::room::{need_of, no_room_for_run};
use crate::run::file_name;
use crate::setback::Setback;
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
    open: Option<Checkpoint>,
    /// The number of the next run.
    next_run: u64,
    /// By run and first block of a table: up to which block the room was given back.
    given_back: BTreeMap<(u64, usize), usize>,
    /// How many bytes of rows in runs were dead in the manifest after which room was last given back.
    pub dead_bytes: u64,
}

impl Keeper {
    pub fn starting_with(next_run: u64) -> Keeper {
        Keeper { open: None, next_run, given_back: BTreeMap::new(), dead_bytes: 0 }
    }

    /// The number of the next run.
    pub fn next_run(&self) -> u64 {
        self.next_run
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

/// A checkpoint on its way.
struct Checkpoint {
    plan: Plan,
    /// The manifest as it is to be; the new run is still missing from it.
    manifest: Manifest,
    merged: Option<Merged>,
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

    /// Freezes the active layer: from here on, what is committed belongs to the next one.
    fn freeze(&self, next_run: u64) -> Result<Checkpoint, Setback> {
        let mut journal = lock(&self.journal);
        journal.close().map_err(|error| self.append_failed(error))?;
        let mut holdings = lock(&self.holdings);
        let next = holdings.spare.take().unwrap_or_else(|| Recent::new(self.config.telling()));
        let frozen = Frozen::new(std::mem::replace(&mut holdings.active, next));
        let rows = Arc::clone(frozen.layer().rows());
        self.recent_bytes.store(0, Ordering::Relaxed);
        holdings.frozen = Some(frozen);
        let runs = holdings.shelf.as_it_is();
        let manifest = Manifest {
            sequence: journal.written(),
            first_segment: journal.number() + 1,
            next_run: next_run + 1,
            runs: Vec::new(),
            fences: holdings.fences.iter().map(|(shard, fence)| (*shard, *fence)).collect(),
            tallies: Arc::clone(&holdings.tallies),
            has_reach: self.has_reach(),
        };
        let plan = Plan { rows, runs, full_size: self.config.recent() as u64, carries: true };
        Ok(Checkpoint { plan, manifest, merged: None })
    }

    /// Brings the open checkpoint to its end.
    fn finish(&self, keeper: &mut Keeper) -> Result<(), Setback> {
        let checkpoint = keeper.open.as_mut().expect("the caller has opened one");
        if checkpoint.merged.is_none() {
            checkpoint.plan.carries = self.make_room_for(&checkpoint.plan)?;
            let merger =
                Merger { disk: &*self.disk, holdings: &self.holdings, blocks: &self.blocks, closing: &self.closing };
            let merged = merger.merge(&checkpoint.plan, keeper.next_run).map_err(merge_failed)?;
            checkpoint.complete(&merged);
            checkpoint.merged = Some(merged);
        }
        self.replace_manifest(&checkpoint.manifest, || lock(&self.journal).give_up_free())?;
        keeper.next_run += 1;
        let Checkpoint { plan, manifest, merged } = keeper.open.take().expect("it was just there");
        let merged = merged.expect("it was just merged");
        let (retired, frozen) = adopt(&self.holdings, &plan, &merged, manifest.tallies);
        // What is large is dropped without a lock, and the layer's memory is used again.
        drop(merged);
        let Plan { rows, runs, .. } = plan;
        drop(rows);
        let spare = frozen.and_then(|frozen| frozen.emptied(self.config.recent()));
        let mut holdings = lock(&self.holdings);
        holdings.spare = spare;
        self.to_tell.store(holdings.to_tell(), Ordering::Relaxed);
        drop(holdings);
        self.retire(&retired);
        let surplus = lock(&self.journal).release(manifest.first_segment, self.worth_keeping());
        self.remove_segments(surplus);
        keeper.give_back(runs, &retired);
        Ok(())
    }

    /// Lets an unfinished checkpoint go: what it was to merge will be recent again.
    pub fn abandon_checkpoint(&self, keeper: &mut Keeper) {
        if let Some(Checkpoint { merged: Some(_), .. }) = keeper.open.take() {
            // If it cannot be removed now, the next opening does it.
            _ = self.disk.remove(&file_name(keeper.next_run));
        }
    }

    /// Removes runs that the manifest does not name any more.
    pub fn retire(&self, retired: &[(u16, Shelved)]) {
        for (place, run) in retired {
            // Entries that cannot be found again stay, and the place with them: they are passed over.
            _ = forget_keys(&self.holdings, *place, run);
            self.blocks.forget(run.run.number());
            // What cannot be removed now is removed at the next opening.
            _ = self.disk.remove(&file_name(run.run.number()));
        }
    }

    pub fn remove_segments(&self, surplus: Vec<SegmentFile>) {
        for segment in surplus {
            _ = self.disk.remove(&segment.name);
        }
    }

    /// Makes the manifest the one that counts. Without room for it, it is written over a free segment.
    pub fn replace_manifest(
        &self,
        manifest: &Manifest,
        mut free: impl FnMut() -> Option<SegmentFile>,
    ) -> Result<(), Setback> {
        let failed = || Setback::io("the manifest could not be replaced");
        // The new run's name is durable before the manifest names it.
        self.disk.sync().map_err(failed())?;
        let mut stored = manifest.store(&*self.disk);
        if stored.as_ref().is_err_and(is_no_room) {
            let length = manifest.length();
            if length <= self.config.segment
                && let Some(segment) = free()
            {
                stored = manifest.store_over(&*self.disk, &segment.name);
            } else {
                // It is longer than a segment: the room of several is given up for it.
                let segments = (0..length.div_ceil(self.config.segment)).map_while(|_| free()).collect();
                self.remove_segments(segments);
                stored = manifest.store(&*self.disk);
            }
        }
        stored.map_err(failed())?;
        self.manifest_bytes.store(manifest.length(), Ordering::Relaxed);
        // From here on, either manifest may be the one that is found after a crash. Both are right,
        // but without this sync it is not known when the old one's files may go.
        let synced = self.disk.sync();
        synced.map_err(|error| Setback::Store(self.poison(format!("the directory could not be synced: {error}"))))
    }

    pub fn append_failed(&self, error: AppendError) -> StoreError {
        match error {
            AppendError::Full(error) => self.not_appended(Setback::NoRoom(format!("the journal has no room: {error}"))),
            AppendError::Unmade(error) => {
                self.not_appended(Setback::Failing(format!("a segment of the journal could not be made: {error}")))
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

impl Checkpoint {
    /// Enters what was merged into the manifest.
    fn complete(&mut self, merged: &Merged) {
        self.manifest.runs =
            self.plan.runs.iter().filter(|run| !merged.replaces(run)).map(|(_, run)| run.entry()).collect();
        if let Some(run) = &merged.run {
            let run = Shelved { run: Arc::clone(run), deaths: Arc::default() };
            self.manifest.runs.push(run.entry());
        }
        let mut tallies: Tallies = (*self.manifest.tallies).clone();
        for (tally, delta) in self.plan.rows.tallies() {
            *tallies.entry(tally.clone()).or_insert(0) += delta;
        }
        tallies.retain(|_, count| *count != 0);
        self.manifest.tallies = Arc::new(tallies);
    }
}

fn merge_failed(error: MergeError) -> Setback {
    match error {
        MergeError::Read(error) => Setback::Store(error.into()),
        MergeError::Write(error) => Setback::io("a run could not be written")(error),
        MergeError::Closing => Setback::Store(StoreError::Unavailable(error.to_string())),
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
