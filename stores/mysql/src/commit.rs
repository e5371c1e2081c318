//! Commits: all batches of a call in one transaction and, as a rule, in one round trip.
//!
//! ```text
//! BEGIN; UPDATE shards SET serial=8 WHERE shard=3 AND fence=.. AND serial=7; guard;
//!        DELETE ..; guard; INSERT ..; UPDATE ..; guard; [the next batch] ..; COMMIT
//! ```
//! A guard that fails ends the text, and all is rolled back. The batch that it belongs to is judged by itself and the
//! others are sent again without it, which is rare. Who else writes to the shard waits at the first statement of a batch,
//! since that holds the shard's row until the end.

use std::time::Instant;

use punctual_core::store::{Batch, Fence, Refusal, StoreError};

use crate::answer::Answer;
use crate::change::{Part, Statement, Writer};
use crate::connection::Stopped;
use crate::pool::Line;
use crate::sql::Sql;
use crate::trouble::{Trouble, code};
use crate::{MysqlStore, keeper};

type Outcome = Result<(), Refusal>;

/// A call to commit, from its first attempt to its last.
struct Call<'a> {
    store: &'a MysqlStore,
    batches: &'a [Batch],
    /// By shard, so that calls that meet wait for each other in the same order.
    order: Vec<usize>,
    outcomes: Vec<Option<Outcome>>,
    /// Whether an attempt may have happened without our hearing of it.
    is_doubtful: bool,
}

/// What becomes of a batch that did not go through as it was sent.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Settled(Outcome),
    /// It is the next one, and is sent again.
    Again,
    /// It was sent before, and may be among what is there.
    Unclear,
}

/// How a shard stands: the fence in force and the latest commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) fence: Fence,
    pub(crate) serial: u64,
}

pub(crate) fn commit(store: &MysqlStore, batches: &[Batch]) -> Result<Vec<Outcome>, StoreError> {
    let mut order: Vec<usize> = (0..batches.len()).collect();
    order.sort_by_key(|index| batches[*index].shard);
    let mut call = Call { store, batches, order, outcomes: vec![None; batches.len()], is_doubtful: false };
    store.pool.retry(|line, deadline| call.attempt(line, deadline))?;
    for (batch, outcome) in batches.iter().zip(&call.outcomes) {
        if batch.serial.is_multiple_of(keeper::FOLDED) && !batch.is_empty() && *outcome == Some(Ok(())) {
            store.keeper.fold(batch.shard);
        }
    }
    Ok(call.outcomes.into_iter().flatten().collect())
}

