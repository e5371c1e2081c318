//! All that can be known of an almanac's files without reading the rows in its runs: the manifest,
//! the runs' indexes, and what the journal says since.
//!
//! It goes on wherever opening would stop. While something is lost, changes in the journal may name
//! rows that are lost too; then they are counted, and are no damage of their own.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use punctual_core::store::{ShardId, Table};
use punctual_disk::Disk;
use roaring::RoaringBitmap;

use super::follow::follow;
use crate::blocks::Blocks;
use crate::error::{Damage, OpenError, ReadError};
use crate::holdings::Holdings;
use crate::journal::{Inspected, Reach, Reached, SegmentFile, inspect, reach, unreadable};
use crate::keys::Keys;
use crate::manifest::{self, Manifest, RunEntry};
use crate::open::LOCK;
use crate::payload::counts_after;
use crate::recent::{Frozen, Recent};
use crate::retell::Telling;
use crate::run::{self, Run};
use crate::shelf::{Shelf, Shelved};

/// How often an almanac that is in use is looked at anew because it changed meanwhile.
const ATTEMPTS: usize = 20;
/// How often it is looked at anew because of damage.
const SURE: usize = 4;
/// How much memory blocks of runs may take that are needed to follow the journal.
const BLOCKS: u64 = 32 << 20;

pub(super) struct Look {
    /// Whether another process has the almanac open, and the journal may be growing.
    pub in_use: bool,
    /// Whether it changed so fast that what was found does not fit together.
    pub is_blurred: bool,
    /// The manifest; none if it is missing or cannot be read.
    pub manifest: Option<Manifest>,
    /// The runs that it names; without a manifest, all that are there.
    pub runs: Vec<SeenRun>,
    pub journal: Inspected,
    /// The rows as they are after all of the journal that can be read.
    pub holdings: Holdings,
    pub blocks: Blocks,
    pub damage: Vec<Damage>,
    /// How many changes name rows that could not be found because something is lost.
    pub astray: u64,
    /// Files that do not belong to the almanac, or not any more.
    pub leftovers: Vec<String>,
    pub strangers: Vec<String>,
    /// How many bytes all of its files have.
    pub bytes: u64,
}

/// A run that counts.
pub(super) struct SeenRun {
    pub entry: RunEntry,
    /// The run, if its index can be read, and its place on the shelf.
    pub run: Option<(Arc<Run>, u16)>,
}

/// How many rows a table has.
#[derive(Clone, Copy, Default)]
pub(super) struct Count {
    pub in_runs: u64,
    pub recent: u64,
}

impl Look {
    /// Looks at an almanac. One that is in use is looked at again until it stood still meanwhile.
    pub fn at(disk: &dyn Disk) -> Result<Look, OpenError> {
        for attempt in 1.. {
            let mut look = Look::once(disk)?;
            look.in_use |= is_in_use(disk);
            look.is_blurred = look.in_use && !look.stands(disk);
            // Damage may be a moment's view of what is being written; what is found again and again is real.
            let is_sure = !look.is_blurred && (look.damage.is_empty() || attempt >= SURE);
            if !look.in_use || is_sure || attempt == ATTEMPTS {
                return Ok(look);
            }
            thread::sleep(Duration::from_millis(20));
        }
        unreachable!("the last attempt counts")
    }

    /// How many rows each table has, in order.
    pub fn tables(&mut self) -> BTreeMap<(ShardId, Table), Count> {
        let mut tables: BTreeMap<(ShardId, Table), Count> = BTreeMap::new();
        for (_, shelved) in self.holdings.shelf.runs() {
            for block in 0..shelved.run.blocks() {
                let ordinals = shelved.run.ordinals(block);
                let living = ordinals.len() as u64 - shelved.deaths.range_cardinality(ordinals);
                if living > 0 {
                    tables.entry(shelved.run.place(block)).or_default().in_runs += living;
                }
            }
        }
        if let Some(frozen) = &mut self.holdings.frozen {
            for (shard, table) in frozen.tables() {
                let rows =
                    (0..frozen.leaves(shard, table)).map(|leaf| frozen.leaf(shard, table, leaf).len()).sum::<usize>();
                if rows > 0 {
                    tables.entry((shard, table)).or_default().recent += rows as u64;
                }
            }
        }
        tables
    }

    /// Whether the manifest is still the one that was read.
    pub fn stands(&self, disk: &dyn Disk) -> bool {
        matches!(Manifest::load(disk), Ok(now) if now == self.manifest)
    }

