//! A checkpoint: recent rows become a run, and the manifest that names it takes the place of the one before.
//!
//! ```text
//! freeze ──► merge (merge.rs) ──► replace the manifest ──► adopt (adopt.rs) ──► give back what only the old one needed
//! ```
//! Each step can fail and be made again: until the new manifest is durable, all that the old one names is still there.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use punctual_core::store::StoreError;

use crate::adopt::{adopt, forget_keys};
use crate::error::is_no_room;
use crate::journal::SegmentFile;
use crate::keeper::Keeper;
use crate::lock::lock;
use crate::manifest::Manifest;
use crate::merge::{MergeError, Merged, Merger, Plan};
use crate::recent::{Frozen, Recent};
use crate::run::file_name;
use crate::setback::Setback;
use crate::shared::Shared;
use crate::shelf::Shelved;

/// A checkpoint on its way.
pub(crate) struct Checkpoint {
    plan: Plan,
    /// The manifest as it is to be; the new run is still missing from it.
    manifest: Manifest,
    /// The new run, once it is written; from then on only the manifest is missing.
    merged: Option<Merged>,
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
        self.manifest.tallies = Arc::new(self.plan.rows.added_to(&self.manifest.tallies));
    }
}

impl Shared {
    /// Freezes the active layer: from here on, what is committed belongs to the next one. Both locks are held, so the
    /// layer, the deaths in runs and the manifest's sequence are of one moment; copying them costs a pointer each.
    pub fn freeze(&self, next_run: u64) -> Result<Checkpoint, Setback> {
        let mut journal = lock(&self.journal);
        // A segment must be all before the freeze or all after it: the manifest can only say which is the first.
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
            entries: holdings.entries.clone().into_iter().collect(),
            has_reach: self.has_reach(),
        };
        let plan = Plan { rows, runs, full_size: self.config.recent() as u64, carries: true };
        Ok(Checkpoint { plan, manifest, merged: None })
    }

    /// Brings the open checkpoint to its end. If it fails, it stays open, and what was written is not written again.
    pub fn finish(&self, keeper: &mut Keeper) -> Result<(), Setback> {
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
        // The run counts from here on, so nothing below may fail: what cannot be given back now is left for later.
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
}

fn merge_failed(error: MergeError) -> Setback {
    match error {
        MergeError::Read(error) => Setback::Store(error.into()),
        MergeError::Write(error) => Setback::io("a run could not be written")(error),
        MergeError::Closing => Setback::Store(StoreError::Unavailable(error.to_string())),
    }
}