impl Call<'_> {
    /// Sends what is not settled until all is.
    fn attempt(&mut self, line: &mut Line<'_>, deadline: Instant) -> Result<(), Trouble> {
        loop {
            let pending: Vec<usize> =
                self.order.iter().copied().filter(|index| self.outcomes[*index].is_none()).collect();
            if pending.is_empty() {
                return Ok(());
            }
            let statements = self.statements(&pending);
            match self.send(line, &statements, deadline) {
                Ok(()) => {
                    self.store.hardships.forget();
                    pending.into_iter().for_each(|index| self.outcomes[index] = Some(Ok(())));
                }
                Err(stopped) => {
                    let part = statements.get(stopped.after).map_or(Part::Frame, |statement| statement.part);
                    self.take_in(line, part, stopped.why, deadline)?;
                }
            }
        }
    }

    fn statements(&self, pending: &[usize]) -> Vec<Statement> {
        let store = self.store;
        let writer = Writer { tables: &store.tables, product: store.server.product, chunk: store.packet() / 4 };
        let frame = |text: &str| Statement { sql: Sql::from(text), part: Part::Frame };
        let batches = pending.iter().flat_map(|index| writer.batch(*index, &self.batches[*index]));
        if pending.iter().all(|index| self.batches[*index].is_empty()) {
            return batches.collect();
        }
        let mut statements = vec![frame("BEGIN")];
        statements.extend(batches);
        statements.push(frame("COMMIT"));
        statements
    }

    /// Sends the statements in as few round trips as their length allows.
    fn send(&mut self, line: &mut Line<'_>, statements: &[Statement], deadline: Instant) -> Result<(), Stopped> {
        let mut done = 0;
        while done < statements.len() {
            let mut text = Sql::default();
            let mut end = done;
            while end < statements.len()
                && (end == done || text.len() + statements[end].sql.len() < self.store.packet())
            {
                text.then(&statements[end].sql);
                end += 1;
            }
            if text.len() > self.store.packet() {
                let why = format!(
                    "a task does not fit into a packet of {} bytes: raise max_allowed_packet",
                    self.store.packet()
                );
                return Err(Stopped { after: done, why: Trouble::Foreign(why) });
            }
            line.ask(&text, deadline).map_err(|stopped| Stopped { after: done + stopped.after, ..stopped })?;
            done = end;
        }
        Ok(())
    }

    /// Finds out what a failure means.
    fn take_in(&mut self, line: &mut Line<'_>, part: Part, why: Trouble, deadline: Instant) -> Result<(), Trouble> {
        match (part, why.code()) {
            (Part::Turn(index), Some(code::OUT_OF_RANGE)) => self.settle(line, index, deadline),
            (Part::Rows(index), Some(code::OUT_OF_RANGE | code::DUPLICATE | code::NOT_NULL)) => {
                line.roll_back_and_ask(&Sql::default(), deadline)?;
                let what =
                    format!("shard {}, commit {}: {why}", self.batches[index].shard.0, self.batches[index].serial);
                self.outcomes[index] = Some(Err(Refusal::Astray(what)));
                Ok(())
            }
            (part, code) => {
                why.hardship().into_iter().for_each(|hardship| self.store.hardships.note(hardship));
                // What the server refuses before the end is rolled back; of everything else nobody knows.
                self.is_doubtful |= code.is_none() || part == Part::Frame;
                if code.is_some() {
                    // If this fails too, the connection is closed, and with it the transaction.
                    let _ = line.roll_back_and_ask(&Sql::default(), deadline);
                }
                Err(why)
            }
        }
    }

    /// Judges the batches of a shard whose turn it is not.
    fn settle(&mut self, line: &mut Line<'_>, index: usize, deadline: Instant) -> Result<(), Trouble> {
        let shard = self.batches[index].shard;
        let answers = line.roll_back_and_ask(&self.store.standing_of(shard), deadline)?;
        let mut standing = Standing::read(answers.into_iter().next())?;
        for (batch, outcome) in self.batches.iter().zip(&mut self.outcomes) {
            if batch.shard != shard || outcome.is_some() {
                continue;
            }
            match judge(batch, standing, self.is_doubtful) {
                Verdict::Settled(settled) => *outcome = Some(settled),
                // Those after it are judged as if it were there, which it will be before them.
                Verdict::Again => standing.serial = batch.serial,
                Verdict::Unclear => {
                    let why =
                        "a commit was cut off, and the shard has another owner since: whether it happened is not known";
                    return Err(Trouble::Unclear(why.to_owned()));
                }
            }
        }
        Ok(())
    }
}

impl Standing {
    /// How the shard stands of which this is the row; one without a row was never claimed.
    pub(crate) fn read(answer: Option<Answer>) -> Result<Standing, Trouble> {
        let Some(mut record) = answer.and_then(|answer| answer.rows().into_iter().next()) else {
            return Ok(Standing::default());
        };
        Ok(Standing { fence: Fence(record.number()?), serial: record.number()? })
    }

    /// Why one who writes under this fence, and says that all up to this commit is there, is refused.
    pub(crate) fn refusal(self, fence: Fence, before: u64) -> Option<Refusal> {
        let is_owner = self.fence == fence && fence != Fence::default();
        let has_lost = self.serial < before;
        // A fence below the writer's own is that of a store that went back: with what it had confirmed, or without.
        if has_lost && self.fence <= fence && fence != Fence::default() {
            return Some(Refusal::Lost { expected: before, found: self.serial });
        }
        (!is_owner).then_some(Refusal::Fenced { current: self.fence })
    }
}

fn judge(batch: &Batch, standing: Standing, is_doubtful: bool) -> Verdict {
    let before = if batch.is_empty() { batch.serial } else { batch.serial.saturating_sub(1) };
    match standing.refusal(batch.fence, before) {
        Some(Refusal::Fenced { .. }) if is_doubtful && !batch.is_empty() && standing.serial >= batch.serial => {
            Verdict::Unclear
        }
        Some(refusal) => Verdict::Settled(Err(refusal)),
        None if standing.serial >= batch.serial => Verdict::Settled(Ok(())),
        None => Verdict::Again,
    }
}
