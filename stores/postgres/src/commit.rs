//! Batches on their way into the tables: as few statements as possible, and an answer for each batch.
//!
//! A statement takes batches of different shards and is one transaction. Whether a batch has happened is known from the
//! statement itself; why one has not is asked for afterwards, which is rare.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use punctual_core::store::{Batch, Fence, Refusal, ShardId, StoreError, Tenure};
use punctual_database::Threads;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::column::Column;
use crate::courier::Courier;
use crate::draft::Draft;
use crate::error::Trouble;
use crate::number::{shard_number, stored_number};
use crate::statement::{Query, Statement, value};

/// How many bytes one transaction has at most, unless a single batch has more.
const TRANSACTION_BYTES: usize = 8 << 20;
/// How often a batch is tried that nothing stands in the way of.
const TURNS: usize = 3;

/// Makes batches durable, each or not.
pub(crate) fn commit(
    courier: &Arc<Courier>,
    threads: &Threads,
    batches: &[Batch],
) -> Result<Vec<Result<(), Refusal>>, StoreError> {
    let mut round = Round { batches, fates: vec![None; batches.len()], is_apart: false, is_repeated: false };
    for _ in 0..TURNS {
        round.send(courier, threads)?;
        if round.open().next().is_some() {
            let answer = courier.call(threads, vec![round.standing()])?;
            round.judge(&answer.results)?;
        }
        if round.open().next().is_none() {
            break;
        }
    }
    let overtaken = || StoreError::Unavailable("a commit was overtaken again and again".to_owned());
    round.fates.into_iter().map(|fate| fate.ok_or_else(overtaken)).collect()
}

/// Batches, and what is known of each.
struct Round<'a> {
    batches: &'a [Batch],
    fates: Vec<Option<Result<(), Refusal>>>,
    /// Whether each batch gets a statement of its own, since one of several could not be carried out.
    is_apart: bool,
    /// Whether an attempt before may have happened without our having heard of it.
    is_repeated: bool,
}

