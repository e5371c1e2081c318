//! Work on many rows: page by page, one page of each job in a step, so that nothing else waits.

use std::collections::BTreeSet;

use super::Shard;
use super::desk::Slot;
use super::page::{Page, Wanted};
use crate::answer::{Answer, Refused, Reply, Swept};
use crate::command::{Matching, Shift, Sweep, SweepAction, TimeRange};
use crate::event::What;
use crate::name::Name;
use crate::state::{Ending, Phase};
use crate::store::{Bodies, Find, Key, Position, Scan, Table};
use crate::time::{Millis, Timestamp};

/// How many rows a job changes in one step.
const PAGE: usize = 256;

/// Work that takes several steps.
#[derive(Debug)]
pub(super) struct Job<R> {
    work: Work,
    reply: R,
    /// Where to go on: a number for tasks of a key, a position else.
    cursor: Position,
    /// Rows with a higher number came after the job.
    last_seq: u64,
    started_at: Timestamp,
    /// It has come to what died or finished in the future: while the clock was wrong.
    is_beyond: bool,
    swept: Swept,
}

#[derive(Debug)]
pub(super) enum Work {
    Sweep(Sweep),
    /// Removes all rows of a topic, table by table.
    DeleteTopic {
        name: Name,
        tables: Vec<Table>,
    },
    /// Removes all deliveries and dead letters of a queue, table by table.
    DeleteQueue {
        name: Name,
        tables: Vec<Table>,
    },
}

impl Work {
    pub fn delete_topic(name: Name) -> Work {
        Work::DeleteTopic { name, tables: vec![Table::Live, Table::Dead, Table::History] }
    }

    pub fn delete_queue(name: Name) -> Work {
        Work::DeleteQueue { name, tables: vec![Table::Live, Table::Dead] }
    }
}

impl<R> Job<R> {
    pub fn new(work: Work, reply: R, next_seq: u64, now: Timestamp) -> Job<R> {
        let mut job = Job {
            work,
            reply,
            cursor: Position::START,
            last_seq: next_seq.saturating_sub(1),
            started_at: now,
            is_beyond: false,
            swept: Swept::default(),
        };
        if let Some(range) = job.range() {
            job.cursor = Position::start_of(range.from);
        }
        job
    }

    fn range(&self) -> Option<TimeRange> {
        match &self.work {
            Work::Sweep(Sweep { matching: Matching::Dead { died: range, .. }, .. })
            | Work::Sweep(Sweep { matching: Matching::History { finished: range, .. }, .. }) => Some(*range),
            _ => None,
        }
    }

    /// The rows to work on next.
    pub fn next_page(&self) -> Page {
        let scan = |table, topic: Option<&Name>, until| {
            let topic = topic.cloned();
            Page::scan(Scan { table, from: self.cursor, until, topic, limit: PAGE, bodies: Bodies::Without })
        };
        match &self.work {
            Work::Sweep(Sweep { matching: Matching::Key { key, .. }, .. }) => Page::find(Find {
                table: Table::Live,
                group: key.clone(),
                from_seq: self.cursor.seq,
                limit: PAGE,
                bodies: Bodies::Without,
            }),
            Work::Sweep(Sweep { matching: Matching::Dead { topic, died, .. }, .. }) => {
                scan(Table::Dead, topic.as_ref(), self.until(died))
            }
            Work::Sweep(Sweep { matching: Matching::History { topic, finished, .. }, .. }) => {
                scan(Table::History, Some(topic), self.until(finished))
            }
            Work::DeleteTopic { name, tables } => scan(tables[0], Some(name), Timestamp::NEVER),
            Work::DeleteQueue { tables, .. } => scan(tables[0], None, Timestamp::NEVER),
        }
    }

    /// What dies or finishes after the job began is not meant.
    fn until(&self, range: &TimeRange) -> Timestamp {
        if self.is_beyond { range.until } else { range.until.min(self.started_at.plus(Millis(1))) }
    }

    /// Moves on behind a page; says whether it was the last one.
    fn pass(&mut self, page: &Page, now: Timestamp) -> bool {
        if let Some(last) = page.rows.last() {
            self.cursor = last.position().next();
            if let Work::Sweep(Sweep { matching: Matching::Key { .. }, .. }) = self.work {
                self.cursor = Position { at: Timestamp::ZERO, seq: last.seq + 1 };
            }
        }
        if !page.is_last() {
            return false;
        }
        match &mut self.work {
            Work::DeleteTopic { tables, .. } | Work::DeleteQueue { tables, .. } if tables.len() > 1 => {
                tables.remove(0);
                self.cursor = Position::START;
                false
            }
            Work::Sweep(_) => !self.go_beyond(now),
            _ => true,
        }
    }
}