    fn once(disk: &dyn Disk) -> Result<Look, OpenError> {
        let in_use = is_in_use(disk);
        let names = disk.list().map_err(OpenError::io(format!("{} cannot be listed", disk.place())))?;
        let mut damage = Vec::new();
        let manifest = load_manifest(disk, &names, &mut damage)?;
        if let Some(manifest) = &manifest
            && manifest.runs.iter().any(|run| run.number >= manifest.next_run)
        {
            let what = "it would give the next run a number that is already in use".to_owned();
            damage.push(Damage { file: manifest::NAME.to_owned(), offset: 40, what });
        }
        let runs = match &manifest {
            Some(manifest) => open_runs(disk, &manifest.runs, &mut damage)?,
            None => open_runs(disk, &entries_of(disk, &names), &mut damage)?,
        };
        let shelf = shelve(&runs, &mut damage)?;
        let mut look = Look {
            in_use,
            is_blurred: false,
            runs,
            journal: Inspected::default(),
            holdings: Holdings::begin(manifest.as_ref().unwrap_or(&Manifest::default()), shelf, Telling::default()),
            manifest,
            blocks: Blocks::new(BLOCKS),
            damage,
            astray: 0,
            leftovers: Vec::new(),
            strangers: Vec::new(),
            bytes: 0,
        };
        look.read_journal(disk, &names)?;
        look.sort_files(disk, names);
        Ok(look)
    }

    fn read_journal(&mut self, disk: &dyn Disk, names: &[String]) -> Result<(), OpenError> {
        let start = self.manifest.as_ref().map(|manifest| (manifest.sequence, manifest.first_segment));
        let reached = self.read_reach(disk)?;
        let Look { holdings, blocks, damage, astray, .. } = self;
        let mut journal = inspect(disk, names, start, reached, |found, lost| {
            if start.is_some_and(|(sequence, _)| !counts_after(found.payload, sequence)) {
                return;
            }
            let lost = lost || !damage.is_empty();
            let mut wrong = Vec::new();
            let followed = follow(holdings, found.payload, blocks, |what| wrong.push(what));
            if followed.is_err() {
                damage.push(found.damage("the checksum is correct, but the content is not valid"));
            } else if lost {
                *astray += wrong.len() as u64;
            } else {
                damage.extend(wrong.iter().map(|what| found.damage(what)));
            }
        })?;
        if let Some(newer) = journal.newer.take() {
            return Err(newer);
        }
        damage.append(&mut journal.damage);
        self.journal = journal;
        // Nothing changes any more, and a frozen layer can be gone through table by table.
        self.holdings.frozen =
            Some(Frozen::new(std::mem::replace(&mut self.holdings.active, Recent::new(Telling::default()))));
        Ok(())
    }

    /// How far the journal is known to reach.
    fn read_reach(&mut self, disk: &dyn Disk) -> Result<Option<Reached>, OpenError> {
        match Reach::read(disk) {
            Ok(Some(reach)) => return Ok(Some(reach.noted()).filter(|_| self.manifest.is_some())),
            Ok(None) if self.manifest.as_ref().is_some_and(|manifest| manifest.has_reach) => {
                let what = "it is missing, although the manifest names one".to_owned();
                self.damage.push(Damage { file: reach::NAME.to_owned(), offset: 0, what });
            }
            Ok(None) => {}
            Err(OpenError::Damaged(found)) => self.damage.push(found),
            Err(OpenError::Io { error, .. }) => self.damage.push(unreadable(reach::NAME, 0, error)?),
            Err(error) => return Err(error),
        }
        Ok(None)
    }

    /// Sorts out the files that belong to nobody.
    fn sort_files(&mut self, disk: &dyn Disk, names: Vec<String>) {
        for name in names {
            let length = disk.open(&name).and_then(|file| file.len()).unwrap_or_default();
            self.bytes += length;
            let counts = |number: u64| self.runs.iter().any(|seen| seen.entry.number == number);
            match run::number_of(&name) {
                Some(number) if counts(number) => {}
                Some(_) => self.leftovers.push(name),
                None if name == manifest::NEW => self.leftovers.push(name),
                None if [manifest::NAME, reach::NAME, LOCK].contains(&name.as_str()) || SegmentFile::is_one(&name) => {}
                None => self.strangers.push(name),
            }
        }
    }
}