impl Round<'_> {
    /// The batches of which nothing is known yet.
    fn open(&self) -> impl Iterator<Item = (usize, &Batch)> {
        self.batches.iter().enumerate().filter(|(index, _)| self.fates[*index].is_none())
    }

    /// Sends all of them in one go, and takes in what has happened.
    fn send(&mut self, courier: &Arc<Courier>, threads: &Threads) -> Result<(), StoreError> {
        let groups = self.groups();
        let mut queries: Vec<Query> = groups.iter().map(|group| self.statement(group)).collect();
        // Batches that only ask are answered by the standing.
        let asks = self.open().any(|(_, batch)| batch.is_empty());
        if asks {
            queries.push(self.standing());
        }
        if queries.is_empty() {
            return Ok(());
        }
        let mut answer = courier.call(threads, queries)?;
        self.is_repeated |= answer.is_repeated;
        let standing = answer.results.split_off(groups.len());
        for (group, result) in groups.iter().zip(answer.results) {
            match result {
                Ok(rows) => {
                    courier.hardships.forget();
                    let done: BTreeSet<i32> = rows.iter().map(|row| row.get(0)).collect();
                    let is_done = |index: &usize| done.contains(&shard_number(self.batches[*index].shard));
                    group.iter().copied().filter(is_done).for_each(|index| self.fates[index] = Some(Ok(())));
                }
                Err(trouble) if group.len() == 1 => {
                    self.fates[group[0]] = Some(Err(Refusal::Astray(trouble.text().to_owned())));
                }
                // Nothing of it has happened. Which of them it was is seen when each is tried by itself.
                Err(_) => self.is_apart = true,
            }
        }
        if asks { self.judge(&standing) } else { Ok(()) }
    }

    /// The open batches that change something, as statements take them: no shard twice, and not too much at once. What
    /// comes first in a shard comes first in the order of statements.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let (mut bytes, mut shards) = (0, BTreeSet::new());
        for (index, batch) in self.open().filter(|(_, batch)| !batch.is_empty()) {
            let weight = Draft::weight(batch);
            let fits = !self.is_apart && bytes + weight <= TRANSACTION_BYTES && !shards.contains(&batch.shard);
            match groups.last_mut() {
                Some(group) if fits => group.push(index),
                _ => {
                    groups.push(vec![index]);
                    (bytes, shards) = (0, BTreeSet::new());
                }
            }
            bytes += weight;
            shards.insert(batch.shard);
        }
        groups
    }

    fn statement(&self, group: &[usize]) -> Query {
        let mut batches: Vec<&Batch> = group.iter().map(|index| &self.batches[*index]).collect();
        // As claims do: who locks shards in one order is never in a circle with others who do.
        batches.sort_by_key(|batch| batch.shard);
        let mut draft = Draft::new();
        batches.into_iter().for_each(|batch| draft.add(batch));
        draft.finish()
    }

    /// Asks how far the shards of all open batches are.
    fn standing(&self) -> Query {
        let mut shards = Column::new(Type::INT4);
        self.open().for_each(|(_, batch)| shards.int4(shard_number(batch.shard)));
        Query::new(Statement::Standing, vec![value(shards)])
    }

    /// Says of the open batches why they have not happened, or that they had already. What nothing stands in the way of
    /// stays open.
    fn judge(&mut self, standing: &[Result<Vec<Row>, Trouble>]) -> Result<(), StoreError> {
        let rows = standing.iter().flatten().flatten();
        let standing: BTreeMap<i32, Tenure> = rows.map(tenure).collect();
        // From the last to the first, since what happened after a batch is not what it found.
        let mut after: BTreeMap<ShardId, u64> = BTreeMap::new();
        for (index, batch) in self.batches.iter().enumerate().rev() {
            match &self.fates[index] {
                Some(Ok(())) if !batch.is_empty() => drop(after.insert(batch.shard, batch.serial)),
                Some(_) => {}
                None => {
                    let mut found = standing.get(&shard_number(batch.shard)).copied().unwrap_or_default();
                    if let Some(later) = after.get(&batch.shard) {
                        found.serial = found.serial.min(later.saturating_sub(1));
                    }
                    self.fates[index] = verdict(batch, found, self.is_repeated)?;
                }
            }
        }
        Ok(())
    }
}

/// How far a shard is, from a row of shard, fence and serial.
pub(crate) fn tenure(row: &Row) -> (i32, Tenure) {
    let (shard, fence, serial) = (row.get(0), row.get(1), row.get(2));
    (shard, Tenure { fence: Fence(stored_number(fence)), serial: stored_number(serial) })
}

/// What becomes of a batch, given how far its shard is.
fn verdict(batch: &Batch, found: Tenure, is_repeated: bool) -> Result<Option<Result<(), Refusal>>, StoreError> {
    let (fence, serial) = (batch.fence, batch.serial);
    let before = if batch.is_empty() { serial } else { serial.saturating_sub(1) };
    if found.fence != fence || fence == Fence::default() {
        // Our attempt may have happened, and the shard been taken after it; or the new owner has come as far.
        if is_repeated && !batch.is_empty() && found.serial >= serial {
            let text = "the connection broke during the commit, and the shard was taken by another meanwhile";
            return Err(StoreError::Unavailable(text.to_owned()));
        }
        return Ok(Some(Err(refusal(fence, before, found))));
    }
    if found.serial < before {
        return Ok(Some(Err(Refusal::Lost { expected: before, found: found.serial })));
    }
    Ok((found.serial >= serial).then_some(Ok(())))
}