impl<R> Job<R> {
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
    /// Begins to change all that match; a delay counts `from` when that was asked for, however many steps it takes.
    pub(super) fn start_sweep(&mut self, mut sweep: Sweep, reply: R, from: Timestamp) {
        let fits = matches!(
            (&sweep.matching, sweep.action),
            (Matching::Key { .. }, SweepAction::Cancel | SweepAction::Shift(_))
                | (Matching::Dead { .. }, SweepAction::Replay | SweepAction::Purge)
                | (Matching::History { .. }, SweepAction::Replay)
        );
        if !fits {
            let message = format!("{:?} does not apply to {:?}", sweep.action, sweep.matching);
            return self.answers.push((reply, Err(Refused::BadSettings(message))));
        }
        if let SweepAction::Shift(shift @ Shift::In(_)) = &mut sweep.action {
            *shift = Shift::To(shift.apply(Timestamp::ZERO, self.now, from));
        }
        self.jobs.push(Job::new(Work::Sweep(sweep), reply, self.numbers.next_row(), self.now));
    }

    /// Works on the pages that were read. Jobs that began in this step have none yet.
    pub(super) fn go_on_with_jobs(&mut self, pages: Vec<Page>) {
        let mut jobs = std::mem::take(&mut self.jobs);
        let fresh = jobs.split_off(pages.len());
        for (mut job, page) in jobs.into_iter().zip(pages) {
            for row in self.page_rows(&job, &page) {
                self.work_on(&mut job, &row);
            }
            if job.pass(&page, self.now) { self.end_job(job) } else { self.jobs.push(job) }
        }
        self.jobs.extend(fresh);
    }

    /// The rows of a page, and those in its range that the store does not show yet.
    fn page_rows(&self, job: &Job<R>, page: &Page) -> Vec<Key> {
        let mut keys: Vec<Key> = page.rows.iter().map(|row| row.key.clone()).collect();
        let by_seq = matches!(job.work, Work::Sweep(Sweep { matching: Matching::Key { .. }, .. }));
        let place =
            |position: Position| if by_seq { Position { at: Timestamp::ZERO, seq: position.seq } } else { position };
        let end = page.rows.last().filter(|_| !page.is_last()).map(|row| place(row.position()));
        let table = job.next_page().table();
        let unseen = self.desk.dirty().filter(|slot| {
            let row = &self.desk[*slot];
            let position = place(row.position());
            !row.gone && row.table == table && position >= job.cursor && end.is_none_or(|end| position <= end)
        });
        let known: BTreeSet<&Key> = page.rows.iter().map(|row| &row.key).collect();
        let unseen: Vec<Key> =
            unseen.map(|slot| self.desk[slot].key.clone()).filter(|key| !known.contains(key)).collect();
        keys.extend(unseen);
        keys
    }

    fn work_on(&mut self, job: &mut Job<R>, key: &Key) {
        let Some(slot) = self.desk.by_key(key) else { return };
        match &job.work {
            Work::Sweep(sweep) => {
                if self.was_there(slot, job) && self.matches(slot, sweep) {
                    let changed =
                        if sweep.dry_run { self.would_change(slot, sweep) } else { self.sweep_one(slot, sweep) };
                    job.swept.matched += 1;
                    job.swept.changed += u64::from(changed);
                    job.swept.too_late += u64::from(!changed);
                }
            }
            Work::DeleteTopic { name, .. } => {
                if self.desk[slot].key.topic() == name.as_str() {
                    job.swept.changed += u64::from(!self.desk[slot].is_part());
                    self.erase(slot);
                }
            }
            Work::DeleteQueue { name, .. } => {
                if self.belongs_to(slot, name) {
                    job.swept.changed += 1;
                    match self.desk[slot].table {
                        Table::Dead => self.purge(slot),
                        _ => self.end(slot, Ending::Cancelled),
                    }
                }
            }
        }
    }

    /// Whether a row stood where it stands when the job began.
    fn was_there(&self, slot: Slot, job: &Job<R>) -> bool {
        let row = &self.desk[slot];
        let in_time = row.at <= job.started_at || row.at > self.now;
        row.seq <= job.last_seq && (row.table == Table::Live || in_time)
    }

    fn belongs_to(&self, slot: Slot, queue: &Name) -> bool {
        let row = &self.desk[slot];
        let ready_in = row.ready_in.map(|index| &self.directory.queue(index).name);
        let is_open = matches!(row.table, Table::Live | Table::Dead);
        is_open && (row.state.queue.as_ref() == Some(queue) || ready_in == Some(queue))
    }

