//! Work on many rows: stretch by stretch, one stretch of each job in a step, so that nothing else waits.

use std::collections::{BTreeMap, BTreeSet};

use super::Shard;
use super::course::{Course, STRETCH};
use super::desk::Slot;
use super::directory::Closed;
use super::stretch::Stretch;
use super::sweep::Outcome;
use crate::answer::{Answer, Swept};
use crate::name::Name;
use crate::store::{Key, Position, Table};
use crate::sweep::{Preview, Sweep, SweepAction, SweepEnd, TimeRange};
use crate::time::{Millis, Timestamp};

/// How many rows a preview counts at most: somebody waits for it.
const COUNTED: u64 = 1_000_000;
/// How many rows a sweep without a number remembers for which it was too late.
const REMEMBERED: usize = 1 << 16;

/// Work that takes several steps.
#[derive(Debug)]
pub(super) struct Job<R> {
    pub(super) work: Work,
    /// Who waits for its end; nobody, if it goes on with what a crash cut short.
    pub replies: Vec<R>,
    /// For whom it is done.
    pub(super) by: Option<Name>,
    pub(super) course: Course,
    /// Where to go on: a number for tasks of a key, a position else.
    pub(super) cursor: Position,
    /// Rows with a higher number came after the job.
    pub(super) last_seq: u64,
    pub(super) started_at: Timestamp,
    /// It has come to what died or finished in the future: while the clock was wrong.
    pub(super) is_beyond: bool,
    pub(super) swept: Swept,
    /// Rows that come next, some in each step: those that were named, and deliveries that changed in the step in which
    /// they were met, when their tasks were not at hand.
    pub(super) left: Vec<Key>,
    /// What a dry run found room for, by queue: it is not there to be counted.
    promised: BTreeMap<Name, u64>,
    /// Whether a deletion may have missed rows since it began to pass, the last time: it is the first time, or it has
    /// cleared something away.
    may_have_missed: bool,
    /// Rows for which a sweep without a number was too late: they move on, and it may come to them again.
    missed: BTreeSet<u64>,
    /// The sweep's number, if it goes on by itself (`sweeping.rs`).
    pub(super) number: Option<u64>,
    /// Between which times the rows stand that it has changed.
    pub(super) span: Option<(Timestamp, Timestamp)>,
    /// Somebody has ended it.
    pub(super) is_stopped: bool,
    /// Some rows that it would change, if it is a preview.
    samples: Option<Vec<Key>>,
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

    /// In which order it comes to its rows, if it begins now.
    pub fn course(&self, now: Timestamp) -> Course {
        match self {
            Work::Sweep(sweep) => Course::of(&sweep.matching, now),
            Work::Delete { what: Closed::Topic(_), name, tables } => Course::table(tables[0], Some(name.clone())),
            Work::Delete { what: Closed::Queue(_), tables, .. } => Course::table(tables[0], None),
        }
    }
}

impl<R> Job<R> {
    pub fn new(work: Work, replies: Vec<R>, next_seq: u64, now: Timestamp) -> Job<R> {
        let course = work.course(now);
        Job {
            work,
            replies,
            by: None,
            cursor: course.start(),
            course,
            last_seq: next_seq.saturating_sub(1),
            started_at: now,
            is_beyond: false,
            swept: Swept::default(),
            left: Vec::new(),
            promised: BTreeMap::new(),
            may_have_missed: true,
            missed: BTreeSet::new(),
            number: None,
            span: None,
            is_stopped: false,
            samples: None,
        }
    }

    /// One that somebody has asked for under this name.
    pub fn by(self, by: Option<&Name>) -> Job<R> {
        Job { by: by.cloned(), ..self }
    }

    /// One that only looks, and shows some of what it sees.
    pub fn preview(self) -> Job<R> {
        Job { samples: Some(Vec::new()), ..self }
    }

    /// What it deletes, if it does.
    pub fn deletes(&self) -> Option<Closed> {
        match &self.work {
            Work::Delete { what, .. } => Some(*what),
            Work::Sweep(_) => None,
        }
    }