/// Why one who holds a shard under this fence, and has come so far, is refused: the shard is another's by now; or it is
/// in a state from before our own claim, without what was confirmed since.
pub(crate) fn refusal(fence: Fence, confirmed: u64, found: Tenure) -> Refusal {
    if found.fence < fence && found.serial < confirmed {
        Refusal::Lost { expected: confirmed, found: found.serial }
    } else {
        Refusal::Fenced { current: found.fence }
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::Timestamp;
    use punctual_core::store::{Change, Key, Place, Position, Table};

    use super::*;

    fn batch(fence: u64, serial: u64, shard: u16) -> Batch {
        let position = Position { at: Timestamp::from_millis(1), seq: 1 };
        let place = Place { table: Table::Live, key: Key::new("t", "1", ""), position, group: None };
        let changes = vec![Change::Remove { place }];
        Batch { shard: ShardId(shard), fence: Fence(fence), serial, changes, tallies: vec![] }
    }

    fn at(fence: u64, serial: u64) -> Tenure {
        Tenure { fence: Fence(fence), serial }
    }

    fn of(batch: &Batch, found: Tenure) -> Option<Result<(), Refusal>> {
        verdict(batch, found, false).unwrap()
    }

    #[test]
    fn a_batch_that_is_there_is_done_and_one_that_could_be_is_tried_again() {
        assert_eq!(of(&batch(7, 4, 0), at(7, 4)), Some(Ok(())));
        assert_eq!(of(&batch(7, 4, 0), at(7, 9)), Some(Ok(())));
        assert_eq!(of(&batch(7, 4, 0), at(7, 3)), None);
    }

    #[test]
    fn a_gap_is_a_loss_and_so_is_a_store_from_before_the_claim() {
        assert_eq!(of(&batch(7, 4, 0), at(7, 2)), Some(Err(Refusal::Lost { expected: 3, found: 2 })));
        assert_eq!(of(&batch(7, 4, 0), at(6, 2)), Some(Err(Refusal::Lost { expected: 3, found: 2 })));
        assert_eq!(of(&batch(7, 4, 0), at(6, 3)), Some(Err(Refusal::Fenced { current: Fence(6) })), "nothing is lost");
        assert_eq!(of(&batch(7, 4, 0), at(8, 2)), Some(Err(Refusal::Fenced { current: Fence(8) })));
    }

    #[test]
    fn a_batch_that_asks_wants_all_before_it() {
        let asks = Batch { changes: vec![], ..batch(7, 4, 0) };
        assert_eq!(of(&asks, at(7, 4)), Some(Ok(())));
        assert_eq!(of(&asks, at(7, 3)), Some(Err(Refusal::Lost { expected: 4, found: 3 })));
        let nobodys = Batch { fence: Fence(0), ..asks };
        assert_eq!(of(&nobodys, at(0, 0)), Some(Err(Refusal::Fenced { current: Fence(0) })));
    }

    #[test]
    fn whether_a_repeated_batch_happened_before_the_shard_was_taken_is_not_known() {
        assert!(verdict(&batch(7, 4, 0), at(8, 4), true).is_err());
        let refused = verdict(&batch(7, 4, 0), at(8, 3), true).unwrap();
        assert_eq!(refused, Some(Err(Refusal::Fenced { current: Fence(8) })), "it cannot have happened");
    }

    #[test]
    fn a_statement_has_each_shard_once_and_not_too_much() {
        let body = vec![0; TRANSACTION_BYTES / 2];
        let big = |shard| Batch {
            changes: vec![Change::Update {
                place: Place {
                    table: Table::Live,
                    key: Key::new("t", "1", ""),
                    position: Position::START,
                    group: None,
                },
                table: Table::Live,
                at: Timestamp::ZERO,
                state: body.clone().into(),
            }],
            ..batch(1, 1, shard)
        };
        let groups = |batches: &[Batch]| {
            Round { batches, fates: vec![None; batches.len()], is_apart: false, is_repeated: false }.groups()
        };
        assert_eq!(groups(&[batch(1, 1, 0), batch(1, 1, 1), batch(1, 2, 0)]), [vec![0, 1], vec![2]]);
        assert_eq!(groups(&[big(0), big(1), batch(1, 1, 2)]), [vec![0], vec![1, 2]]);
    }
}
