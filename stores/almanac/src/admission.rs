//! Which batches of a commit are to happen: those that are new, come from their shard's owner, and find the rows they
//! name. It is decided before anything is written, since a record that cannot be applied would keep the almanac from
//! being opened; so a batch that is refused costs nobody else anything.
//!
//! Not looked for is a key that is inserted and stands in a run already: that would be one more cold line of memory for
//! every new task.

use hashbrown::HashTable;
use punctual_core::store::{Batch, Change, Place, Position, Refusal, ShardId, Table};

use crate::blocks::Blocks;
use crate::error::ReadError;
use crate::holdings::{ApplyError, Holdings, astray};
use crate::row::KeyText;

/// Whether a batch is to happen, and not there already.
pub(crate) type Verdict = Result<bool, Refusal>;

impl Holdings {
    /// Judges batches that are to be committed together. None of them counts as done yet.
    pub fn judge(&mut self, batches: &[Batch], blocks: &Blocks) -> Result<Vec<Verdict>, ReadError> {
        let before: Vec<u64> = batches.iter().map(|batch| self.members.tenure(batch.shard).serial).collect();
        let verdicts = self.judge_in_turn(batches, blocks);
        for (batch, serial) in batches.iter().zip(before) {
            self.members.go_back(batch.shard, serial);
        }
        verdicts
    }

    /// Each batch of a shard is judged as if those before it had happened.
    fn judge_in_turn(&mut self, batches: &[Batch], blocks: &Blocks) -> Result<Vec<Verdict>, ReadError> {
        let mut changed = Changed::default();
        let mut verdicts = Vec::with_capacity(batches.len());
        for (batch, later) in batches.iter().zip(1..) {
            let mut verdict = self.members.admit_commit(batch);
            if verdict == Ok(true) {
                match self.verify(batch, &changed, blocks) {
                    Ok(()) if batches[later..].iter().any(|other| other.shard == batch.shard) => changed.note(batch),
                    Ok(()) => {}
                    Err(ApplyError::Read(error)) => return Err(error),
                    Err(ApplyError::Astray(what)) => {
                        self.members.go_back(batch.shard, batch.serial - 1);
                        verdict = Err(Refusal::Astray(what));
                    }
                    Err(ApplyError::Malformed) => unreachable!("nothing was laid out yet"),
                }
            }
            verdicts.push(verdict);
        }
        Ok(verdicts)
    }

    /// Makes sure that each change finds the row it names. It also lets the processor wait for many cold rows at a time,
    /// and applying finds them warm.
    fn verify(&self, batch: &Batch, changed: &Changed<'_>, blocks: &Blocks) -> Result<(), ApplyError> {
        for change in &batch.changes {
            let Named { hash, key, table, place } = Named::by(change, batch.shard);
            match (changed.find(batch.shard, hash, key), place) {
                (None, Some(place)) => {
                    self.locate(batch.shard, hash, key, (place.table, place.position), blocks)?;
                }
                (None, None) => self.verify_free(batch.shard, hash, key, table)?,
                (Some(stands), Some(place)) if stands != Some((place.table, place.position)) => {
                    return Err(astray(batch.shard, key, place.table, place.position));
                }
                (Some(Some((_, there))), None) => return Err(taken(batch.shard, key, there)),
                (Some(_), _) => {}
            }
        }
        Ok(())
    }

    fn verify_free(&self, shard: ShardId, hash: u64, key: KeyText<'_>, table: Table) -> Result<(), ApplyError> {
        match self.find_recent(hash, key, shard, table) {
            None => Ok(()),
            Some(stand) => Err(taken(shard, key, self.recent_row(stand).0.position())),
        }
    }
}

/// Which row a change is about.
struct Named<'b> {
    hash: u64,
    key: KeyText<'b>,
    /// The table it is to stand in.
    table: Table,
    /// Where it is said to stand; nowhere if it is to come.
    place: Option<&'b Place>,
}

impl<'b> Named<'b> {
    fn by(change: &'b Change, shard: ShardId) -> Named<'b> {
        let (key, table, place) = match change {
            Change::Insert { row, replaces } => (&row.key, row.table, replaces.as_ref()),
            Change::Update { place, table, .. } => (&place.key, *table, Some(place)),
            Change::Remove { place } => (&place.key, place.table, Some(place)),
        };
        let key = KeyText::of(key);
        Named { hash: key.hash(shard, table), key, table, place }
    }
}

/// Where rows will stand, or not any more, when the batches of the same commit have happened that were judged so far.
#[derive(Default)]
struct Changed<'b> {
    rows: HashTable<ChangedRow<'b>>,
}

struct ChangedRow<'b> {
    hash: u64,
    shard: ShardId,
    key: KeyText<'b>,
    stands: Option<(Table, Position)>,
}

impl<'b> Changed<'b> {
    fn note(&mut self, batch: &'b Batch) {
        for change in &batch.changes {
            let Named { hash, key, .. } = Named::by(change, batch.shard);
            let stands = match change {
                Change::Insert { row, .. } => Some((row.table, row.position())),
                Change::Update { place, table, at, .. } => {
                    Some((*table, Position { at: *at, seq: place.position.seq }))
                }
                Change::Remove { .. } => None,
            };
            let row = ChangedRow { hash, shard: batch.shard, key, stands };
            match self.rows.find_mut(hash, |other| other.is(batch.shard, hash, key)) {
                Some(before) => *before = row,
                None => _ = self.rows.insert_unique(hash, row, |row| row.hash),
            }
        }
    }

    /// Where a row stands that was changed.
    fn find(&self, shard: ShardId, hash: u64, key: KeyText<'_>) -> Option<Option<(Table, Position)>> {
        if self.rows.is_empty() {
            return None;
        }
        self.rows.find(hash, |row| row.is(shard, hash, key)).map(|row| row.stands)
    }
}

impl ChangedRow<'_> {
    fn is(&self, shard: ShardId, hash: u64, key: KeyText<'_>) -> bool {
        (self.hash, self.shard) == (hash, shard) && self.key == key
    }
}

fn taken(shard: ShardId, key: KeyText<'_>, there: Position) -> ApplyError {
    let key = String::from_utf8_lossy(key.text).into_owned();
    ApplyError::Astray(format!("{shard} has a row {key:?} already, at {there:?}"))
}
