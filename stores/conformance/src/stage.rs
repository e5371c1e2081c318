//! What the checks stand on: a fresh store with one shard claimed, short words for common rows and
//! changes, and comparisons that say what differed.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::sync::Arc;

use bytes::Bytes;
use punctual_core::store::{
    Batch, Bodies, Change, Claim, Fence, Fenced, Find, FindBack, Key, Position, Row, Scan, ScanBack, ShardId, Store,
    StoreError, Table, Tally,
};
use punctual_core::{Millis, Name, Timestamp};

use crate::Subject;

/// The shard on which a check works unless it needs several.
pub(crate) const SHARD: ShardId = ShardId(7);

/// A lease that does not end while a check runs.
pub(crate) const LONG: Millis = Millis::from_hours(1);

/// What differed from the fact.
pub(crate) struct Difference(pub(crate) String);

/// Whether a fact holds.
pub(crate) type Outcome = Result<(), Difference>;

impl From<StoreError> for Difference {
    fn from(error: StoreError) -> Difference {
        Difference(format!("the store failed: {error:?}"))
    }
}

/// A fresh store on which this check is the owner of [`SHARD`] and of all shards it asks for.
pub(crate) struct Stage<'a> {
    pub(crate) subject: &'a dyn Subject,
    store: Option<Arc<dyn Store>>,
    fences: BTreeMap<ShardId, Fence>,
    reopening: bool,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(subject: &'a dyn Subject, reopening: bool) -> Result<Stage<'a>, Difference> {
        let mut stage = Stage { subject, store: Some(subject.fresh()), fences: BTreeMap::new(), reopening };
        stage.own(SHARD)?;
        Ok(stage)
    }

    /// Begins again with a fresh store.
    pub(crate) fn begin_anew(&mut self) -> Outcome {
        *self = Stage::new(self.subject, self.reopening)?;
        Ok(())
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        self.store.as_ref().expect("the store is away only while it is reopened")
    }

    /// The name under which the check owns its shards.
    pub(crate) fn node() -> Name {
        name("node-1")
    }

    /// Claims a shard for the check, again if it has it.
    pub(crate) fn own(&mut self, shard: ShardId) -> Result<Fence, Difference> {
        let fence = granted(self.store().claim(shard, &Stage::node(), LONG)?)?;
        self.fences.insert(shard, fence);
        Ok(fence)
    }

    pub(crate) fn fence(&self, shard: ShardId) -> Fence {
        self.fences[&shard]
    }

    /// Ends the store and opens it anew; the check owns its shards again.
    pub(crate) fn reopen(&mut self) -> Outcome {
        let store = self.store.take().expect("the store is away only while it is reopened");
        self.store = Some(self.subject.reopen(store));
        let shards: Vec<ShardId> = self.fences.keys().copied().collect();
        shards.into_iter().try_for_each(|shard| self.own(shard).map(|_| ()))
    }

    /// The changes as a batch of a shard that the check owns.
    pub(crate) fn batch(&self, shard: ShardId, changes: Vec<Change>) -> Batch {
        Batch { shard, fence: self.fence(shard), changes, tallies: Vec::new() }
    }

    /// Commits changes to [`SHARD`].
    pub(crate) fn commit(&mut self, changes: Vec<Change>) -> Outcome {
        let batch = self.batch(SHARD, changes);
        self.commit_all(vec![batch])
    }

    /// Commits tallies of [`SHARD`].
    pub(crate) fn count(&mut self, tallies: Vec<(Tally, i64)>) -> Outcome {
        let batch = Batch { tallies, ..self.batch(SHARD, Vec::new()) };
        self.commit_all(vec![batch])
    }

    /// Commits batches of which none is to be refused.
    pub(crate) fn commit_all(&mut self, batches: Vec<Batch>) -> Outcome {
        let granted = vec![Ok(()); batches.len()];
        let answers = self.try_commit(batches)?;
        same("the answers to a commit", answers, granted)
    }

    /// Commits batches and gives the answers.
    pub(crate) fn try_commit(&mut self, batches: Vec<Batch>) -> Result<Vec<Result<(), Fenced>>, Difference> {
        let answers = self.store().commit(batches)?;
        if self.reopening {
            self.reopen()?;
        }
        Ok(answers)
    }

    pub(crate) fn get(&self, key: &Key) -> Result<Option<Row>, Difference> {
        let mut rows = self.store().get(SHARD, std::slice::from_ref(key), Bodies::With)?;
        same("the number of answers to a get", rows.len(), 1)?;
        Ok(rows.remove(0))
    }

    pub(crate) fn fetch(&self, position: Position) -> Result<Option<Row>, Difference> {
        let mut rows = self.store().fetch(SHARD, &[position], Bodies::With)?;
        same("the number of answers to a fetch", rows.len(), 1)?;
        Ok(rows.remove(0))
    }

    pub(crate) fn scan(&self, scan: &Scan) -> Result<Vec<Row>, Difference> {
        Ok(self.store().scan(SHARD, scan)?)
    }

    pub(crate) fn find(&self, find: &Find) -> Result<Vec<Row>, Difference> {
        Ok(self.store().find(SHARD, find)?)
    }

    pub(crate) fn scan_back(&self, back: &ScanBack) -> Result<Vec<Row>, Difference> {
        Ok(self.store().scan_back(SHARD, back)?)
    }

    pub(crate) fn find_back(&self, back: &FindBack) -> Result<Vec<Row>, Difference> {
        Ok(self.store().find_back(SHARD, back)?)
    }

    pub(crate) fn tallies(&self) -> Result<Vec<(Tally, i64)>, Difference> {
        Ok(self.store().tallies(SHARD)?)
    }

    /// Compares all that the tables of [`SHARD`] have, but for rows without a time.
    pub(crate) fn expect_rows(&self, expected: &[Row]) -> Outcome {
        for table in Table::ALL {
            let mut here: Vec<Row> = expected.iter().filter(|row| row.table == table).cloned().collect();
            here.sort_by_key(Row::position);
            same_rows(format_args!("all rows of {table:?}"), &self.scan(&whole(table))?, &here)?;
        }
        Ok(())
    }
}

