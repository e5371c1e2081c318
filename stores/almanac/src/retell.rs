//! Retelling: what recent rows are, written once more into free segments of the journal, so that all that came
//! before it is not needed any more. Nothing of the size of a run is written, and no room is taken that was not set
//! aside: this is how the journal is used again, and dead runs go, on a disk that is full.
//!
//! ```text
//! before:  manifest ─► runs, deaths of then   ─► journal: all that happened since
//! after:   manifest ─► runs, deaths of now    ─► journal: the recent rows that live, then what happens next
//! ```
//! A row whose body is still in a run is told as an update of the row there, so that row counts as living for the
//! manifest. Commits wait meanwhile. A crash before the manifest is replaced leaves a retelling that no manifest asks
//! for; it is passed over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use punctual_core::store::{Position, ShardId, StoreError, Table};
use roaring::RoaringBitmap;

use crate::address::Address;
use crate::config::Config;
use crate::holdings::Holdings;
use crate::journal::{Journal, SEGMENT_HEAD};
use crate::keeper::Keeper;
use crate::lock::lock;
use crate::manifest::Manifest;
use crate::payload::{write_changes, write_insert, write_retelling, write_update};
use crate::recent::{Body, Rows, SlotId};
use crate::setback::Setback;
use crate::shared::Shared;
use crate::shelf::Shelved;

/// The longest record of a retelling, unless one row is longer: a sixteenth of a segment, but not more than this.
const RECORD: u64 = 256 << 10;
/// What a record has beside its rows, at most.
pub(crate) const RECORD_HEADS: u64 = 56;
/// What a row has in a record beside its stored form, at most: what kind of change it is, and where it stood.
pub(crate) const CHANGE_HEAD: u64 = 10;

pub(crate) fn longest_record(config: &Config) -> u64 {
    RECORD.min(config.segment / 16)
}

impl Shared {
    /// Whether a retelling would give room back: a run that is all dead, enough dead rows, or segments.
    pub fn is_worth_retelling(&self, keeper: &Keeper) -> bool {
        let runs = {
            let holdings = lock(&self.holdings);
            without_lenders(holdings.shelf.as_it_is(), borrowed(&holdings))
        };
        let has_idle = runs.iter().any(|(_, shelved)| shelved.living() == 0);
        let has_died = dead_bytes(&runs) >= keeper.dead_bytes + self.config.segment / 4;
        let journal = lock(&self.journal);
        // Telling it again takes as much as lives, so the journal must hold more than that; much more, unless there is
        // hardly anything left. A layer that no run can be written of is among it, with all that is gone from it.
        let (bytes, to_tell) = (journal.bytes(), self.to_tell.load(Ordering::Relaxed));
        let is_last = journal.free() <= self.set_aside() + self.config.reserve_segments() / 2;
        let frees =
            bytes >= 2 * to_tell + self.config.segment || (is_last && bytes >= to_tell + self.config.segment / 2);
        has_idle || has_died || frees
    }

    /// Tells all recent rows again and gives back what is not needed any more.
    pub fn retell(&self, keeper: &mut Keeper) -> Result<(), Setback> {
        self.retell_if(keeper, 0)
    }

