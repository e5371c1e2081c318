//! What is in an almanac: its files, and how many rows of which tables they hold.

use std::fmt;

use punctual_core::store::{Entry, Fence, ShardId, Table};
use punctual_disk::Disk;

use super::look::Look;
use super::report::counted;
use super::rows::Rows;
use crate::error::{Damage, OpenError};
pub use crate::journal::SegmentStanding;
use crate::manifest;
use crate::run;

/// What is in an almanac, as far as it can be read.
pub struct Contents {
    /// Where it is.
    pub place: String,
    /// Whether another process had it open.
    pub in_use: bool,
    /// The manifest; none if it cannot be read.
    pub manifest: Option<ManifestContents>,
    /// The runs that count; without a manifest, all that are there.
    pub runs: Vec<RunContents>,
    /// The files of the journal; those that count first, in their order.
    pub segments: Vec<SegmentContents>,
    /// The tables that have rows, in order.
    pub tables: Vec<TableContents>,
    /// The highest fence of each shard that was ever claimed.
    pub fences: Vec<(ShardId, Fence)>,
    /// How many tallies are not zero.
    pub tallies: usize,
    /// The entries of the cluster. What they say is not told: it may be secret.
    pub entries: Vec<EntryContents>,
    /// Damage that was met. Rows in runs were not read; a check does that.
    pub damage: Vec<Damage>,
    /// How many changes in the journal name rows that cannot be found, because something is lost.
    pub astray: u64,
    look: Look,
}

/// What a manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestContents {
    /// The version of its format.
    pub version: Option<u32>,
    /// All records of the journal up to this one are in the runs.
    pub sequence: u64,
    /// The number of the first segment of the journal that counts.
    pub first_segment: u64,
    /// The number of the next run.
    pub next_run: u64,
    /// How many tallies it has.
    pub tallies: usize,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunContents {
    /// Its number.
    pub number: u64,
    /// The name of its file.
    pub file: String,
    /// The version of its format.
    pub version: Option<u32>,
    /// How many rows it has.
    pub rows: u64,
    /// How many of them live, after what the journal says; none if its index cannot be read.
    pub living: Option<u64>,
    /// How long it is.
    pub bytes: u64,
}

/// A file of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentContents {
    /// The name of the file.
    pub file: String,
    /// The version of its format, if it was ever used.
    pub version: Option<u32>,
    /// Its number in the journal, if it was ever used.
    pub number: Option<u64>,
    /// How long the file is.
    pub bytes: u64,
    /// What it is good for.
    pub standing: SegmentStanding,
}

/// A table of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableContents {
    /// The shard.
    pub shard: ShardId,
    /// The table.
    pub table: Table,
    /// How many living rows are in runs.
    pub in_runs: u64,
    /// How many are only in the journal.
    pub recent: u64,
}

/// An entry of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryContents {
    /// Its key.
    pub key: String,
    /// Its revision.
    pub revision: u64,
    /// How long its value is.
    pub bytes: u64,
}

impl Contents {
    /// Reads what is in an almanac: all but the rows in its runs. An error only if it cannot be read
    /// at all: there is none, it is of a newer version, or not accessible.
    pub fn read(disk: &dyn Disk) -> Result<Contents, OpenError> {
        let mut look = Look::at(disk)?;
        let version = |file: &str, at: u64| {
            let mut bytes = [0; 4];
            let read = disk.open(file).and_then(|file| file.read_at(&mut bytes, at));
            read.ok().map(|()| u32::from_le_bytes(bytes))
        };
        let manifest = look.manifest.as_ref().map(|manifest| ManifestContents {
            version: version(manifest::NAME, 8),
            sequence: manifest.sequence,
            first_segment: manifest.first_segment,
            next_run: manifest.next_run,
            tallies: manifest.tallies.len(),
        });
        let runs = look.runs.iter().map(|seen| {
            let file = run::file_name(seen.entry.number);
            let shelved = seen.run.as_ref().and_then(|(_, place)| look.holdings.shelf.get(*place));
            RunContents {
                number: seen.entry.number,
                version: shelved.and_then(|_| version(&file, 16)),
                file,
                rows: u64::from(seen.entry.rows),
                living: shelved.map(|shelved| shelved.living()),
                bytes: seen.entry.bytes,
            }
        });
        let segments = look.journal.segments.iter().map(|segment| SegmentContents {
            file: segment.name.clone(),
            version: segment.number.and_then(|_| version(&segment.name, 8)),
            number: segment.number,
            bytes: segment.bytes,
            standing: segment.standing,
        });
        let (runs, segments) = (runs.collect(), segments.collect());
        let table = |((shard, table), count): (_, super::look::Count)| TableContents {
            shard,
            table,
            in_runs: count.in_runs,
            recent: count.recent,
        };
        let entry = |(key, entry): (&String, &Entry)| EntryContents {
            key: key.clone(),
            revision: entry.revision,
            bytes: entry.value.len() as u64,
        };
        Ok(Contents {
            place: disk.place(),
            in_use: look.in_use,
            manifest,
            runs,
            segments,
            tables: look.tables().into_iter().map(table).collect(),
            fences: look.holdings.fences.iter().map(|(shard, fence)| (*shard, *fence)).collect(),
            tallies: look.holdings.fences.keys().map(|shard| look.holdings.tallies(*shard).len()).sum(),
            entries: look.holdings.entries.iter().map(entry).collect(),
            damage: std::mem::take(&mut look.damage),
            astray: look.astray,
            look,
        })
    }

