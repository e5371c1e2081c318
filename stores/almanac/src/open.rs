//! Opening: the manifest, the runs it names, and what the journal says since.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Condvar, Mutex, OnceLock};
use std::time::Duration;

use punctual_core::Clock;
use punctual_core::store::Members;
use punctual_disk::Disk;
use roaring::RoaringBitmap;

use crate::blocks::Blocks;
use crate::config::Config;
use crate::error::{Damage, OpenError, is_no_room};
use crate::holdings::{ApplyError, Holdings};
use crate::journal::{Journal, Loss, Reach, Reached, Replay, SegmentFile, reach};
use crate::keeper::Keeper;
use crate::keys::Keys;
use crate::manifest::{self, Manifest};
use crate::payload::counts_after;
use crate::run::{self, Run};
use crate::shared::{Shared, Signals};
use crate::shelf::{Shelf, Shelved};

/// The file that keeps other processes out.
pub(crate) const LOCK: &str = "lock";

pub(crate) fn open(disk: Arc<dyn Disk>, config: Config, clock: Arc<dyn Clock>) -> Result<Shared, OpenError> {
    config.check().map_err(OpenError::Config)?;
    let held = hold(&*disk)?;
    let names = disk.list().map_err(OpenError::io("the directory cannot be listed"))?;
    let mut losses = Vec::new();
    let manifest = load_or_begin(&*disk, &names, &config, &mut losses)?;
    let manifest_bytes = manifest.length();
    let reach = read_reach(&*disk, &manifest, &config, &mut losses)?;

    let blocks = Blocks::new(config.blocks() as u64);
    let reached = reach.as_ref().map(Reach::noted);
    let (holdings, journal) = restore(&disk, &names, &manifest, &config, reached, &blocks, &mut losses)?;
    remove_leftovers(&*disk, &names, &manifest)?;
    let to_tell = holdings.to_tell();
    let reach = match reach {
        Some(reach) => Some(reach),
        None => begin_reach(&*disk, journal.reached())?,
    };
    Ok(Shared {
        keeper: Mutex::new(Keeper::starting_with(manifest.next_run)),
        recent_bytes: AtomicUsize::new(holdings.active.bytes()),
        disk,
        config,
        clock,
        journal: Mutex::new(journal),
        holdings: Mutex::new(holdings),
        blocks,
        // The keeper looks around at once: free segments are to be made.
        signals: Mutex::new(Signals { wake: true, stop: false }),
        bell: Condvar::new(),
        tick: Condvar::new(),
        calm: Condvar::new(),
        closing: AtomicBool::new(false),
        poison: OnceLock::new(),
        to_tell: AtomicU64::new(to_tell),
        manifest_bytes: AtomicU64::new(manifest_bytes),
        may_grow: AtomicBool::new(true),
        hardship: Mutex::default(),
        is_troubled: AtomicBool::new(false),
        has_plenty: AtomicBool::new(false),
        reach: Mutex::new(reach),
        noted_segment: AtomicU64::new(0),
        losses,
        _held: held,
    })
}

/// How far the journal is known to reach; none if the manifest is of a version that does not know, or if that is lost and
/// done without.
fn read_reach(
    disk: &dyn Disk,
    manifest: &Manifest,
    config: &Config,
    losses: &mut Vec<String>,
) -> Result<Option<Reach>, OpenError> {
    let damage = match Reach::read(disk) {
        Ok(None) if manifest.has_reach => {
            let what = "it is missing, although the manifest names one".to_owned();
            Damage { file: reach::NAME.to_owned(), offset: 0, what }
        }
        Err(OpenError::Damaged(damage)) => damage,
        read => return read,
    };
    if !config.accepts_loss {
        return Err(damage.into());
    }
    let Damage { file, what, .. } = damage;
    losses.push(format!(
        "{file}: {what}. How far the journal went is unknown: if records were lost from its end, that goes unnoticed"
    ));
    Ok(None)
}