    /// The same, if at least so many segments are free afterwards that are not now.
    pub fn retell_if(&self, keeper: &mut Keeper, least: usize) -> Result<(), Setback> {
        let mut journal = lock(&self.journal);
        self.check()?;
        // A frozen layer would have to stay as it is, and its rows are among those to be told.
        self.abandon_checkpoint(keeper);
        let (rows, runs, fences, entries, tallies) = {
            let mut holdings = lock(&self.holdings);
            holdings.thaw();
            self.recent_bytes.store(holdings.active.bytes(), Ordering::Relaxed);
            let runs = holdings.shelf.as_it_is();
            let fences = holdings.fences.iter().map(|(shard, fence)| (*shard, *fence)).collect();
            let entries = holdings.entries.clone().into_iter().collect();
            (Arc::clone(holdings.active.rows()), runs, fences, entries, Arc::clone(&holdings.tallies))
        };
        let slots = in_order(&rows);
        let taken = segments_taken(&rows, &slots, &self.config);
        // It is known before the first byte whether it will fit: one that is cut short by a full disk has only cost room.
        if journal.free() < taken + self.for_manifest() || journal.used() < taken + least {
            return Err(Setback::NoRoom("too few segments of the journal are free, or can be freed".to_owned()));
        }
        journal.close().map_err(|error| self.append_failed(error))?;
        let (sequence, first_segment) = (journal.written(), journal.number() + 1);
        let runs = without_lenders(runs, borrowed_by(&rows, |_| true));
        let told = Teller { shared: self, journal: &mut journal, sequence }.tell(&rows, &slots, &runs);
        let tallies = rows.added_to(&tallies);
        // Nobody else may hold the rows when the next commit comes.
        drop(rows);
        if let Err(setback) = told {
            self.take_back(&mut journal, sequence)?;
            return Err(setback);
        }
        // The manifest will say that nothing before counts, so what takes its place must be on disk first.
        journal.sync().map_err(|error| self.poison(format!("the journal could not be synced: {error}")))?;
        let (idle, runs): (Vec<_>, Vec<_>) = runs.into_iter().partition(|(_, shelved)| shelved.living() == 0);
        let manifest = Manifest {
            sequence,
            first_segment,
            next_run: keeper.next_run,
            runs: runs.iter().map(|(_, shelved)| shelved.entry()).collect(),
            fences,
            tallies: Arc::new(tallies),
            entries,
            has_reach: self.has_reach(),
        };
        if let Err(setback) = self.replace_manifest(&manifest, || journal.give_up_free()) {
            // Only if it is certain that no manifest asks for it.
            if Manifest::load(&*self.disk).is_ok_and(|old| old.is_some_and(|old| old.first_segment < first_segment)) {
                self.take_back(&mut journal, sequence)?;
            }
            return Err(setback);
        }
        // From this manifest on, all recent rows are in these segments alone. Before it, they could be taken back.
        self.note_reach(journal.reached());
        let surplus = journal.release(first_segment, self.worth_keeping());
        drop(journal);
        self.remove_segments(surplus);
        let retired: Vec<(u16, Shelved)> = {
            let mut holdings = lock(&self.holdings);
            idle.iter().filter_map(|(place, _)| Some((*place, holdings.shelf.take(*place)?))).collect()
        };
        self.retire(&retired);
        keeper.give_back(runs, &retired);
        Ok(())
    }
}

impl Shared {
    /// A retelling came to nothing: its segments are free again, for the next one needs as many.
    fn take_back(&self, journal: &mut Journal, sequence: u64) -> Result<(), Setback> {
        self.check()?;
        let taken = journal.take_back(sequence);
        taken.map_err(|error| Setback::Store(self.poison(format!("the journal could not be written: {error}"))))
    }

    /// After a loss: how far the journal reaches from now on.
    pub fn forget_lost(&self) {
        let reached = lock(&self.journal).reached();
        if let Some(reach) = lock(&self.reach).as_mut() {
            // If it cannot be written, the loss is told again at the next opening.
            _ = reach.begin_anew(reached);
        }
    }
}

/// How many bytes of the journal telling a row again takes at most.
#[derive(Clone, Copy, Default)]
pub(crate) struct Telling {
    /// A longer row may leave as much of a segment unused as it is long, because it does not fit there any more.
    pub large: u64,
}

impl Telling {
    /// What a row takes that is so long in its stored form.
    pub fn of(self, bytes: u64) -> u64 {
        let told = bytes + CHANGE_HEAD;
        if bytes > self.large { 2 * told } else { told }
    }
}

/// A row to tell again: its shard, the row that lends its body, and where it is.
type ToTell = (ShardId, Option<Address>, SlotId);

/// All rows, in the order in which they are told.
fn in_order(rows: &Rows) -> Vec<ToTell> {
    let lender = |slot| match rows.row(slot).1 {
        Body::Here => None,
        Body::Borrowed(address) => Some(address),
    };
    let mut slots: Vec<ToTell> = rows.filled().map(|slot| (rows.shard(slot), lender(slot), slot)).collect();
    // Those that borrow from the same block come together, so that it is read once.
    slots.sort_unstable_by_key(|(shard, lender, slot)| (*shard, lender.map(|at| (at.run, at.ordinal)), *slot));
    slots
}

/// The rows of each record, all of one shard.
fn records<'a>(rows: &Rows, slots: &'a [ToTell], config: &Config) -> impl Iterator<Item = &'a [ToTell]> {
    let longest = longest_record(config);
    let mut rest = slots;
    std::iter::from_fn(move || {
        let shard = rest.first()?.0;
        let mut bytes = 0;
        let fits = |(of, _, slot): &&ToTell| {
            bytes += rows.row(*slot).0.bytes().len() as u64;
            *of == shard && bytes <= longest
        };
        let record;
        // One row is told in any case.
        (record, rest) = rest.split_at(rest.iter().take_while(fits).count().max(1));
        Some(record)
    })
}

