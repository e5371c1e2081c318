//! Deletions of topics and queues.
//!
//! A deletion takes effect in the step in which it is asked for: whoever asks for something that the topic or queue
//! held finds it gone from then on. The rows are cleared away stretch by stretch (`job.rs`), so that nothing else waits;
//! a mark among the settings makes that go on after a crash. Who asks for the same again meanwhile joins in.
//!
//! **Invariant**: what is being deleted stays in the directory until its one job is over. So a job never meets
//! another topic or queue of the same name.

use super::Shard;
use super::counts::kinds;
use super::desk::{Resident, Slot};
use super::directory::{Closed, Closing, QueueIndex, TopicIndex};
use super::job::{Job, Work};
use super::mend::Mended;
use super::open::{queue_key, queue_mark, topic_key, topic_mark};
use crate::adjustment::Subject;
use crate::answer::{Answer, Refused};
use crate::command::Command;
use crate::name::Name;
use crate::state::Ending;
use crate::store::{Key, Table, TallyKind};
use crate::stored::lay_mark;
use crate::time::Timestamp;

impl<R> Shard<R> {
    /// Deletes a topic or queue; answered when everything is cleared away.
    pub(super) fn delete(&mut self, subject: &Subject, force: bool, reply: R) {
        match self.close(subject, force) {
            Ok(closed) => self.join_deletion(closed, reply),
            Err(refused) => self.draft.answer(reply, Err(refused)),
        }
    }

    /// Begins to delete a topic or queue, unless that is under way.
    pub(super) fn close(&mut self, subject: &Subject, force: bool) -> Result<Closed, Refused> {
        match subject {
            Subject::Topic(name) => self.close_topic(name, force),
            Subject::Queue(name) => self.close_queue(name, force),
        }
    }

    fn close_topic(&mut self, name: &Name, force: bool) -> Result<Closed, Refused> {
        let index = self.directory.topic_index(name).ok_or_else(|| Refused::NoSuchTopic(name.clone()))?;
        if self.directory.topic(index).closing.is_some() {
            return Ok(Closed::Topic(index));
        }
        // History alone does not hold a topic: it goes with it.
        let history = self.directory.topic(index).count(TallyKind::History) + self.touched_history(index);
        let rows = self.topic_holds(index) - history;
        if rows > 0 && !force {
            return Err(Refused::NotEmpty { name: name.clone(), rows });
        }
        self.catalogue.put(topic_mark(name), lay_mark(self.now));
        self.begin_deletion(Closed::Topic(index), name, self.now, self.numbers.next_row());
        Ok(Closed::Topic(index))
    }

    fn close_queue(&mut self, name: &Name, force: bool) -> Result<Closed, Refused> {
        let index = self.directory.queue_index(name).ok_or_else(|| Refused::NoSuchQueue(name.clone()))?;
        if self.directory.queue(index).closing.is_some() {
            return Ok(Closed::Queue(index));
        }
        let rows = self.queue_holds(index);
        if rows > 0 && !force {
            return Err(Refused::NotEmpty { name: name.clone(), rows });
        }
        if force {
            self.catalogue.put(queue_mark(name), lay_mark(self.now));
            self.begin_deletion(Closed::Queue(index), name, self.now, self.numbers.next_row());
            return Ok(Closed::Queue(index));
        }
        // What waits for its next attempt is not in the queue: it goes where its topic feeds then.
        self.directory.close_queue(index, Closing::new(self.now, self.numbers.next_row(), false));
        self.directory.reroute_to(name);
        self.remove_queue(index);
        Ok(Closed::Queue(index))
    }

    /// Begins to clear away, or goes on with it after the shard was opened anew.
    pub(super) fn begin_deletion(&mut self, what: Closed, name: &Name, since: Timestamp, first_after: u64) {
        let closing = Closing::new(since, first_after, true);
        match what {
            Closed::Topic(index) => self.directory.close_topic(index, closing),
            Closed::Queue(index) => {
                self.directory.close_queue(index, closing);
                self.directory.reroute_to(name);
            }
        }
        let job = Job::new(Work::delete(what, name.clone()), Vec::new(), self.numbers.next_row(), self.now);
        self.jobs.push(job.by(self.draft.acts_for()));
    }

