//! Room to work with: how much of the journal is kept free, so that whatever the disk has left, the almanac
//! can be opened, rows can change and go, and what is dead can give its room back.
//!
//! ```text
//! free segments:  ████ what telling all recent rows again would take, and a manifest   never taken by a commit
//!                 ███  the reserve                       taken by commits only when no segment can be made
//!                 ██   spare                             taken by commits, refilled by the keeper
//! ```
//! **Invariant**: as soon as the disk has not got room in plenty, recent rows grow only while the first part grows with
//! them. So a retelling (`retell.rs`) is always possible, and after it the segments that the journal took are free again.
//! A disk with plenty is looked at every second, and nothing of it need be set aside yet.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use punctual_core::store::{Hardship, StoreError};

use crate::almanac::Shared;
use crate::binding::Plan;
use crate::config::{Config, Tending};
use crate::journal::SegmentFile;
use crate::lock::lock;
use crate::recent::{Body, Rows};
use crate::setback::Setback;
use crate::shelf::Shelved;

/// How many segments are kept free beside the reserve.
const SPARE: usize = 2;
/// So many bytes are plenty, if recent rows take only a small part of them.
const PLENTY: u64 = 1 << 30;
const SMALL_PART: u64 = 8;
/// How long a commit waits for the keeper at most, when only what a retelling needs is left.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

impl Shared {
    /// How many segments telling all recent rows again would take, and the manifest that goes with it.
    pub fn to_retell(&self) -> usize {
        segments_for(&self.config, self.living.load(Ordering::Relaxed)) + 1
    }

    /// How many free segments commits leave alone as long as others can be made.
    pub fn kept(&self) -> usize {
        let has_plenty = self.has_plenty.load(Ordering::Relaxed) && !self.is_troubled.load(Ordering::Relaxed);
        if has_plenty { 0 } else { self.to_retell() + self.config.reserve_segments() }
    }

    /// Looks whether the disk has so much room that none need be set aside.
    pub fn look_for_room(&self) {
        // A system that does not tell may have little.
        let room = self.disk.room().unwrap_or_default();
        let is_plenty = room >= PLENTY && room / SMALL_PART >= self.living.load(Ordering::Relaxed);
        self.has_plenty.store(is_plenty, Ordering::Relaxed);
    }

    /// How many segments are to be free.
    pub fn wanted(&self) -> usize {
        // In hard times one more, so that they are not over and back again with each record.
        let more = 1 + usize::from(self.is_short_of_room());
        (self.config.reserve_segments() + SPARE).max(self.kept() + more)
    }

    /// How many free segments are worth keeping: as many as the journal takes while it grows.
    pub fn worth_keeping(&self) -> usize {
        if self.is_short_of_room() {
            return self.wanted();
        }
        let grown = usize::try_from(self.config.journal / self.config.segment).unwrap_or(usize::MAX);
        self.wanted().max(self.config.reserve_segments() + SPARE + grown)
    }

    pub fn is_short_of_room(&self) -> bool {
        self.is_troubled.load(Ordering::Relaxed) && matches!(*lock(&self.hardship), Some(Hardship::NoRoom(_)))
    }

    /// Keeps free segments ready.
    pub fn refill(&self) -> Result<(), Setback> {
        while lock(&self.journal).free() < self.wanted() {
            self.add_segment()?;
        }
        Ok(())
    }

    /// Makes one more free segment.
    pub fn add_segment(&self) -> Result<(), Setback> {
        // The name is taken with the lock held: a commit that finds no free segment makes one meanwhile.
        let name = lock(&self.journal).fresh_name();
        let segment = SegmentFile::create_written(&self.disk, name, self.config.segment)
            .map_err(Setback::io("a segment of the journal could not be made"))?;
        lock(&self.journal).add_free(segment);
        Ok(())
    }

    /// Sees to it that there is room for what is to be bound; says whether there is enough to carry rows of
    /// other runs along. Free segments that are not needed otherwise are given up for it.
    pub fn make_room_for(&self, plan: &Plan) -> Result<bool, Setback> {
        let need = need_of(&plan.rows, &plan.runs);
        let with_carried = need + plan.carried_bytes();
        if self.give_up_segments(with_carried) {
            return Ok(true);
        }
        if self.give_up_segments(need) {
            return Ok(false);
        }
        let room = self.disk.room().unwrap_or_default();
        Err(Setback::NoRoom(format!("a run of {need} bytes cannot be written, the disk has room for {room}")))
    }

