//! What the checks stand on: a fresh store with one shard claimed, short words for common rows and
//! changes, and comparisons that say what differed.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::sync::Arc;

use bytes::Bytes;
use punctual_core::store::{
    Batch, Bodies, Change, Claim, Fence, Find, Found, Incarnation, Key, Page, Position, Refusal, Row, Scan, ShardId,
    Store, StoreError, Table, Tally, Tenure, Want,
};
use punctual_core::{Name, Timestamp};

use crate::Subject;

/// The shard on which a check works unless it needs several.
pub(crate) const SHARD: ShardId = ShardId(7);

/// What differed from the fact.
pub(crate) struct Difference(pub(crate) String);

impl Difference {
    /// The same, and after what it came.
    pub(crate) fn after(self, what: &str) -> Difference {
        Difference(format!("after {what}: {}", self.0))
    }
}

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
    tenures: BTreeMap<ShardId, Tenure>,
    reopening: bool,
    commits: u64,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(subject: &'a dyn Subject, reopening: bool) -> Result<Stage<'a>, Difference> {
        let store = Some(subject.fresh());
        let mut stage = Stage { subject, store, tenures: BTreeMap::new(), reopening, commits: 0 };
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

    /// Another node's handle to the store, or the same one where nodes do not share stores. It must be gone before the
    /// store is reopened.
    pub(crate) fn other(&self) -> Arc<dyn Store> {
        self.subject.share(self.store()).unwrap_or_else(|| Arc::clone(self.store()))
    }

    /// Who owns the check's shards.
    pub(crate) fn who() -> Incarnation {
        life("node-1", 1)
    }

    /// Claims a shard for the check, again if it has it, and whoever has it.
    pub(crate) fn own(&mut self, shard: ShardId) -> Result<Fence, Difference> {
        let seen = self.tenures.get(&shard).map_or(Fence::default(), |tenure| tenure.fence);
        let tenure = match claim(self.store(), &Stage::who(), shard, seen)? {
            Claim::Granted(tenure) => tenure,
            Claim::Outrun(current) => granted(claim(self.store(), &Stage::who(), shard, current)?)?,
        };
        self.tenures.insert(shard, tenure);
        Ok(tenure.fence)
    }

    pub(crate) fn fence(&self, shard: ShardId) -> Fence {
        self.tenure(shard).fence
    }

    pub(crate) fn tenure(&self, shard: ShardId) -> Tenure {
        self.tenures[&shard]
    }

    /// Ends the store and opens it anew; the check owns its shards again.
    pub(crate) fn reopen(&mut self) -> Outcome {
        let store = self.store.take().expect("the store is away only while it is reopened");
        self.store = Some(self.subject.reopen(store));
        let shards: Vec<ShardId> = self.tenures.keys().copied().collect();
        shards.into_iter().try_for_each(|shard| self.own(shard).map(|_| ()))
    }

    /// The changes as a batch of a shard that the check owns. It gets its serial when it is committed.
    pub(crate) fn batch(&self, shard: ShardId, changes: Vec<Change>) -> Batch {
        Batch { shard, fence: self.fence(shard), serial: 0, changes, tallies: Vec::new() }
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

    /// Commits many changes to [`SHARD`], in batches of a size that the store likes.
    pub(crate) fn commit_in_parts(&mut self, changes: Vec<Change>) -> Outcome {
        let most = self.store().terms().batch_changes.min(10_000);
        changes.chunks(most).try_for_each(|part| self.commit(part.to_vec()))
    }

    /// Commits batches of which none is to be refused.
    pub(crate) fn commit_all(&mut self, batches: Vec<Batch>) -> Outcome {
        let granted = vec![Ok(()); batches.len()];
        let answers = self.try_commit(batches)?;
        same("the answers to a commit", answers, granted)
    }

    /// Numbers the batches, commits them and gives the answers.
    pub(crate) fn try_commit(&mut self, mut batches: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, Difference> {
        let numbers = self.number(&mut batches);
        let answers = self.store().commit(batches)?;
        for ((shard, serial), _) in numbers.into_iter().zip(&answers).filter(|(_, answer)| answer.is_ok()) {
            self.tenures.entry(shard).or_default().serial = serial;
        }
        self.commits += 1;
        if self.reopening && self.commits.is_multiple_of(self.subject.commits_between_reopenings()) {
            self.reopen()?;
        }
        Ok(answers)
    }

    /// Gives each batch its place in the chain of its shard; those under another fence do not lengthen it.
    pub(crate) fn number(&self, batches: &mut [Batch]) -> Vec<(ShardId, u64)> {
        let mut tenures = self.tenures.clone();
        let number = |batch: &mut Batch| {
            let latest = tenures.entry(batch.shard).or_default();
            batch.serial = latest.serial + u64::from(!batch.is_empty());
            if batch.fence == latest.fence {
                latest.serial = batch.serial;
            }
            (batch.shard, batch.serial)
        };
        batches.iter_mut().map(number).collect()
    }

    /// What anybody sees. If the check owns the shard, its owner must read the same.
    pub(crate) fn read(&self, shard: ShardId, want: Want<'_>) -> Result<Found, Difference> {
        let seen = only(self.store().look(&[(shard, want)])?)?;
        if let Some(tenure) = self.tenures.get(&shard) {
            let read = only(self.store().read(shard, *tenure, &[want])?)?;
            if !agree(&read, &seen) {
                same("what the owner reads, beside what others see", &read, &seen)?;
            }
        }
        Ok(seen)
    }

    pub(crate) fn get(&self, key: &Key) -> Result<Option<Row>, Difference> {
        let rows = self.get_all(SHARD, std::slice::from_ref(key), Bodies::With)?;
        only(rows)
    }

    pub(crate) fn get_all(&self, shard: ShardId, keys: &[Key], bodies: Bodies) -> Result<Vec<Option<Row>>, Difference> {
        Ok(self.read(shard, Want::Keys(keys, bodies))?.each())
    }

    pub(crate) fn fetch(&self, position: Position) -> Result<Option<Row>, Difference> {
        only(self.fetch_all(SHARD, &[position], Bodies::With)?)
    }

    pub(crate) fn fetch_all(
        &self,
        shard: ShardId,
        positions: &[Position],
        bodies: Bodies,
    ) -> Result<Vec<Option<Row>>, Difference> {
        Ok(self.read(shard, Want::Positions(positions, bodies))?.each())
    }

    pub(crate) fn numbered(
        &self,
        shard: ShardId,
        numbers: &[u64],
        bodies: Bodies,
    ) -> Result<Vec<Option<Row>>, Difference> {
        Ok(self.read(shard, Want::Numbers(numbers, bodies))?.each())
    }

    pub(crate) fn tallies(&self, shard: ShardId) -> Result<Vec<(Tally, i64)>, Difference> {
        Ok(self.read(shard, Want::Tallies)?.tallies())
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

/// The one answer to the one thing that was asked.
pub(crate) fn only<T: Debug>(mut answers: Vec<T>) -> Result<T, Difference> {
    same("the number of answers", answers.len(), 1)?;
    Ok(answers.remove(0))
}

/// One life of a node.
pub(crate) fn life(node: &str, number: u64) -> Incarnation {
    Incarnation { node: name(node), number }
}

/// Claims one shard.
pub(crate) fn claim(
    store: &Arc<dyn Store>,
    who: &Incarnation,
    shard: ShardId,
    seen: Fence,
) -> Result<Claim, Difference> {
    only(store.claim(who, &[(shard, seen)])?)
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

/// The tenure that a claim granted.
pub(crate) fn granted(claim: Claim) -> Result<Tenure, Difference> {
    match claim {
        Claim::Granted(tenure) => Ok(tenure),
        Claim::Outrun(current) => Err(Difference(format!("a claim was outrun: {current:?} is in force"))),
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

/// Whether two reads of the same say the same. Pages may end in different places: a store stops where it likes, and may have
/// tidied up in between.
fn agree(one: &Found, other: &Found) -> bool {
    match (one, other) {
        (Found::Span(one), Found::Span(other)) => pages_agree(one, other),
        (Found::Members(one), Found::Members(other)) => pages_agree(one, other),
        _ => one == other,
    }
}

fn pages_agree<C: PartialEq>(one: &Page<C>, other: &Page<C>) -> bool {
    let (short, long) = if one.rows.len() <= other.rows.len() { (one, other) } else { (other, one) };
    // The shorter one says that there is more, and not after the place where the longer one ends.
    let leads_on = short.next.is_some() && short.next != long.next;
    long.rows.starts_with(&short.rows) && (short.rows.len() == long.rows.len() || leads_on)
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