/// Begins to note it. An almanac of an older version, or one that has lost it, goes without on a disk that has no room.
fn begin_reach(disk: &dyn Disk, reached: Reached) -> Result<Option<Reach>, OpenError> {
    match Reach::create(disk, reached).and_then(|reach| disk.sync().map(|()| reach)) {
        Ok(reach) => Ok(Some(reach)),
        Err(error) if is_no_room(&error) => {
            _ = disk.remove(reach::NAME);
            Ok(None)
        }
        Err(error) => Err(OpenError::Io { what: format!("{} cannot be written", reach::NAME), error }),
    }
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
fn load_or_begin(
    disk: &dyn Disk,
    names: &[String],
    config: &Config,
    losses: &mut Vec<String>,
) -> Result<Manifest, OpenError> {
    if let Some(manifest) = Manifest::load(disk)? {
        // A process that was killed may have left its name not yet durable; what only the manifest
        // before needs must not be written over until it is.
        disk.sync().map_err(OpenError::io("the directory cannot be synced"))?;
        return Ok(manifest);
    }
    if let Some(orphan) = names.iter().find(|name| run::number_of(name).is_some() || SegmentFile::is_one(name)) {
        let what = format!("it is missing, although there is {orphan}");
        return Err(Damage { file: manifest::NAME.to_owned(), offset: 0, what }.into());
    }
    if config.must_exist {
        let gone = OpenError::Gone { place: disk.place() };
        if !config.accepts_loss {
            return Err(gone);
        }
        losses.push(format!("{gone}. Everything in it is lost"));
    }
    let manifest = Manifest { first_segment: 1, next_run: 1, has_reach: true, ..Manifest::default() };
    let begun = Reach::create(disk, Reached::default()).and_then(|_| disk.sync());
    let begun = begun.and_then(|()| manifest.store(disk)).and_then(|()| disk.sync());
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
    config: &Config,
    reached: Option<Reached>,
    blocks: &Blocks,
    losses: &mut Vec<String>,
) -> Result<(Holdings, Journal), OpenError> {
    let mut holdings = Holdings::begin(manifest, open_runs(&**disk, manifest)?, config.telling());
    let replay = Replay::look(disk, names, manifest.first_segment)?;
    let mut counted = manifest.sequence;
    let ended = replay.run(manifest.sequence, reached, |found| {
        if !counts_after(found.payload, manifest.sequence) {
            return Ok(());
        }
        counted = found.sequence;
        holdings.apply(found.payload, blocks).map_err(|error| match error {
            ApplyError::Malformed => found.damage("the checksum is correct, but the content is not valid").into(),
            ApplyError::Astray(what) => found.damage(&what).into(),
            ApplyError::Read(error) => error.into(),
        })
    })?;
    let broken = replay.broken().iter().cloned();
    if !config.accepts_loss
        && let Some(damage) = broken.clone().chain(ended.loss.iter().map(|loss| loss.damage.clone())).next()
    {
        return Err(damage.into());
    }
    losses.extend(ended.loss.iter().map(Loss::to_string));
    // One that is broken may have been free: then nothing is lost with it.
    losses.extend(broken.map(|damage| format!("{}: {}; the file is removed", damage.file, damage.what)));
    replay.remove_unusable(&**disk)?;
    holdings.members = Members::resume(holdings.fences.clone(), holdings.entries.clone());
    let mut journal = replay.into_journal(Arc::clone(disk), config.segment, ended.last);
    // A retelling that was cut short leaves segments behind that say nothing, and the next one needs their room.
    let said = counted.max(reached.map_or(0, |reached| reached.sequence));
    if ended.last > said {
        journal.take_back(said).map_err(OpenError::io("a segment of the journal cannot be overwritten"))?;
    }
    Ok((holdings, journal))
}

fn open_runs(disk: &dyn Disk, manifest: &Manifest) -> Result<Shelf, OpenError> {
    let mut runs = Vec::with_capacity(manifest.runs.len());
    for entry in &manifest.runs {
        let run = Run::open(disk, entry.number)?;
        if (run.rows(), run.file_bytes()) != (entry.rows, entry.bytes) {
            let what = "it is not the run that the manifest names".to_owned();
            return Err(Damage { file: run::file_name(entry.number), offset: 0, what }.into());
        }
        runs.push(Shelved { run: Arc::new(run), deaths: Arc::clone(&entry.deaths) });
    }
    let by_place: Vec<(u16, &Run, &RoaringBitmap)> =
        (1..).zip(&runs).map(|(place, shelved)| (place, &*shelved.run, &*shelved.deaths)).collect();
    let keys = Keys::build(&by_place)?;
    Ok(Shelf::new(runs, keys))
}
