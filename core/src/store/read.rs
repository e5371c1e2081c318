//! What can be read from a store, and what comes back.

use super::{Key, Position, Row, ShardId, Store, StoreError, Table, Tally};
use crate::name::Name;
use crate::time::Timestamp;

/// Whether a read brings the rows' bodies along; without, they come back empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bodies {
    /// The bodies are wanted.
    With,
    /// The states are enough.
    Without,
}

/// A read in time order.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The table to read.
    pub table: Table,
    /// The first position to read.
    pub from: Position,
    /// The time to stop before; [`Timestamp::NEVER`] leaves out only rows without a time.
    pub until: Timestamp,
    /// Only rows of this topic.
    pub topic: Option<Name>,
    /// At most so many rows.
    pub limit: usize,
    /// Whether bodies are wanted.
    pub bodies: Bodies,
}

/// A read of the rows that share a group, in the order of their numbers.
#[derive(Clone, Debug)]
pub struct Find {
    /// The table to read.
    pub table: Table,
    /// The group.
    pub group: Name,
    /// The first number to read.
    pub from_seq: u64,
    /// At most so many rows.
    pub limit: usize,
    /// Whether bodies are wanted.
    pub bodies: Bodies,
}

/// A read against time order: the latest rows first. Rows without a time are left out.
#[derive(Clone, Debug)]
pub struct ScanBack {
    /// The table to read.
    pub table: Table,
    /// The position to begin before: what stands there is not read.
    pub before: Position,
    /// The earliest time to read.
    pub from: Timestamp,
    /// Only rows of this topic.
    pub topic: Option<Name>,
    /// At most so many rows.
    pub limit: usize,
    /// Whether bodies are wanted.
    pub bodies: Bodies,
}

/// A read of the rows that share a group, against the order of their numbers.
#[derive(Clone, Debug)]
pub struct FindBack {
    /// The table to read.
    pub table: Table,
    /// The group.
    pub group: Name,
    /// The number to begin before: the row that has it is not read.
    pub before_seq: u64,
    /// At most so many rows.
    pub limit: usize,
    /// Whether bodies are wanted.
    pub bodies: Bodies,
}

/// One thing to read. A store answers each with the [`Found`] of the same kind.
#[derive(Clone, Copy, Debug)]
pub enum Want<'a> {
    /// The rows under these keys, each from whichever table of `Live`, `Dead` and `History` has it: [`Found::Each`].
    Keys(&'a [Key], Bodies),
    /// The live rows at these positions: [`Found::Each`].
    Positions(&'a [Position], Bodies),
    /// The rows with these numbers, each from whichever table of `Live`, `Dead` and `History` has it: [`Found::Each`].
    Numbers(&'a [u64], Bodies),
    /// The rows of a table from a position on, in time order: [`Found::Span`].
    Scan(&'a Scan),
    /// The rows of a table before a position, against time order: [`Found::Span`].
    ScanBack(&'a ScanBack),
    /// The rows of a group, by their numbers: [`Found::Members`].
    Find(&'a Find),
    /// The rows of a group before a number, against the order of the numbers: [`Found::Members`].
    FindBack(&'a FindBack),
    /// All tallies of the shard that are not zero, in order: [`Found::Tallies`].
    Tallies,
}

/// What was read for a [`Want`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A row or nothing for each key, position or number, in their order.
    Each(Vec<Option<Row>>),
    /// A part of a table.
    Span(Page<Position>),
    /// A part of a group.
    Members(Page<u64>),
    /// Counts.
    Tallies(Vec<(Tally, i64)>),
}

/// A part of what was to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<C> {
    /// The rows; at most as many as were asked for.
    pub rows: Vec<Row>,
    /// Where to go on, as the `from` or the `before` of the next read. `None`: there is nothing after these rows.
    ///
    /// A page may be short, or empty, and not the last: a store that has looked at many rows of other topics or tables, or
    /// has come by many bytes of bodies, stops and says how far it came, so that no read takes long or much memory.
    pub next: Option<C>,
}

impl<C> Default for Page<C> {
    fn default() -> Page<C> {
        Page { rows: Vec::new(), next: None }
    }
}

const IN_KIND: &str = "a store answers each want in kind";

impl Found {
    /// A row or nothing for each that was asked for.
    pub fn each(self) -> Vec<Option<Row>> {
        let Found::Each(rows) = self else { panic!("{IN_KIND}: {self:?}") };
        rows
    }

    /// A part of a table.
    pub fn span(self) -> Page<Position> {
        let Found::Span(page) = self else { panic!("{IN_KIND}: {self:?}") };
        page
    }

    /// A part of a group.
    pub fn members(self) -> Page<u64> {
        let Found::Members(page) = self else { panic!("{IN_KIND}: {self:?}") };
        page
    }

    /// Counts.
    pub fn tallies(self) -> Vec<(Tally, i64)> {
        let Found::Tallies(tallies) = self else { panic!("{IN_KIND}: {self:?}") };
        tallies
    }
}

/// [`Store::look`] for one thing of one shard.
pub trait Look: Store {
    /// See [`Want::Keys`].
    fn get(&self, shard: ShardId, keys: &[Key], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        Ok(self.look_for(shard, Want::Keys(keys, bodies))?.each())
    }

    /// See [`Want::Positions`].
    fn fetch(&self, shard: ShardId, positions: &[Position], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        Ok(self.look_for(shard, Want::Positions(positions, bodies))?.each())
    }

    /// See [`Want::Numbers`].
    fn numbered(&self, shard: ShardId, numbers: &[u64], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        Ok(self.look_for(shard, Want::Numbers(numbers, bodies))?.each())
    }

    /// See [`Want::Scan`].
    fn scan(&self, shard: ShardId, scan: &Scan) -> Result<Page<Position>, StoreError> {
        Ok(self.look_for(shard, Want::Scan(scan))?.span())
    }

    /// See [`Want::ScanBack`].
    fn scan_back(&self, shard: ShardId, back: &ScanBack) -> Result<Page<Position>, StoreError> {
        Ok(self.look_for(shard, Want::ScanBack(back))?.span())
    }

    /// See [`Want::Find`].
    fn find(&self, shard: ShardId, find: &Find) -> Result<Page<u64>, StoreError> {
        Ok(self.look_for(shard, Want::Find(find))?.members())
    }

    /// See [`Want::FindBack`].
    fn find_back(&self, shard: ShardId, back: &FindBack) -> Result<Page<u64>, StoreError> {
        Ok(self.look_for(shard, Want::FindBack(back))?.members())
    }

    /// See [`Want::Tallies`].
    fn tallies(&self, shard: ShardId) -> Result<Vec<(Tally, i64)>, StoreError> {
        Ok(self.look_for(shard, Want::Tallies)?.tallies())
    }

    /// Reads one thing.
    fn look_for(&self, shard: ShardId, want: Want<'_>) -> Result<Found, StoreError> {
        let mut found = self.look(&[(shard, want)])?;
        Ok(found.pop().expect("a store answers each want"))
    }
}

impl<S: Store + ?Sized> Look for S {}