    fn matches(&self, slot: Slot, sweep: &Sweep) -> bool {
        let row = &self.desk[slot];
        if !sweep.within.fits(row.key.topic()) {
            return false;
        }
        match &sweep.matching {
            Matching::Key { key, topic } => {
                let of_topic = topic.as_ref().is_none_or(|topic| row.key.topic() == topic.as_str());
                row.table == Table::Live && row.group.as_ref() == Some(key) && of_topic && !row.is_part()
            }
            Matching::Dead { topic, queue, died } => {
                let of_topic = topic.as_ref().is_none_or(|topic| row.key.topic() == topic.as_str());
                let of_queue = queue.as_ref().is_none_or(|queue| row.state.queue.as_ref() == Some(queue));
                row.table == Table::Dead && of_topic && of_queue && (died.from..died.until).contains(&row.at)
            }
            Matching::History { topic, finished, ending } => {
                let in_time = (finished.from..finished.until).contains(&row.at);
                let ended_so = ending.is_none_or(|ending| row.state.phase == Phase::Finished(ending));
                row.table == Table::History && row.key.topic() == topic.as_str() && in_time && ended_so
            }
        }
    }

    fn would_change(&self, slot: Slot, sweep: &Sweep) -> bool {
        !matches!(sweep.matching, Matching::Key { .. }) || self.is_open(slot)
    }

    fn sweep_one(&mut self, slot: Slot, sweep: &Sweep) -> bool {
        match sweep.action {
            SweepAction::Cancel => self.change_by_key(slot, None, self.now),
            SweepAction::Shift(shift) => self.change_by_key(slot, Some(shift), self.now),
            SweepAction::Replay => self.replay(slot),
            SweepAction::Purge => {
                self.purge(slot);
                true
            }
        }
    }

    fn end_job(&mut self, mut job: Job<R>) {
        // Rows may have moved behind the cursor while it passed: then it passes again.
        let again = match &job.work {
            Work::Sweep(_) => None,
            Work::DeleteTopic { name, .. } => {
                Some(Work::delete_topic(name.clone())).filter(|_| self.topic_holds(name) > 0)
            }
            Work::DeleteQueue { name, .. } => {
                Some(Work::delete_queue(name.clone())).filter(|_| self.queue_holds(name) > 0)
            }
        };
        if let Some(work) = again {
            job.work = work;
            job.cursor = Position::START;
            return self.jobs.push(job);
        }
        let answer = match &job.work {
            Work::Sweep(_) => Answer::Swept(job.swept),
            Work::DeleteTopic { name, .. } => {
                self.close_topic(name);
                Answer::Deleted(job.swept.changed)
            }
            Work::DeleteQueue { name, .. } => {
                self.close_queue(name);
                Answer::Deleted(job.swept.changed)
            }
        };
        self.answers.push((job.reply, Ok(answer)));
    }

    pub(super) fn replay_one(&mut self, key: &Key) -> Reply {
        let slot = self.desk.by_key(key).filter(|slot| matches!(self.desk[*slot].table, Table::Dead | Table::History));
        match slot {
            Some(slot) if self.replay(slot) => Ok(Answer::Replayed),
            _ => Err(Refused::NothingThere),
        }
    }

    pub(super) fn purge_one(&mut self, key: &Key) -> Reply {
        let slot = self.desk.by_key(key).filter(|slot| self.desk[*slot].table == Table::Dead);
        let Some(slot) = slot else { return Err(Refused::NothingThere) };
        self.purge(slot);
        Ok(Answer::Purged)
    }

    /// Removes a finished task that somebody has looked at, if it is still the same. It has come to its end
    /// before, so there is nothing to tell.
    pub(super) fn forget_finished(&mut self, key: &Key, finished_at: Timestamp) -> Reply {
        let is_meant = |slot: &Slot| self.desk[*slot].table == Table::History && self.desk[*slot].at == finished_at;
        let Some(slot) = self.desk.by_key(key).filter(is_meant) else { return Err(Refused::NothingThere) };
        self.forget(slot);
        Ok(Answer::Purged)
    }

    /// Removes a dead letter because somebody said so.
    pub(super) fn purge(&mut self, slot: Slot) {
        self.note(slot, What::Purged);
        self.forget(slot);
    }

    /// Hands a dead letter or a finished task out again, as if it were new and due now. A dead
    /// letter goes back to its queue, a finished task to wherever its topic feeds. What is about
    /// to be deleted with its topic stays where it is.
    pub(super) fn replay(&mut self, slot: Slot) -> bool {
        if self.directory.topic(self.desk[slot].topic).closing {
            return false;
        }
        self.note(slot, What::Replayed);
        self.touch(slot);
        let row = &mut self.desk[slot];
        row.state.begin_anew();
        row.state.keep_delay();
        row.state.past_mut().replays += 1;
        row.state.due = self.now;
        if row.table == Table::History {
            row.state.queue = None;
        }
        self.wait_until(slot, self.now);
        true
    }
}

impl Page {
    fn table(&self) -> Table {
        match &self.wanted {
            Wanted::Scan(scan) => scan.table,
            Wanted::Find(find) => find.table,
        }
    }
}