/// A scan of a whole table, with bodies.
pub(crate) fn whole(table: Table) -> Scan {
    let (from, until) = (Position::START, Timestamp::NEVER);
    Scan { table, from, until, topic: None, limit: 100_000, bodies: Bodies::With }
}

/// A find of a whole group, with bodies.
pub(crate) fn members(table: Table, group: &str) -> Find {
    Find { table, group: name(group), from_seq: 0, limit: 100_000, bodies: Bodies::With }
}

/// A row with a state and a body of its own.
pub(crate) fn row(table: Table, id: &str, seq: u64, millis: u64) -> Row {
    Row {
        table,
        key: Key::new("orders", id, ""),
        seq,
        at: at(millis),
        group: None,
        state: Bytes::from(format!("state of {id}")),
        body: Bytes::from(format!("body of {id}")),
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("the suite uses good names")
}

pub(crate) fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(crate) fn insert(row: &Row) -> Change {
    Change::Insert { row: row.clone(), replaces: None }
}

pub(crate) fn remove(row: &Row) -> Change {
    Change::Remove { place: row.place() }
}

/// The change by which a row becomes another, and of which only table, time and state may differ.
pub(crate) fn update(from: &Row, to: &Row) -> Change {
    Change::Update { place: from.place(), table: to.table, at: to.at, state: to.state.clone() }
}

pub(crate) fn granted(claim: Claim) -> Result<Fence, Difference> {
    match claim {
        Claim::Granted(fence) => Ok(fence),
        Claim::Held { by, .. } => Err(Difference(format!("a claim was refused because {by} holds the shard"))),
    }
}

/// Requires that something is so.
pub(crate) fn holds(what: impl Display, so: bool) -> Outcome {
    if so { Ok(()) } else { Err(Difference(format!("this is not so: {what}"))) }
}

/// Requires that two values are equal.
pub(crate) fn same<T: Debug + PartialEq>(what: impl Display, got: T, expected: T) -> Outcome {
    if got == expected {
        return Ok(());
    }
    Err(Difference(format!("{what}: expected {}, got {}", brief(&expected), brief(&got))))
}

/// Requires that two lists of rows are equal, and else shows the first row that differs.
pub(crate) fn same_rows(what: impl Display, got: &[Row], expected: &[Row]) -> Outcome {
    let first = (0..got.len().max(expected.len())).find(|index| got.get(*index) != expected.get(*index));
    let Some(index) = first else { return Ok(()) };
    let shown = |rows: &[Row]| rows.get(index).map_or("no row".to_owned(), brief);
    Err(Difference(format!(
        "{what}: expected {} rows, got {}; row {index}: expected {}, got {}",
        expected.len(),
        got.len(),
        shown(expected),
        shown(got)
    )))
}

/// A value as text, cut where it becomes too long to help.
fn brief(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    match text.char_indices().nth(600) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
