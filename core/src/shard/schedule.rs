//! Taking tasks in, taking them back, and changing them while it is not too late.

use super::Shard;
use super::desk::{Resident, Slot};
use super::directory::TopicIndex;
use crate::answer::{Refused, Ruling, ScheduleOutcome, Scheduled};
use crate::command::{Reschedule, Schedule, Shift};
use crate::event::What;
use crate::name::Name;
use crate::settings::TopicSettings;
use crate::state::{Ending, Phase, State};
use crate::store::{Key, Table};
use crate::task::{Task, pack, unpack};
use crate::time::Timestamp;

impl<R> Shard<R> {
    /// Takes a task; its delay counts `from` when it was read.
    pub(super) fn schedule(&mut self, schedule: Schedule, from: Timestamp) -> Result<Scheduled, Refused> {
        let Schedule { task, id, .. } = schedule;
        self.config.limits.check(&task.body, &task.headers)?;
        task.check()?;
        let key = Key::task(&task.topic, &id);
        let old = self.desk.by_key(&key);
        if let Some(slot) = old.filter(|slot| !task.replace || !self.gives_way(*slot)) {
            let number = self.desk[slot].seq();
            return Ok(Scheduled { id, number, outcome: ScheduleOutcome::Existed(self.standing(slot)) });
        }
        let topic = self.open_topic(&task.topic)?;
        let due = task.when.due(self.now, from);
        if due <= self.now {
            self.check_room(&task, topic)?;
        }
        // Nothing is refused from here on, so that no topic comes to be for a task that was not taken.
        let topic = topic.unwrap_or_else(|| self.create_topic(&task.topic, TopicSettings::default()));
        if let Some(slot) = old {
            self.erase(slot);
        }
        let (what, outcome) = match old {
            Some(_) => (What::Replaced { due }, ScheduleOutcome::Replaced { due }),
            None => (What::Scheduled { due }, ScheduleOutcome::Created { due }),
        };
        let number = self.insert_task(key, topic, from.min(due), due, task, what);
        Ok(Scheduled { id, number, outcome })
    }

    /// Takes a task in and gives it a number.
    fn insert_task(
        &mut self,
        key: Key,
        topic: TopicIndex,
        scheduled_at: Timestamp,
        due: Timestamp,
        task: Task,
        what: What,
    ) -> u64 {
        let settings = &self.directory.topic(topic).settings;
        let state = State {
            phase: Phase::Waiting,
            scheduled_at,
            due,
            priority: task.priority.unwrap_or(settings.priority),
            ttl: task.ttl.or(settings.ttl),
            retry: task.retry,
            routing_key: task.routing_key,
            queue: None,
            attempts: 0,
            failures: 0,
            lease: task.lease,
            past: None,
            max_lease: task.max_lease,
            log: None,
            swept: None,
        };
        let body = pack(task.form, &task.headers, &task.body);
        let seq = self.numbers.row();
        let slot = self.desk.insert(Resident::new(key, seq, task.key, topic, state, Some(body)));
        self.happens(slot, what);
        self.wait_until(slot, due);
        seq
    }

    /// The topic of a new task; `None` if it is to be made.
    fn open_topic(&self, name: &Name) -> Result<Option<TopicIndex>, Refused> {
        let Some(index) = self.directory.topic_index(name) else {
            return if self.config.create_on_use { Ok(None) } else { Err(Refused::NoSuchTopic(name.clone())) };
        };
        let topic = self.directory.topic(index);
        if topic.closing.is_some() {
            return Err(Refused::BeingDeleted(name.clone()));
        }
        if topic.settings.paused {
            return Err(Refused::TopicPaused(name.clone()));
        }
        Ok(Some(index))
    }

    /// Whether another task of its id may take its place: it has not been handed out yet, or it is over. A dead
    /// letter stays until somebody has looked at it.
    fn gives_way(&self, slot: Slot) -> bool {
        let row = &self.desk[slot];
        row.table() == Table::History || (row.is_waiting() && row.state.attempts == 0)
    }

    pub(super) fn cancel(&mut self, key: &Key) -> Ruling<()> {
        let Some(slot) = self.desk.by_key(key) else { return Ruling::Unknown };
        let open = match self.open_parts(slot) {
            Ok(open) => open,
            Err(standing) => {
                // Who cancels what a sweep has cancelled does not want it back when that is undone.
                self.outdate_mark(slot);
                return Ruling::TooLate(standing);
            }
        };
        for part in open {
            self.end(part, Ending::Cancelled);
        }
        Ruling::Done(())
    }

    /// Changes a task; a new delay counts `from` when the change was read.
    pub(super) fn reschedule(&mut self, change: Reschedule, from: Timestamp) -> Result<Ruling<Timestamp>, Refused> {
        let key = Key::task(&change.topic, &change.id);
        let Some(slot) = self.desk.by_key(&key) else { return Ok(Ruling::Unknown) };
        let open = match self.open_parts(slot) {
            Ok(open) => open,
            Err(standing) => return Ok(Ruling::TooLate(standing)),
        };
        if let Some(shift) = change.shift {
            self.check_moved(&open, shift, from)?;
        }
        if let Some((form, body)) = &change.body {
            let headers = unpack(self.desk[slot].body().expect("the body was asked for")).headers;
            self.config.limits.check(body, &headers)?;
            self.touch(slot);
            self.desk.edit(slot).replace_body(pack(*form, &headers, body));
        }
        let mut due = self.desk[slot].state.due;
        for part in open {
            if change.body.is_some() {
                self.desk.forget_copy(part);
            }
            self.outdate_mark(part);
            due = self.change(part, change.shift, change.priority, from);
        }
        Ok(Ruling::Done(due))
    }

    /// Moves a waiting row and says when it is due now.
    pub(super) fn change(
        &mut self,
        slot: Slot,
        shift: Option<Shift>,
        priority: Option<u32>,
        from: Timestamp,
    ) -> Timestamp {
        self.leave_ready(slot);
        self.touch(slot);
        let row = self.desk.edit(slot);
        row.state.priority = priority.unwrap_or(row.state.priority);
        let at = shift.map_or(row.at(), |shift| shift.apply(row.at(), self.now, from));
        if shift.is_some() {
            row.state.due = at;
        }
        let due = row.state.due;
        self.happens(slot, What::Rescheduled { due });
        self.wait_until(slot, at);
        due
    }

    /// What a shift makes due at once is refused if there is no room for it.
    pub(super) fn check_moved(&self, open: &[Slot], shift: Shift, from: Timestamp) -> Result<(), Refused> {
        let waits = |slot: &&Slot| self.desk[**slot].ready_in().is_none();
        let comes_due = |slot: &&Slot| shift.apply(self.desk[**slot].at(), self.now, from) <= self.now;
        open.iter().filter(waits).filter(comes_due).try_for_each(|slot| self.check_place(*slot))
    }
}