    /// Somebody waits for a deletion that is under way: it is answered when that is over.
    pub(super) fn join_deletion(&mut self, what: Closed, reply: R) {
        match self.jobs.iter_mut().find(|job| job.deletes() == Some(what)) {
            Some(job) => job.replies.push(reply),
            // It held nothing and goes at the end of this step.
            None => self.draft.answer(reply, Ok(Answer::Deleted(0))),
        }
    }

    /// How many rows a topic holds, changes of this step included: those are counted at its end.
    fn topic_holds(&self, index: TopicIndex) -> u64 {
        let topic = self.directory.topic(index);
        let all = [TallyKind::Waiting, TallyKind::TopicLeased, TallyKind::TopicDead, TallyKind::History];
        let counted = all.into_iter().map(|kind| topic.count(kind)).sum::<u64>();
        // A task that was broadcast counts as its deliveries do.
        counted + self.touched_where(|row| row.topic() == index && kinds(row.table(), &row.state.phase).is_some())
    }

    fn touched_history(&self, index: TopicIndex) -> u64 {
        self.touched_where(|row| row.topic() == index && row.table() == Table::History)
    }

    /// How many deliveries and dead letters a queue holds, changes of this step included.
    fn queue_holds(&self, index: QueueIndex) -> u64 {
        let queue = self.directory.queue(index);
        let counted = queue.waiting() + queue.count(TallyKind::QueueLeased) + queue.count(TallyKind::QueueDead);
        counted
            + self.touched_where(|row| {
                let counts = row.table() == Table::Dead || (row.table() == Table::Live && !row.is_waiting());
                counts && row.state.queue.as_ref() == Some(&queue.name)
            })
    }

    fn touched_where(&self, matches: impl Fn(&Resident) -> bool) -> u64 {
        let touched = self.desk.touched().iter().map(|slot| &self.desk[*slot]);
        touched.filter(|row| !row.is_gone() && matches(row)).count() as u64
    }

    /// Whether there is something left of what is being deleted.
    pub(super) fn holds(&self, what: Closed) -> bool {
        match what {
            Closed::Topic(index) => self.topic_holds(index) > 0,
            Closed::Queue(index) => self.queue_holds(index) > 0,
        }
    }

    /// Whether something may still fire that goes with a queue: it came due before the deletion began. Nothing but
    /// firing tells where such a row is, so after a crash all of them have to be read and to fire first.
    pub(super) fn may_be_joined(&mut self, what: Closed) -> bool {
        let Closed::Queue(index) = what else { return false };
        let Some(closing) = &self.directory.queue(index).closing else { return false };
        let since = closing.since;
        self.timers.may_fire_before(since)
    }

    /// All rows were looked at and none of them goes with a deletion, but by its counts there are some. So the counts are
    /// wrong: a deletion is not to look for ever for what is not there.
    pub(super) fn mend_emptied(&mut self, what: Closed) {
        let emptied = match what {
            Closed::Topic(index) => self.directory.tallies_of_topic(index),
            Closed::Queue(index) => self.directory.tallies_of_queue(index),
        };
        for (tally, stored) in emptied.into_iter().filter(|(_, stored)| *stored != 0) {
            self.directory.mend(&tally, 0);
            self.draft.mended([Mended { tally, stored, right: 0 }]);
        }
    }

    /// Whether something is known that goes with a deletion: it is ready, or the store does not show it as it is.
    pub(super) fn is_seen_to_hold(&self, what: Closed) -> bool {
        let is_stocked = matches!(what, Closed::Queue(index) if self.directory.queue(index).waiting() > 0);
        is_stocked || self.desk.dirty().any(|slot| !self.desk[slot].is_gone() && self.going(slot).is_some())
    }

