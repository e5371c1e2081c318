//! Adopting: a run that was written takes the place of the frozen layer and of the runs that were
//! carried over.
//!
//! Until that one moment, the run's place on the shelf is empty and the entries of its keys are
//! passed over; after it, those of the runs that were taken down are. So readers and commits see
//! each row in exactly one place, and the long work on the key index is done in small steps.

use std::sync::{Arc, Mutex};

use roaring::RoaringBitmap;

use crate::address::Address;
use crate::error::ReadError;
use crate::holdings::Holdings;
use crate::lock::lock;
use crate::manifest::Tallies;
use crate::merge::{Merged, NONE, Plan};
use crate::recent::Frozen;
use crate::run::{KeySection, Run, STRETCHES, partition_of};
use crate::shelf::Shelved;

/// Puts the new run in its place. Gives the runs that were taken down, with their places, and
/// what is left of the frozen layer, to be dropped without a lock.
pub(crate) fn adopt(
    holdings: &Mutex<Holdings>,
    plan: &Plan,
    merged: &Merged,
    tallies: Arc<Tallies>,
) -> (Vec<(u16, Shelved)>, Option<Frozen>) {
    let place = enter_keys(holdings, merged);
    // The one moment: whoever has the lock before sees the old places, whoever has it after sees the new one.
    let mut holdings = lock(holdings);
    let frozen = holdings.frozen.take();
    let replaced = plan.runs.iter().filter(|run| merged.replaces(run));
    let retired: Vec<(u16, Shelved)> =
        replaced.filter_map(|(old, _)| Some((*old, holdings.shelf.take(*old)?))).collect();
    if let (Some(place), Some(run)) = (place, &merged.run) {
        // The run is what there was at the freeze. What has happened since to its rows is made up for here.
        let shelved = Shelved { run: Arc::clone(run), deaths: Arc::default() };
        holdings.shelf.put(place, shelved);
        carry_deaths_over(&mut holdings, plan, merged, place, frozen.as_ref(), &retired);
        lend(&mut holdings, merged, place);
    }
    holdings.tallies = tallies;
    (retired, frozen)
}

/// Takes the keys of a run that was taken down out of the index.
pub(crate) fn forget_keys(holdings: &Mutex<Holdings>, place: u16, retired: &Shelved) -> Result<(), ReadError> {
    each_key(&retired.run, |keys| {
        let mut holdings = lock(holdings);
        for (hash, ordinal) in keys {
            if !retired.deaths.contains(*ordinal) {
                holdings.shelf.keys_mut().remove(*hash, Address { run: place, ordinal: *ordinal });
            }
        }
    })?;
    lock(holdings).shelf.vacate(place);
    Ok(())
}

/// Enters the keys of the new run, while its place is still empty.
fn enter_keys(holdings: &Mutex<Holdings>, merged: &Merged) -> Option<u16> {
    merged.run.as_ref()?;
    let place = lock(holdings).shelf.reserve();
    let partitions = merged.keys.chunk_by(|(one, _), (other, _)| partition_of(*one) == partition_of(*other));
    for keys in partitions {
        lock(holdings).shelf.keys_mut().insert_partition(partition_of(keys[0].0), place, keys);
    }
    Some(place)
}

/// Rows of the new run that died while it was being written.
fn carry_deaths_over(
    holdings: &mut Holdings,
    plan: &Plan,
    merged: &Merged,
    place: u16,
    frozen: Option<&Frozen>,
    retired: &[(u16, Shelved)],
) {
    if let Some(frozen) = frozen {
        for slot in frozen.gone() {
            let ordinal = merged.ordinals[slot as usize];
            if ordinal != NONE {
                holdings.shelf.kill(plan.rows.hash(slot), Address { run: place, ordinal });
            }
        }
    }
    let mut dead = RoaringBitmap::new();
    for (old, ordinals) in &merged.carried {
        let now = retired.iter().find(|(place, _)| place == old).map(|(_, now)| &now.deaths);
        let then = plan.runs.iter().find(|(place, _)| place == old).map(|(_, then)| &then.deaths);
        if let (Some(now), Some(then)) = (now, then) {
            // What was dead at the freeze was not carried over.
            dead.extend((&**now - &**then).iter().map(|ordinal| ordinals[ordinal as usize]));
        }
    }
    // A death takes the key out of the index, too, and only this list knows the rows' hashes: one pass for all of them.
    if !dead.is_empty() {
        for (hash, ordinal) in merged.keys.iter().filter(|(_, ordinal)| dead.contains(*ordinal)) {
            holdings.shelf.kill(*hash, Address { run: place, ordinal: *ordinal });
        }
    }
}

/// Bodies that are now in the new run are borrowed from there.
fn lend(holdings: &mut Holdings, merged: &Merged, place: u16) {
    if merged.borrowed.is_empty() && merged.carried.is_empty() {
        return;
    }
    holdings.active.borrow_from(|address| {
        let carried = || {
            let (_, ordinals) = merged.carried.iter().find(|(place, _)| *place == address.run)?;
            Some(ordinals[address.ordinal as usize]).filter(|ordinal| *ordinal != NONE)
        };
        let ordinal = merged.borrowed.get(&address).copied().or_else(carried)?;
        Some(Address { run: place, ordinal })
    });
}

/// Goes through the keys of a run in portions, as far as their hashes are stored.
fn each_key(run: &Run, mut portion: impl FnMut(&[(u64, u32)])) -> Result<(), ReadError> {
    let section = run.keys()?;
    for number in 0..STRETCHES {
        let stretch = section.stretch(number)?;
        for partition in KeySection::partitions(number) {
            let hash = |fingerprint| (partition as u64) << 52 | u64::from(fingerprint) << 20;
            let keys: Vec<(u64, u32)> = stretch.partition(partition).map(|(key, at)| (hash(key), at)).collect();
            portion(&keys);
        }
    }
    Ok(())
}