/// How many segments telling these rows takes.
fn segments_taken(rows: &Rows, slots: &[ToTell], config: &Config) -> usize {
    let (mut segments, mut left) = (0, 0);
    for record in records(rows, slots, config) {
        let bytes: u64 = record.iter().map(|(_, _, slot)| rows.row(*slot).0.bytes().len() as u64 + CHANGE_HEAD).sum();
        let bytes = bytes + RECORD_HEADS;
        if bytes > left {
            // One that is longer than a segment takes the room of several.
            let taken = (bytes + SEGMENT_HEAD).div_ceil(config.segment);
            segments += taken as usize;
            left = (taken * config.segment).saturating_sub(SEGMENT_HEAD);
        }
        left = left.saturating_sub(bytes);
    }
    segments
}

/// Writes a retelling.
struct Teller<'a> {
    shared: &'a Shared,
    journal: &'a mut Journal,
    /// All records up to this one are told again.
    sequence: u64,
}

impl Teller<'_> {
    fn tell(&mut self, rows: &Rows, slots: &[ToTell], runs: &[(u16, Shelved)]) -> Result<(), Setback> {
        let mut changes = Vec::new();
        for record in records(rows, slots, &self.shared.config) {
            for (_, lender, slot) in record {
                let (row, _) = rows.row(*slot);
                match lender {
                    None => write_insert(row, &mut changes),
                    Some(address) => write_update(row, self.stood_at(*address, runs)?, &mut changes),
                }
            }
            self.record(record[0].0, record.len() as u32, &changes)?;
            changes.clear();
        }
        Ok(())
    }

    fn record(&mut self, shard: ShardId, count: u32, changes: &[u8]) -> Result<(), Setback> {
        let sequence = self.sequence;
        let appended = self.journal.append(0, |to| {
            write_retelling(sequence, to);
            write_changes(shard, count, changes, to);
        });
        appended.map_err(|error| Setback::Store(self.shared.append_failed(error)))
    }

    /// Where the row stands that lends its body.
    fn stood_at(&self, address: Address, runs: &[(u16, Shelved)]) -> Result<(Table, Position), Setback> {
        let lender = runs.iter().find(|(place, _)| *place == address.run).map(|(_, lender)| lender);
        let lender = lender.expect("a run stays on the shelf while a body is borrowed from it");
        let loaded = self.shared.blocks.load_row(&lender.run, address.ordinal).map_err(StoreError::from);
        let (block, index) = loaded.map_err(Setback::Store)?;
        let row = block.row(index);
        Ok((row.table(), row.position()))
    }
}

/// The rows of runs whose bodies are borrowed, by the places of the runs.
type Borrowed = BTreeMap<u16, RoaringBitmap>;

fn borrowed(holdings: &Holdings) -> Borrowed {
    let mut borrowed = borrowed_by(holdings.active.rows(), |_| true);
    if let Some(frozen) = &holdings.frozen {
        for (place, lent) in borrowed_by(frozen.layer().rows(), |slot| !frozen.gone().contains(slot)) {
            *borrowed.entry(place).or_default() |= lent;
        }
    }
    borrowed
}

fn borrowed_by(rows: &Rows, is_there: impl Fn(SlotId) -> bool) -> Borrowed {
    let mut borrowed = Borrowed::new();
    for slot in rows.filled().filter(|slot| is_there(*slot)) {
        if let Body::Borrowed(address) = rows.row(slot).1 {
            borrowed.entry(address.run).or_default().insert(address.ordinal);
        }
    }
    borrowed
}

/// The runs as a manifest is to know them: rows whose bodies are borrowed live, until what has become of them is in
/// a run of its own.
fn without_lenders(mut runs: Vec<(u16, Shelved)>, borrowed: Borrowed) -> Vec<(u16, Shelved)> {
    for (place, shelved) in &mut runs {
        if let Some(lent) = borrowed.get(place) {
            shelved.deaths = Arc::new(&*shelved.deaths - lent);
        }
    }
    runs
}

/// About how many bytes of rows in these runs are dead.
pub(crate) fn dead_bytes(runs: &[(u16, Shelved)]) -> u64 {
    let dead =
        |shelved: &Shelved| shelved.run.row_bytes() * shelved.deaths.len() / u64::from(shelved.run.rows()).max(1);
    runs.iter().map(|(_, shelved)| dead(shelved)).sum()
}
