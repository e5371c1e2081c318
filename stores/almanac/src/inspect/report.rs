//! What a check has found, and how it is told.

use std::fmt;

use crate::error::Damage;

/// What a check has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Where the almanac is.
    pub place: String,
    /// Whether another process had it open.
    pub in_use: bool,
    /// How many runs there are.
    pub runs: usize,
    /// How many rows they have, dead ones included.
    pub run_rows: u64,
    /// How many rows live, in runs and in the journal.
    pub living: u64,
    /// How many of these are only in the journal.
    pub recent: u64,
    /// How many segments of the journal count.
    pub segments: usize,
    /// How many records they hold.
    pub records: u64,
    /// How many shards were ever claimed.
    pub shards: usize,
    /// How many tallies there are. Whether they are right is known only to the shards.
    pub tallies: usize,
    /// How many entries of the cluster there are.
    pub entries: usize,
    /// How many bytes all files have.
    pub bytes: u64,
    /// All damage.
    pub damage: Vec<Damage>,
    /// What is worth knowing, and no damage.
    pub remarks: Vec<String>,
}

impl Report {
    /// Whether the almanac is as it was written.
    pub fn is_clean(&self) -> bool {
        self.damage.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.place)?;
        let (records, segments) = (counted(self.records, "record"), counted(self.segments as u64, "segment"));
        writeln!(f, "  runs      {}, with {}", self.runs, counted(self.run_rows, "row"))?;
        writeln!(f, "  journal   {records} in {segments}")?;
        writeln!(f, "  living    {}, {} of them only in the journal", counted(self.living, "row"), self.recent)?;
        writeln!(f, "  shards    {}, with {}", self.shards, counted(self.tallies as u64, "tally"))?;
        writeln!(f, "  cluster   {}", counted(self.entries as u64, "entry"))?;
        writeln!(f, "  bytes     {}", self.bytes)?;
        for remark in &self.remarks {
            writeln!(f, "note: {remark}")?;
        }
        if self.is_clean() {
            return writeln!(f, "clean: every checksum and every count is correct");
        }
        writeln!(f, "damage: {}", self.damage.len())?;
        for Damage { file, offset, what } in &self.damage {
            writeln!(f, "  {file}, byte {offset}: {what}")?;
        }
        writeln!(
            f,
            "What to do: stop whatever uses the directory, keep a copy of it as it is now, and restore it from a backup \
             or a replica. `punctual store show --rows {}` lists what can still be read.",
            self.place
        )
    }
}

/// So many of something: `1 row`, `2 rows`, `3 tallies`.
pub fn counted(number: u64, one: &str) -> String {
    match (number, one.strip_suffix('y')) {
        (1, _) => format!("1 {one}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {one}s"),
    }
}
