//! Opening: the manifest, the runs it names, and what the journal says since.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Condvar, Mutex, OnceLock};
use std::time::Duration;

use punctual_core::Clock;
use punctual_core::store::Ownership;
use roaring::RoaringBitmap;

use crate::almanac::{Shared, Signals};
use crate::blocks::Blocks;
use crate::config::Config;
use crate::disk::Disk;
use crate::error::{Damage, OpenError};
use crate::journal::{Journal, Replay, SegmentFile};
use crate::keeper::Desk;
use crate::keys::Keys;
use crate::manifest::{self, Manifest};
use crate::run::{self, Run};
use crate::shelf::{Shelf, Shelved};
use crate::state::{ApplyError, State};

/// The file that keeps other processes out.
pub(crate) const LOCK: &str = "lock";

pub(crate) fn open(disk: Arc<dyn Disk>, config: Config, clock: Arc<dyn Clock>) -> Result<Shared, OpenError> {
    config.check().map_err(OpenError::Config)?;
    let held = hold(&*disk)?;
    let names = disk.list().map_err(OpenError::io("the directory cannot be listed"))?;
    let manifest = load_or_begin(&*disk, &names)?;
    remove_leftovers(&*disk, &names, &manifest)?;

    let blocks = Blocks::new(config.blocks() as u64);
    let (state, journal) = restore(&disk, &names, &manifest, config.segment, &blocks)?;
    Ok(Shared {
        desk: Mutex::new(Desk::starting_with(manifest.next_run)),
        recent_bytes: AtomicUsize::new(state.active.bytes()),
        disk,
        config,
        clock,
        journal: Mutex::new(journal),
        state: Mutex::new(state),
        blocks,
        // The keeper looks around at once: free segments are to be made.
        signals: Mutex::new(Signals { wake: true, stop: false }),
        bell: Condvar::new(),
        tick: Condvar::new(),
        calm: Condvar::new(),
        closing: AtomicBool::new(false),
        poison: OnceLock::new(),
        trouble: Mutex::default(),
        is_troubled: AtomicBool::new(false),
        _held: held,
    })
}

/// Keeps other processes out. One that only looks holds the directory for a moment, so it is tried a few times.
fn hold(disk: &dyn Disk) -> Result<Box<dyn Any + Send + Sync>, OpenError> {
    let mut tries = 1..=5;
    loop {
        match disk.lock(LOCK) {
            Ok(held) => return Ok(held),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                return Err(OpenError::Io { what: format!("{} cannot be locked", disk.place()), error });
            }
            Err(_) if tries.next().is_none() => return Err(OpenError::InUse { place: disk.place() }),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// The manifest; an almanac that begins gets an empty one.
fn load_or_begin(disk: &dyn Disk, names: &[String]) -> Result<Manifest, OpenError> {
    if let Some(manifest) = Manifest::load(disk)? {
        // A process that was killed may have left its name not yet durable; what only the manifest
        // before needs must not be written over until it is.
        disk.sync().map_err(OpenError::io("the directory cannot be synced"))?;
        return Ok(manifest);
    }
    if let Some(orphan) = names.iter().find(|name| run::number_of(name).is_some() || SegmentFile::is_one(name)) {
        let what = format!("it is missing, though there is {orphan}");
        return Err(Damage { file: manifest::NAME.to_owned(), offset: 0, what }.into());
    }
    let manifest = Manifest { first_segment: 1, next_run: 1, ..Manifest::default() };
    let begun = manifest.store(disk).and_then(|()| disk.sync());
    begun.map_err(OpenError::io("the manifest cannot be written"))?;
    Ok(manifest)
}

/// Removes what an interrupted checkpoint has left behind.
fn remove_leftovers(disk: &dyn Disk, names: &[String], manifest: &Manifest) -> Result<(), OpenError> {
    let counts = |number: u64| manifest.runs.iter().any(|run| run.number == number);
    for name in names {
        if name == manifest::NEW || run::number_of(name).is_some_and(|number| !counts(number)) {
            match disk.remove(name) {
                // An almanac that is just begun has made its manifest of what an earlier attempt had left.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed.map_err(OpenError::io(format!("{name} cannot be removed")))?,
            }
        }
    }
    Ok(())
}

/// What there was when the almanac was last open.
fn restore(
    disk: &Arc<dyn Disk>,
    names: &[String],
    manifest: &Manifest,
    segment: u64,
    blocks: &Blocks,
) -> Result<(State, Journal), OpenError> {
    let mut state = State::begin(manifest, open_runs(&**disk, manifest)?);
    let replay = Replay::look(disk, names, manifest.first_segment)?;
    let last = replay.run(manifest.sequence, |found| {
        state.apply(found.payload, blocks).map_err(|error| match error {
            ApplyError::Malformed => found.damage("the checksum is right, but it cannot be understood").into(),
            ApplyError::Astray(what) => found.damage(&what).into(),
            ApplyError::Read(error) => error.into(),
        })
    })?;
    state.ownership = Ownership::resume(state.fences.clone());
    let journal = replay.into_journal(Arc::clone(disk), segment, last);
    Ok((state, journal))
}

fn open_runs(disk: &dyn Disk, manifest: &Manifest) -> Result<Shelf, OpenError> {
    let mut runs = Vec::with_capacity(manifest.runs.len());
    for entry in &manifest.runs {
        let run = Run::open(disk, entry.number)?;
        if (run.rows(), run.file_bytes()) != (entry.rows, entry.bytes) {
            let what = "it is another run than the one that the manifest names".to_owned();
            return Err(Damage { file: run::file_name(entry.number), offset: 0, what }.into());
        }
        runs.push(Shelved { run: Arc::new(run), deaths: Arc::clone(&entry.deaths) });
    }
    let by_place: Vec<(u16, &Run, &RoaringBitmap)> =
        (1..).zip(&runs).map(|(place, shelved)| (place, &*shelved.run, &*shelved.deaths)).collect();
    let keys = Keys::build(&by_place)?;
    Ok(Shelf::new(runs, keys))
}
