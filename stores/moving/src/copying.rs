//! One shard of a stopped store: copied, read back and compared.

use punctual_core::store::{Position, ShardId, Table, Tally, TallyKind, Want};

use crate::emptiness::LOOKED;
use crate::error::MoveError;
use crate::presence::Guest;
use crate::progress::Counting;
use crate::reading::{Held, Reading, carry};
use crate::report::ShardReport;
use crate::sum::{Summing, Sums, weight};
use crate::writing::Writing;

/// A shard that goes from one store into the other.
pub(crate) struct Copying<'a> {
    pub from: &'a Guest<'a>,
    pub source: Held<'a>,
    pub to: &'a Guest<'a>,
    pub target: Held<'a>,
    pub counting: &'a Counting<'a>,
}

impl Copying<'_> {
    /// Copies what is not there yet, and compares all of it.
    pub fn run(&self) -> Result<ShardReport, MoveError> {
        let mut writing = Writing::new(self.to, self.target);
        let arrived = writing.arrived().map_err(MoveError::of(self.to.side.name))?;
        let (sums, copied) = self.copy_rows(&mut writing, &arrived)?;
        let counts = tallies(self.from, self.source)?;
        writing.count(&counts)?;
        let there = read_back(self.to, writing.held, &Table::ALL, self.counting)?;
        compare(self.source.shard, &sums, &there)?;
        compare_counts(self.source.shard, &counts, &tallies(self.to, writing.held)?)?;
        self.counting.done();
        Ok(ShardReport { shard: self.source.shard.0, tables: sums, copied, counts: counts.len() })
    }

    /// Copies the rows that come after those that have arrived; the others are only added up.
    fn copy_rows(&self, writing: &mut Writing<'_>, arrived: &[Option<Position>]) -> Result<(Sums, u64), MoveError> {
        let (mut summing, mut copied) = (Summing::default(), 0);
        let reading = Reading::new(self.source, self.from.patience, &Table::ALL);
        carry(reading, self.from.side.name, |page| {
            let (rows, bytes) = (page.len(), page.iter().map(weight).sum());
            for row in page {
                summing.add(&row);
                if arrived[row.table as usize - 1].is_none_or(|last| last < row.position()) {
                    copied += 1;
                    writing.push(row)?;
                }
            }
            self.counting.copied(rows, bytes)
        })?;
        writing.flush()?;
        Ok((summing.sums(), copied))
    }
}

/// Adds up what is in the target.
pub(crate) fn read_back(
    to: &Guest<'_>,
    target: Held<'_>,
    tables: &'static [Table],
    counting: &Counting<'_>,
) -> Result<Sums, MoveError> {
    let mut summing = Summing::default();
    for page in Reading::new(target, to.patience, tables) {
        let page = page.map_err(MoveError::of(to.side.name))?;
        page.iter().for_each(|row| summing.add(row));
        counting.verified(page.len())?;
    }
    Ok(summing.sums())
}

/// Requires that both sides have the same rows.
pub(crate) fn compare(shard: ShardId, left: &Sums, right: &Sums) -> Result<(), MoveError> {
    match Table::ALL.into_iter().find(|table| left.of(*table) != right.of(*table)) {
        None => Ok(()),
        Some(table) => {
            let (left, right) = (Box::new(left.of(table)), Box::new(right.of(table)));
            Err(MoveError::Differs { shard, table, left, right })
        }
    }
}

/// Requires that both sides have the same counts.
pub(crate) fn compare_counts(shard: ShardId, left: &[(Tally, i64)], right: &[(Tally, i64)]) -> Result<(), MoveError> {
    if left == right {
        return Ok(());
    }
    let what = format!("{} in the source, {} in the target, or others", left.len(), right.len());
    Err(MoveError::CountsDiffer { shard, what })
}

/// The counts that are kept beside the rows.
pub(crate) fn tallies(guest: &Guest<'_>, held: Held<'_>) -> Result<Vec<(Tally, i64)>, MoveError> {
    let found = guest.patience.retry(|| held.read(Want::Tallies));
    Ok(found.map_err(MoveError::of(guest.side.name))?.tallies())
}

/// How many rows some shards have, by the counts that are kept beside them: nearly all.
pub(crate) fn expected(guest: &Guest<'_>, shards: &[ShardId]) -> Result<u64, MoveError> {
    let mut expected = 0;
    for shards in shards.chunks(LOOKED) {
        let wanted: Vec<_> = shards.iter().map(|shard| (*shard, Want::Tallies)).collect();
        let found = guest.patience.retry(|| guest.side.store.look(&wanted));
        for found in found.map_err(MoveError::of(guest.side.name))? {
            let rows = [TallyKind::Waiting, TallyKind::TopicLeased, TallyKind::TopicDead, TallyKind::History];
            let counts = found.tallies().into_iter().filter(|(tally, _)| rows.contains(&tally.kind));
            expected += counts.map(|(_, count)| count.max(0) as u64).sum::<u64>();
        }
    }
    Ok(expected)
}
