//! The end of a run: every shard is asked for its books before the auditor has the last word.

use std::collections::{BTreeMap, BTreeSet};

use punctual_core::store::{ShardId, Store};
use punctual_core::{Answer, Board, Command, Output, Request, Unit};

use crate::auditor::{Books, Promise};
use crate::record::{StepRecord, Tag};
use crate::world::World;

/// How many steps a shard gets at least to bring its books up to date: one for each day that the forecast
/// counts by minute, and more; and at most, if there is much to forget.
const ROUNDS: (usize, usize) = (200, 10_000);

impl World {
    /// The books of all shards, and the auditor's last word.
    pub(crate) fn close(&mut self) {
        // What ended last may have to be kept for a moment.
        self.advance(self.moment + 60_000);
        let mut books: BTreeMap<ShardId, Books> = BTreeMap::new();
        let mut open: BTreeSet<ShardId> = BTreeSet::new();
        for index in 0..self.nodes.len() {
            let shards: Vec<ShardId> = self.nodes[index].seats().map(|(shard, _)| *shard).collect();
            for shard in shards {
                open.insert(shard);
                if let Some(book) = self.book(index, shard) {
                    books.insert(shard, book);
                }
            }
        }
        if open.len() != usize::from(self.profile.shards) {
            let what = format!("only {open:?} are open at the end");
            self.auditor.accuse(Promise::KeepsWorking, "", what);
        }
        self.check_noticed();
        let drained = self.drained_at();
        self.auditor.close(self.store.memory(), &books, drained, self.profile.shards);
    }

    /// Asks a shard for its counts and its forecast.
    fn book(&mut self, index: usize, shard: ShardId) -> Option<Books> {
        for round in 0..ROUNDS.1 {
            let has_more = self.last_step(index, shard, Vec::new())?.wake <= self.nodes[index].now(self.moment);
            if round >= ROUNDS.0 && !has_more {
                break;
            }
        }
        let now = self.nodes[index].now(self.moment);
        let ask = |unit, slots| {
            vec![Request { by: None, command: Command::Forecast { unit, slots }, reply: 0, read_at: now }]
        };
        let mut forecast = |unit, slots| match self.last_step(index, shard, ask(unit, slots))?.answers.as_slice() {
            [(_, Ok(Answer::Forecast(slots)))] => Some(slots.clone()),
            _ => None,
        };
        let (days, minutes) = (forecast(Unit::Day, 40)?, forecast(Unit::Minute, 3_000)?);
        let seat = self.nodes[index].seat(shard)?;
        Some(Books { now: seat.shard.now(), counts: seat.shard.counts(), days, minutes })
    }

    /// A step outside of the node, with nobody waiting, committed at once.
    fn last_step(&mut self, index: usize, shard: ShardId, ask: Vec<Request<Tag>>) -> Option<Output<Tag>> {
        let now = self.nodes[index].now(self.moment);
        let truth = self.nodes[index].truth(self.moment);
        let seat = self.nodes[index].seat(shard)?;
        let output = seat.shard.step(now, ask, &self.store, &mut Board::default()).ok()?;
        let record = StepRecord {
            node: index,
            shard,
            fence: seat.fence,
            step: output.step,
            now: seat.shard.now(),
            clock: now,
            clock_width: self.profile.config.clock_width,
            truth,
            requests: Vec::new(),
            read_at: BTreeMap::new(),
            answers: BTreeMap::new(),
            holders: BTreeMap::new(),
            waited_since: now,
            late: seat.take_late(),
            batch: output.batch.clone(),
        };
        let answers = self.store.commit(output.batch.iter().cloned().collect()).ok()?;
        answers.into_iter().collect::<Result<Vec<()>, _>>().ok()?;
        seat.shard.committed(output.step);
        self.auditor.took_effect(&record);
        Some(output)
    }
}
