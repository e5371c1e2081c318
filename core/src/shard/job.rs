//! Work on many rows: stretch by stretch, one stretch of each job in a step, so that nothing else waits.

use std::collections::{BTreeMap, BTreeSet};

use super::Shard;
use super::desk::Slot;
use super::directory::Closed;
use super::stretch::Stretch;
use super::sweep::Outcome;
use crate::answer::{Answer, Swept};
use crate::command::{Matching, Sweep, TimeRange};
use crate::name::Name;
use crate::store::{Bodies, Find, Key, Position, Scan, Table};
use crate::time::{Millis, Timestamp};

/// How many rows a job changes in one step.
const STRETCH: usize = 256;

/// Work that takes several steps.
#[derive(Debug)]
pub(super) struct Job<R> {
    work: Work,
    /// Who waits for its end; nobody, if it goes on with what a crash cut short.
    pub replies: Vec<R>,
    /// Where to go on: a number for tasks of a key, a position else.
    cursor: Position,
    /// Rows with a higher number came after the job.
    last_seq: u64,
    started_at: Timestamp,
    /// It has come to what died or finished in the future: while the clock was wrong.
    is_beyond: bool,
    swept: Swept,
    /// Deliveries that changed in the step in which they were met, when their tasks were not at hand: they come next.
    left: Vec<Key>,
    /// What a dry run found room for, by queue: it is not there to be counted.
    promised: BTreeMap<Name, u64>,
    /// Whether a deletion may have missed rows since it began to pass, the last time: it is the first time, or it has
    /// cleared something away.
    may_have_missed: bool,
}

#[derive(Debug)]
pub(super) enum Work {
    Sweep(Sweep),
    /// Clears away all that goes with a topic or queue, table by table.
    Delete {
        what: Closed,
        name: Name,
        tables: Vec<Table>,
    },
}

impl Work {
    pub fn delete(what: Closed, name: Name) -> Work {
        let tables = match what {
            Closed::Topic(_) => vec![Table::Live, Table::Dead, Table::History],
            Closed::Queue(_) => vec![Table::Live, Table::Dead],
        };
        Work::Delete { what, name, tables }
    }
}

impl<R> Job<R> {
    pub fn new(work: Work, replies: Vec<R>, next_seq: u64, now: Timestamp) -> Job<R> {
        let mut job = Job {
            work,
            replies,
            cursor: Position::START,
            last_seq: next_seq.saturating_sub(1),
            started_at: now,
            is_beyond: false,
            swept: Swept::default(),
            left: Vec::new(),
            promised: BTreeMap::new(),
            may_have_missed: true,
        };
        if let Some(range) = job.range() {
            job.cursor = Position::start_of(range.from);
        }
        job
    }

    /// What it deletes, if it does.
    pub fn deletes(&self) -> Option<Closed> {
        match &self.work {
            Work::Delete { what, .. } => Some(*what),
            Work::Sweep(_) => None,
        }
    }

    /// What it has to look at once more.
    pub fn left(&self) -> &[Key] {
        &self.left
    }

    fn range(&self) -> Option<TimeRange> {
        match &self.work {
            Work::Sweep(Sweep { matching: Matching::Dead { died: range, .. }, .. })
            | Work::Sweep(Sweep { matching: Matching::History { finished: range, .. }, .. }) => Some(*range),
            _ => None,
        }
    }

    /// The rows to work on next.
    pub fn next_stretch(&self) -> Stretch {
        let scan = |table, topic: Option<&Name>, until| {
            let topic = topic.cloned();
            Stretch::scan(Scan { table, from: self.cursor, until, topic, limit: STRETCH, bodies: Bodies::Without })
        };
        match &self.work {
            Work::Sweep(Sweep { matching: Matching::Key { key, .. }, .. }) => Stretch::find(Find {
                table: Table::Live,
                group: key.clone(),
                from_seq: self.cursor.seq,
                limit: STRETCH,
                bodies: Bodies::Without,
            }),
            Work::Sweep(Sweep { matching: Matching::Dead { topic, died, .. }, .. }) => {
                scan(Table::Dead, topic.as_ref(), self.until(died))
            }
            Work::Sweep(Sweep { matching: Matching::History { topic, finished, .. }, .. }) => {
                scan(Table::History, Some(topic), self.until(finished))
            }
            Work::Delete { what: Closed::Topic(_), name, tables } => scan(tables[0], Some(name), Timestamp::NEVER),
            Work::Delete { what: Closed::Queue(_), tables, .. } => scan(tables[0], None, Timestamp::NEVER),
        }
    }

    /// What dies or finishes after the job began is not meant.
    fn until(&self, range: &TimeRange) -> Timestamp {
        if self.is_beyond { range.until } else { range.until.min(self.started_at.plus(Millis(1))) }
    }

    /// Moves on behind a stretch; says whether it was the last one.
    fn pass(&mut self, stretch: &Stretch, now: Timestamp) -> bool {
        if let Some(last) = stretch.rows.last() {
            self.cursor = last.position().next();
            if let Work::Sweep(Sweep { matching: Matching::Key { .. }, .. }) = self.work {
                self.cursor = Position { at: Timestamp::ZERO, seq: last.seq + 1 };
            }
        }
        if let Some(next) = stretch.next {
            self.cursor = next;
            return false;
        }
        match &mut self.work {
            Work::Delete { tables, .. } if tables.len() > 1 => {
                tables.remove(0);
                self.cursor = Position::START;
                false
            }
            Work::Sweep(_) => !self.go_beyond(now),
            _ => true,
        }
    }