    /// How many bytes could be written, if free segments are given up that are not needed otherwise.
    pub fn room_to_bind(&self) -> u64 {
        let surplus = lock(&self.journal).free().saturating_sub(self.kept()) as u64;
        // A system that does not tell is asked by trying.
        self.disk.room().unwrap_or(u64::MAX).saturating_add(surplus * self.config.segment)
    }

    fn give_up_segments(&self, need: u64) -> bool {
        if self.room_to_bind() < need {
            return false;
        }
        while self.disk.room().is_ok_and(|room| room < need) {
            let mut journal = lock(&self.journal);
            let segment = if journal.free() > self.kept() { journal.give_up_free() } else { None };
            drop(journal);
            let Some(SegmentFile { name, file, .. }) = segment else { break };
            drop(file);
            _ = self.disk.remove(&name);
        }
        true
    }

    /// Makes it possible to begin when an almanac was left with next to nothing free: each opening begins a new
    /// segment. What cannot be done now is tried again by the keeper.
    pub fn clear_the_way(&self) {
        let is_free = || lock(&self.journal).free() > self.to_retell() + 1;
        if lock(&self.journal).used() == 0 || self.has_plenty.load(Ordering::Relaxed) {
            return;
        }
        while !is_free() {
            let Err(setback) = self.add_segment() else { continue };
            self.note_hardship(setback.hardship());
            let mut desk = lock(&self.desk);
            if self.is_worth_retelling(&desk) {
                _ = self.retell(&mut desk);
            }
            return;
        }
    }

    /// Keeps commits from taking what a retelling needs: the keeper is asked for more, and if there is none,
    /// the commit is refused while everything can still be put right.
    pub fn leave_room(&self) -> Result<(), StoreError> {
        // One that is taken now, and rows that come with it, must leave enough.
        let is_there = || {
            let journal = lock(&self.journal);
            let left = journal.left() >= self.config.segment / 8 && journal.free() >= self.to_retell();
            left || journal.free() > self.to_retell() + 1
        };
        if !self.is_troubled.load(Ordering::Relaxed) || is_there() {
            return Ok(());
        }
        if self.config.tending == Tending::Thread {
            // One round may have begun before this was called for.
            let enough = self.rounds.load(Ordering::Relaxed) + 2;
            let mut waited = Duration::ZERO;
            let mut signals = lock(&self.signals);
            while !signals.stop && self.rounds.load(Ordering::Relaxed) < enough && waited < LONGEST_WAIT {
                signals.wake = true;
                self.bell.notify_one();
                let step = Duration::from_millis(10);
                signals = self.calm.wait_timeout(signals, step).unwrap_or_else(PoisonError::into_inner).0;
                waited += step;
                if is_there() {
                    return Ok(());
                }
            }
        }
        self.check()?;
        if is_there() {
            return Ok(());
        }
        let why = lock(&self.hardship).as_ref().map_or_else(String::new, |hardship| hardship.why().to_owned());
        Err(StoreError::Unavailable(format!("the journal has no room: {why}")))
    }
}

/// How many segments so many bytes of rows take. What is left over at the end of a segment is a sixteenth at most,
/// if rows are not larger than that.
fn segments_for(config: &Config, bytes: u64) -> usize {
    let bytes = bytes + bytes / 32;
    usize::try_from(bytes.div_ceil(config.segment - config.segment / 16)).unwrap_or(usize::MAX)
}

/// About how long a run would be with these rows, those bodies included that are still in other runs.
pub(crate) fn need_of(rows: &Rows, runs: &[(u16, Shelved)]) -> u64 {
    let mut borrowed: BTreeMap<u16, u64> = BTreeMap::new();
    let mut count = 0;
    for slot in rows.filled() {
        count += 1;
        if let (_, Body::Borrowed(address)) = rows.row(slot) {
            *borrowed.entry(address.run).or_default() += 1;
        }
    }
    let average = |(place, count): (u16, u64)| {
        let run = runs.iter().find(|(other, _)| *other == place).map(|(_, shelved)| &shelved.run);
        run.map_or(0, |run| run.row_bytes() * count / u64::from(run.rows()).max(1))
    };
    let bytes = rows.living() + borrowed.into_iter().map(average).sum::<u64>();
    // Keys, groups, numbers and the index come on top.
    bytes + bytes / 16 + 64 * count
}