    /// All rows, table by table in time order; only those of a topic, if one is named.
    pub fn rows<'a>(&'a mut self, topic: Option<&'a str>) -> Rows<'a> {
        Rows::new(&mut self.look, topic)
    }
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}{}", self.place, if self.in_use { " (in use: the journal may be moving)" } else { "" })?;
        match &self.manifest {
            None => writeln!(f, "manifest: UNREADABLE; rows may appear twice, or be dead")?,
            Some(manifest) => writeln!(
                f,
                "manifest: format {}, sequence {}, first segment {}, next run {:x}, {}",
                Version(manifest.version),
                manifest.sequence,
                manifest.first_segment,
                manifest.next_run,
                counted(manifest.tallies as u64, "tally")
            )?,
        }
        writeln!(f, "runs: {}", self.runs.len())?;
        for run in &self.runs {
            let (rows, bytes) = (counted(run.rows, "row"), counted(run.bytes, "byte"));
            write!(f, "  {}  format {}  ", run.file, Version(run.version))?;
            match run.living {
                Some(living) => writeln!(f, "{rows}  {living} living  {bytes}")?,
                None => writeln!(f, "UNREADABLE: {rows}  {bytes}")?,
            }
        }
        writeln!(f, "journal: {}", counted(self.segments.len() as u64, "segment"))?;
        for segment in &self.segments {
            writeln!(f, "  {segment}")?;
        }
        writeln!(f, "shards: {}, {}", self.fences.len(), counted(self.tallies as u64, "tally"))?;
        for (shard, fence) in &self.fences {
            writeln!(f, "  shard {}  fence {}", shard.0, fence.0)?;
        }
        writeln!(f, "cluster: {}", counted(self.entries.len() as u64, "entry"))?;
        for EntryContents { key, revision, bytes } in &self.entries {
            writeln!(f, "  {key}  revision {revision}  {}", counted(*bytes, "byte"))?;
        }
        writeln!(f, "tables: {}", self.tables.len())?;
        for TableContents { shard, table, in_runs, recent } in &self.tables {
            let rows = counted(in_runs + recent, "row");
            writeln!(f, "  shard {}  {table:?}  {rows}, {recent} of them only in the journal", shard.0)?;
        }
        for Damage { file, offset, what } in &self.damage {
            writeln!(f, "DAMAGE: {file}, byte {offset}: {what}")?;
        }
        if self.astray > 0 {
            let what = "changes in the journal could not be applied, because something before them is lost";
            writeln!(f, "DAMAGE: {} {what}; the rows are as they were before, or missing", self.astray)?;
        }
        Ok(())
    }
}

impl fmt::Display for SegmentContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  ", self.file)?;
        if let Some(number) = self.number {
            write!(f, "format {}  number {number}  ", Version(self.version))?;
        }
        match self.standing {
            SegmentStanding::Live { first, records, end } => {
                let records = counted(records, "record");
                write!(f, "live: {records} from sequence {first}, up to byte {end} of {}", self.bytes)
            }
            SegmentStanding::Free => write!(f, "free: {}", counted(self.bytes, "byte")),
            SegmentStanding::Blank => write!(f, "blank: {}", counted(self.bytes, "byte")),
            SegmentStanding::Unreadable => write!(f, "UNREADABLE: {}", counted(self.bytes, "byte")),
        }
    }
}

/// A format's version, if it can be read.
struct Version(Option<u32>);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(version) => write!(f, "{version}"),
            None => f.write_str("?"),
        }
    }
}