/// Whether another process has the almanac open. It is not held here longer than it takes to know,
/// so that nobody who looks keeps a node from starting.
fn is_in_use(disk: &dyn Disk) -> bool {
    disk.lock(LOCK).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

fn load_manifest(disk: &dyn Disk, names: &[String], damage: &mut Vec<Damage>) -> Result<Option<Manifest>, OpenError> {
    match Manifest::load(disk) {
        Ok(Some(manifest)) => return Ok(Some(manifest)),
        Ok(None) => {
            let belongs = |name: &&String| run::number_of(name).is_some() || SegmentFile::is_one(name);
            let Some(other) = names.iter().find(belongs) else {
                return Err(OpenError::Io {
                    what: format!("{} contains no almanac", disk.place()),
                    error: io::Error::new(io::ErrorKind::NotFound, "it has no manifest, run or journal"),
                });
            };
            let what = format!("it is missing, although there is {other}");
            damage.push(Damage { file: manifest::NAME.to_owned(), offset: 0, what });
        }
        Err(OpenError::Damaged(found)) => damage.push(found),
        Err(OpenError::Io { error, .. }) => damage.push(unreadable(manifest::NAME, 0, error)?),
        Err(error) => return Err(error),
    }
    Ok(None)
}

/// The runs that are there, as a manifest would name them. Which rows are dead is not known.
fn entries_of(disk: &dyn Disk, names: &[String]) -> Vec<RunEntry> {
    let entry = |number| {
        let run = Run::open(disk, number).ok();
        let (rows, bytes) = run.map_or((0, 0), |run| (run.rows(), run.file_bytes()));
        RunEntry { number, rows, bytes, deaths: Arc::default() }
    };
    names.iter().filter_map(|name| run::number_of(name)).map(entry).collect()
}

fn open_runs(disk: &dyn Disk, entries: &[RunEntry], damage: &mut Vec<Damage>) -> Result<Vec<SeenRun>, OpenError> {
    let mut runs: Vec<SeenRun> = Vec::with_capacity(entries.len());
    let mut place = 0;
    for entry in entries {
        let name = run::file_name(entry.number);
        let mut wrong = |offset, what: &str| damage.push(Damage { file: name.clone(), offset, what: what.to_owned() });
        let mut opened = None;
        match Run::open(disk, entry.number) {
            Ok(run) if (run.rows(), run.file_bytes()) != (entry.rows, entry.bytes) => {
                wrong(0, "it is not the run that the manifest names");
            }
            Ok(_) if entry.deaths.max().is_some_and(|last| last >= entry.rows) => {
                wrong(0, "the manifest lists dead rows that it does not contain");
            }
            Ok(_) if runs.iter().any(|other| other.entry.number == entry.number) => {
                wrong(0, "the manifest names it twice");
            }
            Ok(run) => {
                place += 1;
                opened = Some((Arc::new(run), place));
            }
            Err(OpenError::Damaged(found)) => damage.push(found),
            Err(OpenError::Io { error, .. }) => damage.push(unreadable(&name, 0, error)?),
            Err(error) => return Err(error),
        }
        runs.push(SeenRun { entry: entry.clone(), run: opened });
    }
    Ok(runs)
}

/// Puts the runs on a shelf. A run whose keys cannot be read stands there without them: what the
/// journal says of its rows will go astray.
fn shelve(runs: &[SeenRun], damage: &mut Vec<Damage>) -> Result<Shelf, OpenError> {
    let opened = || runs.iter().filter_map(|seen| Some((seen.run.as_ref()?, &seen.entry.deaths)));
    let mut sources: Vec<(u16, &Run, &RoaringBitmap)> =
        opened().map(|((run, place), deaths)| (*place, &**run, &**deaths)).collect();
    let keys = match Keys::build(&sources) {
        Ok(keys) => keys,
        Err(_) => {
            let mut readable = Vec::new();
            for source in sources {
                match Keys::build(&[source]) {
                    Ok(_) => readable.push(source),
                    Err(ReadError::Damaged(found)) => damage.push(found),
                    Err(ReadError::Io { file, error }) => damage.push(unreadable(&file, 0, error)?),
                }
            }
            sources = readable;
            Keys::build(&sources)?
        }
    };
    let shelved = opened().map(|((run, _), deaths)| Shelved { run: Arc::clone(run), deaths: Arc::clone(deaths) });
    Ok(Shelf::new(shelved.collect(), keys))
}
