//! The check: every checksum and every count of an almanac.

use std::sync::Arc;

use punctual_disk::Disk;

use super::look::{Look, SeenRun};
use super::report::Report;
use crate::error::{Damage, OpenError};
use crate::journal::SegmentStanding;
use crate::manifest::Manifest;
use crate::run::{self, Run};
use crate::shelf::Shelved;

/// How often a run that changes in use is looked at anew.
const ATTEMPTS: usize = 5;

/// How far a check is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// What is being looked at.
    pub file: &'a str,
    /// How many bytes were looked at.
    pub done: u64,
    /// How many there are; zero as long as that is not known.
    pub total: u64,
}

/// Checks an almanac: every checksum and every count in its manifest, its journal and its runs. An
/// error only if it cannot be read at all: there is none, it is of a newer version, or not accessible.
pub fn check(disk: &dyn Disk, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Report, OpenError> {
    progress(Progress { file: "journal", done: 0, total: 0 });
    let mut look = Look::at(disk)?;
    let mut report = Report { place: disk.place(), in_use: look.in_use, bytes: look.bytes, ..Report::default() };
    report.damage.append(&mut look.damage);
    report.remark(&look);
    report.count(&mut look);
    let total = look.runs.iter().map(|seen| seen.entry.bytes).sum();
    let mut before = 0;
    for seen in &look.runs {
        let file = run::file_name(seen.entry.number);
        let mut done = before;
        let damage = check_run(disk, &look, seen, |bytes| {
            done = (done + bytes).min(before + seen.entry.bytes);
            progress(Progress { file: &file, done, total });
        });
        before += seen.entry.bytes;
        progress(Progress { file: &file, done: before, total });
        for found in damage {
            // Keys that could not be read have been noticed before.
            if !report.damage.contains(&found) {
                report.damage.push(found);
            }
        }
    }
    Ok(report)
}

/// All damage of a run. While the almanac is in use, blocks whose rows have all died since may have
/// been given back to the disk, or the whole run; so damage counts only if the manifest of now agrees.
fn check_run(disk: &dyn Disk, look: &Look, seen: &SeenRun, mut progress: impl FnMut(u64)) -> Vec<Damage> {
    let Some((run, _)) = &seen.run else { return Vec::new() };
    let mut deaths = Arc::clone(&seen.entry.deaths);
    for attempt in 1.. {
        let shelved = Shelved { run: Arc::clone(run), deaths: Arc::clone(&deaths) };
        // Without a manifest nobody knows which blocks are dead.
        let is_dead = |block: usize| match look.manifest {
            Some(_) => shelved.is_dead(block),
            None => run.is_blank(block),
        };
        let damage = run.check(is_dead, &mut progress);
        if damage.is_empty() || !look.in_use || attempt == ATTEMPTS {
            return damage;
        }
        match deaths_now(disk, run) {
            Some(now) if now != deaths => deaths = now,
            Some(_) => return damage,
            None => return Vec::new(),
        }
    }
    unreachable!("the last attempt counts")
}

/// The deaths of a run by the manifest of now; none if it does not name the run any more.
fn deaths_now(disk: &dyn Disk, run: &Run) -> Option<Arc<roaring::RoaringBitmap>> {
    let manifest: Manifest = Manifest::load(disk).ok().flatten()?;
    manifest.runs.into_iter().find(|entry| entry.number == run.number()).map(|entry| entry.deaths)
}

impl Report {
    fn remark(&mut self, look: &Look) {
        if look.in_use {
            let what = "the almanac is in use by another process: the end of its journal may be changing";
            self.remarks.push(format!("{what}, and an incomplete record there is normal"));
        }
        if look.is_blurred {
            let found = std::mem::take(&mut self.damage).len();
            let what = "it kept changing, so that journal and runs were never read at the same moment";
            self.remarks.push(format!("{what} ({found} doubts); check again when the server is less busy"));
        }
        if let Some((file, offset)) = &look.journal.torn {
            let what = "a record was cut short while it was written";
            self.remarks.push(format!(
                "{file}, byte {offset}: {what}; it was never confirmed, and opening the store cuts it off"
            ));
        }
        for name in &look.journal.half_heads {
            let what = "one of the two copies of its header is incomplete or damaged";
            self.remarks.push(format!("{name}: {what}; the other is intact, and opening the store repairs it"));
        }
        if look.manifest.is_none() {
            let what = "without the manifest it is unknown which runs and segments are in use and which rows are dead";
            self.remarks.push(format!("{what}; all that exist were checked, each by itself"));
        }
        if look.astray > 0 {
            let what = "changes in the journal name rows that cannot be found, because something before them is lost";
            self.remarks.push(format!("{} {what}", look.astray));
        }
        for name in &look.leftovers {
            let what = if look.in_use { "is being written, or was left behind" } else { "was left behind" };
            self.remarks.push(format!("{name} {what} by an interrupted checkpoint; opening the store removes it"));
        }
        for name in &look.strangers {
            self.remarks.push(format!("{name} does not belong to the almanac; it is left alone"));
        }
    }

    fn count(&mut self, look: &mut Look) {
        self.runs = look.runs.len();
        self.run_rows = look.runs.iter().map(|seen| u64::from(seen.entry.rows)).sum();
        for segment in &look.journal.segments {
            if let SegmentStanding::Live { records, .. } = segment.standing {
                self.segments += 1;
                self.records += records;
            }
        }
        self.shards = look.holdings.fences.len();
        for shard in look.holdings.fences.keys() {
            self.tallies += look.holdings.tallies(*shard).len();
        }
        self.entries = look.holdings.entries.len();
        let tables = look.tables();
        self.living = tables.values().map(|count| count.in_runs + count.recent).sum();
        self.recent = tables.values().map(|count| count.recent).sum();
    }
}