    /// Goes on with what died or finished at a time that is still to come; says whether there may be any. The clock was
    /// wrong then, so that was before the job began.
    fn go_beyond(&mut self, now: Timestamp) -> bool {
        let beyond = now.plus(Millis(1));
        let is_new = !self.is_beyond && self.range().is_some_and(|range| range.until > beyond);
        if is_new {
            self.is_beyond = true;
            self.cursor = self.cursor.max(Position::start_of(beyond));
        }
        is_new
    }
}

impl<R> Shard<R> {
    /// Works on the stretches that were read. Jobs that began in this step have none yet.
    pub(super) fn go_on_with_jobs(&mut self, stretches: Vec<Stretch>) {
        // Requests of this step have begun jobs since stretches were asked for: those stand behind the ones with stretches.
        let mut jobs = std::mem::take(&mut self.jobs);
        let fresh = jobs.split_off(stretches.len());
        for (mut job, stretch) in jobs.into_iter().zip(stretches) {
            let left = std::mem::take(&mut job.left);
            let (read, changed) = self.stretch_rows(&job, &stretch);
            for key in left.into_iter().chain(read) {
                self.work_on(&mut job, &key);
            }
            for key in changed {
                // What changed in this very step was not foreseen when this step's rows were read.
                let is_alone = !key.queue().is_empty() && self.desk.by_key(&key.of_task()).is_none();
                if is_alone { job.left.push(key) } else { self.work_on(&mut job, &key) }
            }
            if job.pass(&stretch, self.now) && job.left.is_empty() { self.end_job(job) } else { self.jobs.push(job) }
        }
        self.jobs.extend(fresh);
    }

    /// The rows of a stretch, and those in its range that the store does not show yet.
    fn stretch_rows(&self, job: &Job<R>, stretch: &Stretch) -> (Vec<Key>, Vec<Key>) {
        let keys: Vec<Key> = stretch.rows.iter().map(|row| row.key.clone()).collect();
        let by_seq = matches!(job.work, Work::Sweep(Sweep { matching: Matching::Key { .. }, .. }));
        // Tasks of a key come by number, everything else by time: positions are compared as the stretch is ordered.
        let place =
            |position: Position| if by_seq { Position { at: Timestamp::ZERO, seq: position.seq } } else { position };
        let table = job.next_stretch().table();
        let unseen = self.desk.dirty().filter(|slot| {
            let row = &self.desk[*slot];
            let position = place(row.position());
            !row.is_gone()
                && row.table() == table
                && position >= job.cursor
                && stretch.next.is_none_or(|next| position < next)
        });
        // A row may be on the stretch as it was and on the desk as it is: it is met once.
        let known: BTreeSet<&Key> = stretch.rows.iter().map(|row| &row.key).collect();
        let unseen: Vec<Key> =
            unseen.map(|slot| self.desk[slot].key().clone()).filter(|key| !known.contains(key)).collect();
        (keys, unseen)
    }

    fn work_on(&mut self, job: &mut Job<R>, key: &Key) {
        // What of a task goes with a deletion is not to be moved on by a sweep: the deletion would not find it any more.
        self.clear_up_parts(key);
        let Some(slot) = self.desk.by_key(key) else { return };
        if self.clear_up(slot) {
            job.may_have_missed = true;
            return;
        }
        match &job.work {
            Work::Sweep(sweep) => {
                if self.was_there(slot, job) && self.matches(slot, sweep) {
                    job.swept.matched += 1;
                    let outcome = match sweep.dry_run {
                        true => self.would_change(slot, sweep, &mut job.promised),
                        false => self.sweep_one(slot, sweep),
                    };
                    match outcome {
                        Outcome::Changed => job.swept.changed += 1,
                        Outcome::TooLate => job.swept.too_late += 1,
                        Outcome::NoRoom => job.swept.no_room += 1,
                    }
                }
            }
            // Whatever goes with it has just been cleared away.
            Work::Delete { .. } => {}
        }
    }

    /// Whether a row stood where it stands when the job began.
    fn was_there(&self, slot: Slot, job: &Job<R>) -> bool {
        let row = &self.desk[slot];
        let in_time = row.at() <= job.started_at || row.at() > self.now;
        row.seq() <= job.last_seq && (row.table() == Table::Live || in_time)
    }

    fn end_job(&mut self, mut job: Job<R>) {
        let answer = match &job.work {
            Work::Sweep(_) => Answer::Swept(job.swept),
            // Rows may have moved behind the cursor while it passed, or have yet to fire: then it passes again.
            Work::Delete { what, name, .. } if self.may_be_joined(*what) || self.is_in_doubt(&job, *what) => {
                job.work = Work::delete(*what, name.clone());
                job.cursor = Position::START;
                job.may_have_missed = false;
                return self.jobs.push(job);
            }
            Work::Delete { what, .. } => {
                let what = *what;
                if self.holds(what) {
                    self.mend_emptied(what);
                }
                Answer::Deleted(self.end_deletion(what))
            }
        };
        for reply in job.replies {
            self.draft.answer(reply, Ok(answer.clone()));
        }
    }

    /// Whether something seems to be left of what a job deletes, and may be. If it has passed all rows twice and found
    /// none the second time, and none is known, only its counts say so, and they are wrong.
    fn is_in_doubt(&self, job: &Job<R>, what: Closed) -> bool {
        self.holds(what) && (job.may_have_missed || self.is_seen_to_hold(what))
    }
}