    /// Everything it held is gone: now it goes itself. Says how much there was.
    pub(super) fn end_deletion(&mut self, what: Closed) -> u64 {
        match what {
            Closed::Topic(index) => self.remove_topic(index),
            Closed::Queue(index) => self.remove_queue(index),
        }
        self.directory.closing_mut(what).gone
    }

    fn remove_topic(&mut self, index: TopicIndex) {
        let topic = self.directory.topic(index);
        let (name, history) = (topic.name.clone(), topic.settings.history);
        self.catalogue.remove(topic_key(&name));
        self.catalogue.remove(topic_mark(&name));
        self.buckets.renew(Subject::Topic(name.clone()), None);
        self.retained.history.drop(history);
        self.draft.topic_gone(name);
        self.directory.let_go(Closed::Topic(index));
    }

    fn remove_queue(&mut self, index: QueueIndex) {
        let (name, settings) = (self.directory.queue(index).name.clone(), self.directory.queue(index).settings.clone());
        self.catalogue.remove(queue_key(&name));
        self.catalogue.remove(queue_mark(&name));
        self.buckets.renew(Subject::Queue(name.clone()), None);
        self.end_retention(&settings);
        self.draft.queue_gone(name.clone());
        self.stock.forget(name);
        self.directory.let_go(Closed::Queue(index));
    }

    /// The deletion that a row goes with.
    pub(super) fn going(&self, slot: Slot) -> Option<Closed> {
        if self.directory.is_at_rest() {
            return None;
        }
        let row = &self.desk[slot];
        if self.directory.topic(row.topic()).closing.is_some() {
            return Some(Closed::Topic(row.topic()));
        }
        if !matches!(row.table(), Table::Live | Table::Dead) {
            return None;
        }
        let named = || row.state.queue.as_ref().and_then(|queue| self.directory.queue_index(queue));
        let queue = row.ready_in().or_else(named)?;
        let is_forced = self.directory.queue(queue).closing.as_ref().is_some_and(|closing| closing.is_forced);
        is_forced.then_some(Closed::Queue(queue))
    }

    /// Clears a row away if it goes with a deletion. One of several deliveries needs its task at hand for that.
    pub(super) fn clear_up(&mut self, slot: Slot) -> bool {
        let Some(what) = self.going(slot) else { return false };
        match what {
            Closed::Topic(_) => {
                self.directory.closing_mut(what).gone += u64::from(!self.desk[slot].is_part());
                self.erase_family(slot);
            }
            Closed::Queue(_) => {
                self.directory.closing_mut(what).gone += 1;
                match self.desk[slot].table() {
                    Table::Dead => self.purge(slot),
                    _ => self.end(slot, Ending::Cancelled),
                }
            }
        }
        true
    }

    /// Removes a row and, if it is a task that was broadcast, those of its deliveries that are at hand: none of them
    /// is to be left without its task.
    fn erase_family(&mut self, slot: Slot) {
        for key in self.open_part_keys(slot) {
            if let Some(part) = self.desk.by_key(&key) {
                self.erase(part);
            }
        }
        self.erase(slot);
    }

    /// Before something is done to a row or said of it: what of it, its task and its deliveries goes with a deletion
    /// is cleared away, so that the answer is as if the deletion were over.
    pub(super) fn clear_up_before(&mut self, command: &Command) {
        if self.directory.is_at_rest() {
            return;
        }
        let Some(key) = command.row() else { return };
        self.clear_up_parts(&key);
        for key in [&key, &key.of_task()] {
            if let Some(slot) = self.desk.by_key(key) {
                self.clear_up(slot);
            }
        }
    }

    /// Clears away those deliveries of a row's task that go with a deletion and are at hand.
    pub(super) fn clear_up_parts(&mut self, key: &Key) {
        let task = self.desk.by_key(&key.of_task()).filter(|_| !self.directory.is_at_rest());
        for key in task.map(|task| self.open_part_keys(task)).unwrap_or_default() {
            if let Some(slot) = self.desk.by_key(&key) {
                self.clear_up(slot);
            }
        }
    }
}
