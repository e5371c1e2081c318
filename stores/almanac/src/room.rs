//! Room to work with: how much of the journal is kept free, so that whatever the disk has left, the almanac
//! can be opened, rows can change and go, and what is dead can give its room back.
//!
//! ```text
//! free segments:  ████ what telling all recent rows again would take, and a manifest   never taken by a commit
//!                 ██   the last ones                     taken by commits when shards have stopped what makes rows larger
//!                 ███  the reserve                       taken by commits only when no segment can be made
//!                 ██   spare                             taken by commits, refilled by the keeper
//! ```
//! **Invariant**: recent rows grow only while the first part grows with them. So a retelling (`retell.rs`) is always
//! possible, and after it the segments that the journal took are free again. What makes recent rows no larger can go on
//! for ever by that; what makes them larger (leases, mostly) has the reserve, and is told to stop before it ends
//! ([`Room::None`](punctual_core::store::Room)).

use std::collections::BTreeMap;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use punctual_core::store::{Hardship, StoreError};

use crate::config::Config;
use crate::holdings::Holdings;
use crate::journal::{Journal, SEGMENT_HEAD, SegmentFile};
use crate::lock::lock;
use crate::merge::Plan;
use crate::recent::{Body, Rows};
use crate::retell::{RECORD_HEADS, longest_record};
use crate::setback::Setback;
use crate::shared::Shared;
use crate::shelf::Shelved;
use crate::weight::Weight;

/// How many segments are kept free beside the reserve.
const SPARE: usize = 2;
/// So many bytes are plenty, if recent rows take only a small part of them.
const PLENTY: u64 = 1 << 30;
const SMALL_PART: u64 = 8;
/// How many segments are left when shards are told that recent rows may not grow: one for what is on its way, and one for
/// what makes rows fewer to begin with. Each retelling, freeze and opening begins a new one, too.
const LAST: usize = 2;

impl Shared {
    /// How many segments telling all recent rows again would take, and the manifest that goes with it.
    pub fn to_retell(&self) -> usize {
        self.to_retell_with(self.to_tell.load(Ordering::Relaxed))
    }

    /// The same if telling them took so many bytes.
    fn to_retell_with(&self, to_tell: u64) -> usize {
        segments_for(&self.config, to_tell) + self.for_manifest()
    }

    /// How many segments the next manifest takes on a disk without room: it may be a little longer than the latest.
    pub fn for_manifest(&self) -> usize {
        let bytes = self.manifest_bytes.load(Ordering::Relaxed) / 8 * 9;
        usize::try_from(bytes.div_ceil(self.config.segment)).unwrap_or(usize::MAX).max(1)
    }

    /// How many segments are free when shards are told that recent rows may not grow.
    pub fn set_aside(&self) -> usize {
        self.to_retell() + LAST
    }

    /// How many free segments commits leave alone as long as others can be made.
    pub fn kept(&self) -> usize {
        let has_plenty = self.has_plenty.load(Ordering::Relaxed) && !self.is_troubled.load(Ordering::Relaxed);
        if has_plenty { 0 } else { self.set_aside() + self.config.reserve_segments() }
    }

    /// Looks whether the disk has so much room that commits need not leave any alone.
    pub fn look_for_room(&self) {
        // A system that does not tell may have little.
        let room = self.disk.room().unwrap_or_default();
        let is_plenty = room >= PLENTY && room / SMALL_PART >= self.to_tell.load(Ordering::Relaxed);
        self.has_plenty.store(is_plenty, Ordering::Relaxed);
    }

    /// How many segments are to be free.
    pub fn wanted(&self) -> usize {
        // In hard times one more, so that they are not over and back again with each record.
        let more = 1 + usize::from(self.is_short_of_room());
        // With plenty as well, within reason: whoever else writes to the disk may fill it in a moment.
        let ordinary = (self.set_aside() + 1).min(self.ordinary());
        (self.config.reserve_segments() + SPARE).max(ordinary).max(self.kept() + more)
    }

    /// How many free segments are worth keeping: as many as the journal takes while it grows.
    pub fn worth_keeping(&self) -> usize {
        if self.is_short_of_room() {
            return self.wanted();
        }
        self.wanted().max(self.ordinary())
    }

    /// How many segments the journal takes in ordinary times.
    fn ordinary(&self) -> usize {
        let grown = usize::try_from(self.config.journal / self.config.segment).unwrap_or(usize::MAX);
        (self.config.reserve_segments() + SPARE).saturating_add(grown)
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
            .map_err(Setback::io("a segment of the journal could not be created"))?;
        lock(&self.journal).add_free(segment);
        Ok(())
    }