    /// What is left to be looked at in the next step.
    pub fn left(&self) -> &[Key] {
        &self.left[..self.left.len().min(STRETCH)]
    }

    /// The time to which a sweep keeps, if what it goes over is there since some time.
    fn range(&self) -> Option<TimeRange> {
        match (&self.work, &self.course) {
            (Work::Sweep(_), Course::Time { table: Table::Dead | Table::History, range, .. }) => Some(*range),
            _ => None,
        }
    }

    /// The rows to work on next.
    pub fn next_stretch(&self) -> Stretch {
        let until = match (self.range(), &self.course) {
            // What dies or finishes after the job began is not meant.
            (Some(range), _) if !self.is_beyond => range.until.min(self.started_at.plus(Millis(1))),
            (_, Course::Time { range, .. }) => range.until,
            (_, Course::Key { .. } | Course::Named) => Timestamp::NEVER,
        };
        self.course.stretch(self.cursor, until)
    }

    /// Moves on behind a stretch; says whether it was the last one.
    fn pass(&mut self, stretch: &Stretch, now: Timestamp) -> bool {
        if let Some(last) = stretch.rows.last() {
            self.cursor = self.course.place(last.position()).next();
        }
        if let Some(next) = stretch.next {
            self.cursor = next;
            return false;
        }
        match &mut self.work {
            Work::Delete { tables, .. } if tables.len() > 1 => {
                tables.remove(0);
                self.begin_again(now);
                false
            }
            Work::Sweep(_) => !self.go_beyond(now),
            _ => true,
        }
    }

    fn begin_again(&mut self, now: Timestamp) {
        self.course = self.work.course(now);
        self.cursor = self.course.start();
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

    /// Whether nothing more is to be done, though rows are left.
    fn is_over(&self) -> bool {
        self.is_stopped || (self.samples.is_some() && self.swept.matched >= COUNTED)
    }

    /// Counts what came of a row that stands between these times now.
    fn count(&mut self, outcome: Outcome, seq: u64, (first, last): (Timestamp, Timestamp)) {
        match outcome {
            Outcome::Passed => return,
            Outcome::Changed => {
                self.swept.changed += 1;
                let span = self.span.get_or_insert((first, last));
                *span = (span.0.min(first), span.1.max(last));
            }
            Outcome::TooLate => {
                self.swept.too_late += 1;
                if self.number.is_none() && self.missed.len() < REMEMBERED {
                    self.missed.insert(seq);
                }
            }
            Outcome::NoRoom => self.swept.no_room += 1,
        }
        self.swept.matched += 1;
    }
}

impl<R> Shard<R> {
    /// Works on the stretches that were read. Jobs that began in this step have none yet.
    pub(super) fn go_on_with_jobs(&mut self, stretches: Vec<Stretch>) {
        // Requests of this step have begun jobs since stretches were asked for: those stand behind the ones with stretches.
        let mut jobs = std::mem::take(&mut self.jobs);
        let fresh = jobs.split_off(stretches.len());
        for (mut job, stretch) in jobs.into_iter().zip(stretches) {
            if job.is_over() {
                self.end_job(job);
                continue;
            }
            let before = (job.swept, job.left.len());
            let next = job.left().len();
            let left: Vec<Key> = job.left.drain(..next).collect();
            let (read, changed) = self.stretch_rows(&job, &stretch);
            for key in left.into_iter().chain(read) {
                self.work_on(&mut job, &key);
            }
            for key in changed {
                // What changed in this very step was not foreseen when this step's rows were read.
                let is_alone = !key.queue().is_empty() && self.desk.by_key(&key.of_task()).is_none();
                if is_alone { job.left.push(key) } else { self.work_on(&mut job, &key) }
            }
            let is_last = job.pass(&stretch, self.now);
            self.catch_up(&mut job);
            if is_last && job.left.is_empty() {
                self.end_job(job);
            } else {
                if before != (job.swept, job.left.len()) {
                    self.note_progress(&job, None);
                }
                self.jobs.push(job);
            }
        }
        self.catch_up_with_each_other();
        self.draft.act_for(None);
        self.jobs.extend(fresh);
    }

