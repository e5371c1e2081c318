//! One shard: copied, read back and compared.

use std::sync::mpsc::sync_channel;
use std::thread;

use punctual_core::store::{Position, Row, StoreError, Table, Tally, Want};

use crate::error::MoveError;
use crate::presence::Guest;
use crate::progress::Counting;
use crate::reading::{Held, Reading};
use crate::report::ShardReport;
use crate::sum::{Summing, Sums, weight};
use crate::writing::Writing;

/// How many pages are read ahead while one is written.
const AHEAD: usize = 3;

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
        let tallies = self.tallies(self.from, self.source)?;
        writing.count(&tallies)?;
        self.compare(writing.held, &sums, &tallies)?;
        self.counting.done();
        Ok(ShardReport { shard: self.source.shard.0, tables: sums, copied, counts: tallies.len() })
    }

    /// Copies the rows that come after those that have arrived; the others are only added up. Reading and writing go on
    /// side by side.
    fn copy_rows(&self, writing: &mut Writing<'_>, arrived: &[Option<Position>]) -> Result<(Sums, u64), MoveError> {
        let (sender, pages) = sync_channel(AHEAD);
        let reading = Reading::new(self.source, self.from.patience);
        thread::scope(|scope| {
            scope.spawn(move || {
                for page in reading {
                    let is_last = page.is_err();
                    // Who does not listen any more has failed, and says so.
                    if sender.send(page).is_err() || is_last {
                        return;
                    }
                }
            });
            let (mut summing, mut copied) = (Summing::default(), 0);
            // Taken by value: if writing fails, the reader finds nobody to send to.
            for page in pages {
                let page: Vec<Row> = page.map_err(MoveError::of(self.from.side.name))?;
                let (rows, bytes) = (page.len() as u64, page.iter().map(weight).sum::<usize>() as u64);
                for row in page {
                    summing.add(&row);
                    if arrived[row.table as usize - 1].is_none_or(|last| last < row.position()) {
                        copied += 1;
                        writing.push(row)?;
                    }
                }
                self.counting.copied(rows, bytes);
            }
            writing.flush()?;
            Ok((summing.sums(), copied))
        })
    }

    /// Reads everything back.
    fn compare(&self, target: Held<'_>, left: &Sums, counts: &[(Tally, i64)]) -> Result<(), MoveError> {
        let mut summing = Summing::default();
        for page in Reading::new(target, self.to.patience) {
            let page = page.map_err(MoveError::of(self.to.side.name))?;
            page.iter().for_each(|row| summing.add(row));
            self.counting.verified(page.len() as u64);
        }
        let (shard, right) = (target.shard, summing.sums());
        if let Some(table) = Table::ALL.into_iter().find(|table| left.of(*table) != right.of(*table)) {
            let (left, right) = (Box::new(left.of(table)), Box::new(right.of(table)));
            return Err(MoveError::Differs { shard, table, left, right });
        }
        let there = self.tallies(self.to, target)?;
        if there != counts {
            let what = format!("{} in the source, {} in the target", counts.len(), there.len());
            return Err(MoveError::CountsDiffer { shard, what });
        }
        Ok(())
    }

    fn tallies(&self, guest: &Guest<'_>, held: Held<'_>) -> Result<Vec<(Tally, i64)>, MoveError> {
        let read = || -> Result<_, StoreError> { Ok(held.read(Want::Tallies)?.tallies()) };
        guest.patience.retry(read).map_err(MoveError::of(guest.side.name))
    }
}