    /// Sees to it that there is room for what is to be merged; says whether there is enough to carry rows of
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
        Err(no_room_for_run(need, self.disk.room().unwrap_or_default()))
    }

    /// How many bytes could be written, if free segments are given up that are not needed otherwise.
    pub fn room_for_run(&self) -> u64 {
        let surplus = lock(&self.journal).free().saturating_sub(self.kept()) as u64;
        // A system that does not tell is asked by trying.
        self.disk.room().unwrap_or(u64::MAX).saturating_add(surplus * self.config.segment)
    }

    fn give_up_segments(&self, need: u64) -> bool {
        if self.room_for_run() < need {
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
        if lock(&self.journal).used() == 0 || self.has_plenty.load(Ordering::Relaxed) {
            return;
        }
        self.make_segments(1, || lock(&self.journal).free() > self.set_aside());
        self.set_may_grow(&lock(&self.journal));
    }

    /// Waits for the journal, and sees to it that what is to be written leaves enough room: segments are made for it, or a
    /// retelling gives some back. What makes recent rows larger is refused if neither helps, while everything can still be
    /// put right.
    pub fn make_way(&self, weigh: impl Fn(&Holdings) -> Weight) -> Result<MutexGuard<'_, Journal>, StoreError> {
        let journal = lock(&self.journal);
        if self.has_plenty.load(Ordering::Relaxed) && !self.is_troubled.load(Ordering::Relaxed) {
            return Ok(journal);
        }
        let weight = weigh(&lock(&self.holdings));
        if self.leaves(&journal, weight, LAST + 1) {
            return Ok(journal);
        }
        // As long as it can do without, it is to be worth it.
        let least = if self.leaves(&journal, weight, 1) { 2 } else { 1 };
        drop(journal);
        self.make_segments(least, || self.leaves(&lock(&self.journal), weight, LAST + 1));
        self.check()?;
        let journal = lock(&self.journal);
        let weight = weigh(&lock(&self.holdings));
        let passes =
            if weight.growth > 0 { self.leaves(&journal, weight, 1) } else { self.leaves(&journal, weight, 0) };
        // When it is too late for a retelling, rows that go make one possible again.
        let helps = weight.growth < 0 && self.left_after(&journal, weight) > 0;
        if passes || helps {
            return Ok(journal);
        }
        drop(journal);
        let hardship = lock(&self.hardship).clone();
        Err(StoreError::Unavailable(match hardship {
            Some(Hardship::NoRoom(why)) => format!("the journal has no room: {why}"),
            Some(Hardship::Failing(why)) => format!("the journal cannot be extended: {why}"),
            None => "the journal was full, but has room again: try again".to_owned(),
        }))
    }

    /// Makes segments until there are enough, or tells recent rows again.
    fn make_segments(&self, least: usize, is_enough: impl Fn() -> bool) {
        while !is_enough() {
            if let Err(setback) = self.add_segment() {
                self.set_hardship(setback.hardship());
                return self.retell_for_room(least);
            }
        }
    }

    /// Tells recent rows again if at least so many segments are free afterwards that are not now.
    fn retell_for_room(&self, least: usize) {
        let mut keeper = lock(&self.keeper);
        let used = lock(&self.journal).used() as u64;
        // Whether it is worth counting rows: it takes this much at least.
        let taken = lock(&self.holdings).living().div_ceil(self.config.segment);
        // If it fails, what was to be written decides by itself whether it can do without.
        if used >= taken + least as u64 && self.retell_if(&mut keeper, least).is_ok() {
            _ = self.refill();
        }
    }

    /// Whether what is to be written leaves what a retelling needs afterwards, and so many segments more.
    fn leaves(&self, journal: &Journal, weight: Weight, more: usize) -> bool {
        let to_tell = self.to_tell.load(Ordering::Relaxed).saturating_add_signed(weight.growth);
        self.left_after(journal, weight) >= self.to_retell_with(to_tell) + more
    }

    fn left_after(&self, journal: &Journal, weight: Weight) -> usize {
        journal.free().saturating_sub(usize::from(!journal.fits(weight.bytes)))
    }

    /// Says whether recent rows may still grow. That they may again is said only when there is a little more room,
    /// so that it is not said by turns.
    pub fn set_may_grow(&self, journal: &Journal) {
        if !self.is_troubled.load(Ordering::Relaxed) {
            return;
        }
        let more = if self.may_grow.load(Ordering::Relaxed) { 0 } else { self.config.segment / 4 };
        let to_tell = self.to_tell.load(Ordering::Relaxed) + more;
        let may_grow = journal.free() > self.to_retell_with(to_tell) + LAST;
        self.may_grow.store(may_grow, Ordering::Relaxed);
    }
}

/// How many segments telling rows again takes, if they weigh so much. What is left over at the end of a segment is a
/// sixteenth at most, but for large rows, and these count for more.
fn segments_for(config: &Config, bytes: u64) -> usize {
    // Two records in a row are longer than the longest may be, and each has a head.
    let heads = bytes.saturating_mul(2 * RECORD_HEADS) / longest_record(config);
    let room = config.segment - config.segment / 16 - SEGMENT_HEAD;
    usize::try_from(bytes.saturating_add(heads).div_ceil(room)).unwrap_or(usize::MAX)
}

pub(crate) fn no_room_for_run(need: u64, room: u64) -> Setback {
    Setback::NoRoom(format!("a run of {need} bytes cannot be written, because the disk has only {room} left"))
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