    /// Comes to rows that have got behind a sweep in this step, and that it has not come to. They are known by their marks
    /// afterwards, so those without a number leave it.
    fn catch_up(&mut self, job: &mut Job<R>) {
        let Work::Sweep(sweep) = &job.work else { return };
        let is_by_time = matches!(job.course, Course::Time { table: Table::Live, .. });
        if job.number.is_none() || !is_by_time || sweep.action == SweepAction::Undo {
            return;
        }
        let is_behind = |slot: &&Slot| {
            let row = &self.desk[**slot];
            let stands_there = !row.is_gone() && row.table() == Table::Live && row.position() < job.cursor;
            let is_new = stands_there && self.was_there(**slot, job) && !self.was_met(**slot, job.number);
            is_new && self.matches(**slot, sweep)
        };
        let behind: Vec<Key> =
            self.desk.touched().iter().filter(is_behind).map(|slot| self.desk[*slot].key().clone()).collect();
        behind.iter().for_each(|key| self.work_on(job, key));
    }

    /// What one sweep moves may get behind another.
    fn catch_up_with_each_other(&mut self) {
        if self.jobs.len() < 2 {
            return;
        }
        let mut jobs = std::mem::take(&mut self.jobs);
        for _ in 0..jobs.len() {
            for job in &mut jobs {
                let before = job.swept;
                self.catch_up(job);
                if before != job.swept {
                    self.note_progress(job, None);
                }
            }
        }
        self.jobs = jobs;
    }

    /// The rows of a stretch, and those in its range that the store does not show yet.
    fn stretch_rows(&self, job: &Job<R>, stretch: &Stretch) -> (Vec<Key>, Vec<Key>) {
        let keys: Vec<Key> = stretch.rows.iter().map(|row| row.key.clone()).collect();
        let Some(table) = job.course.through() else { return (keys, Vec::new()) };
        let unseen = self.desk.dirty().filter(|slot| {
            let row = &self.desk[*slot];
            let position = job.course.place(row.position());
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
        self.draft.act_for(job.by.clone());
        // What of a task goes with a deletion is not to be moved on by a sweep: the deletion would not find it any more.
        self.clear_up_parts(key);
        let Some(slot) = self.desk.by_key(key) else { return };
        if self.clear_up(slot) {
            job.may_have_missed = true;
            return;
        }
        match &job.work {
            Work::Sweep(sweep) => {
                let seq = self.desk[slot].seq();
                let is_new = self.was_there(slot, job) && !job.missed.contains(&seq) && !self.was_met(slot, job.number);
                if is_new && self.matches(slot, sweep) {
                    let outcome = match sweep.dry_run {
                        true => self.would_change(slot, sweep, &mut job.promised),
                        false => self.sweep_one(slot, sweep, job.number),
                    };
                    if matches!(outcome, Outcome::TooLate | Outcome::NoRoom) {
                        self.note_met(slot, sweep, job.number);
                    }
                    let samples = job.samples.as_mut().filter(|samples| samples.len() < Preview::SAMPLES);
                    if let Some(samples) = samples.filter(|_| matches!(outcome, Outcome::Changed)) {
                        samples.push(key.clone());
                    }
                    job.count(outcome, seq, self.stands_between(slot));
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
        let ended = SweepEnd { at: self.now, is_stopped: job.is_stopped };
        self.note_progress(&job, Some(ended));
        let more = job.is_over();
        let answer = match &job.work {
            Work::Sweep(_) => match job.samples.take() {
                Some(samples) => Answer::Preview(Preview { swept: job.swept, more, samples }),
                None => Answer::Swept(job.swept),
            },
            // Rows may have moved behind the cursor while it passed, or have yet to fire: then it passes again.
            Work::Delete { what, name, .. } if self.may_be_joined(*what) || self.is_in_doubt(&job, *what) => {
                job.work = Work::delete(*what, name.clone());
                job.begin_again(self.now);
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
