//! The end of a delivery and of its task: done, cancelled, given up, removed.

use super::Shard;
use super::desk::Slot;
use crate::answer::{Answer, Refused, Reply};
use crate::event::What;
use crate::name::Name;
use crate::state::{Death, Ending, Phase, Reason};
use crate::store::{Key, Table};
use crate::time::{Millis, Timestamp};

impl<R> Shard<R> {
    /// Gives a delivery up: a dead letter, or on its way to the topic that takes them.
    pub(super) fn die(&mut self, slot: Slot, reason: Reason, note: Option<String>) {
        let ready_in = self.leave_ready(slot);
        self.touch(slot);
        self.clear_timer(slot);
        if let Some(queue) = ready_in {
            self.desk.edit(slot).state.queue = Some(self.directory.queue(queue).name.clone());
        }
        self.happens(slot, What::Died(reason));
        let death = Death { reason, at: self.now, note };
        let queue = self.desk[slot].state.queue.clone();
        let queue = queue.and_then(|queue| self.directory.queue_index(&queue));
        let to = queue.and_then(|queue| self.directory.queue(queue).settings.dead_letter.clone());
        match to {
            Some(to) => {
                let number = self.numbers.token();
                self.desk.edit(slot).enter(Phase::Forwarding { to, number, death }, self.now);
                self.set_timer(slot);
            }
            None => self.bury(slot, death),
        }
    }

    /// Puts a delivery among the dead letters.
    pub(super) fn bury(&mut self, slot: Slot, death: Death) {
        self.touch(slot);
        self.clear_timer(slot);
        self.desk.edit(slot).enter(Phase::Dead(death), self.now);
        if let Some(period) = self.kept_for(slot) {
            self.retained.dead.keep(period, self.desk[slot].position());
        }
    }

    /// Ends a delivery, and with its last delivery the task.
    pub(super) fn end(&mut self, slot: Slot, ending: Ending) {
        self.tell_end(slot, ending);
        self.leave_ready(slot);
        self.touch(slot);
        self.clear_timer(slot);
        if self.desk[slot].is_part() {
            self.desk.remove(slot);
            let task = self.desk[slot].key().of_task();
            let queue = Name::stored(self.desk[slot].key().queue());
            // It was asked for with its delivery. Stores that older versions wrote may have lost it.
            if let Some(task) = self.desk.by_key(&task) {
                self.end_part(task, &queue, ending);
            }
            return;
        }
        self.desk.edit(slot).enter(Phase::Finished(ending), self.now);
        match self.kept_for(slot) {
            Some(Millis::ZERO) | None => self.desk.remove(slot),
            Some(_) if !self.retained.history.takes_rows() => self.desk.remove(slot),
            Some(period) => self.retained.history.keep(period, self.desk[slot].position()),
        }
    }

    fn tell_end(&mut self, slot: Slot, ending: Ending) {
        let what = match ending {
            Ending::Done => What::Done,
            Ending::Cancelled => What::Cancelled,
            Ending::Forwarded => What::Forwarded,
            // Who purges says so; at the end of its retention a dead letter goes silently.
            Ending::Purged => return,
        };
        // A task that was broadcast ends with the last of its deliveries, which have said how they ended.
        if !matches!(self.desk[slot].state.phase, Phase::Spread(_)) {
            self.happens(slot, what);
        }
    }

    /// Removes a finished task or a dead letter.
    pub(super) fn forget(&mut self, slot: Slot) {
        if self.desk[slot].table() == Table::Dead && self.desk[slot].is_part() {
            return self.end(slot, Ending::Purged);
        }
        self.erase(slot);
    }

    /// Removes a row, whatever it is.
    pub(super) fn erase(&mut self, slot: Slot) {
        self.leave_ready(slot);
        self.touch(slot);
        self.clear_timer(slot);
        self.desk.remove(slot);
    }

    pub(super) fn purge_one(&mut self, key: &Key) -> Reply {
        let slot = self.desk.by_key(key).filter(|slot| self.desk[*slot].table() == Table::Dead);
        let Some(slot) = slot else { return Err(Refused::NothingThere) };
        self.purge(slot);
        Ok(Answer::Purged)
    }

    /// Removes a finished task that somebody has looked at, if it is still the same. It has come to its end
    /// before, so there is nothing to tell.
    pub(super) fn forget_finished(&mut self, key: &Key, finished_at: Timestamp) -> Reply {
        let is_meant = |slot: &Slot| self.desk[*slot].table() == Table::History && self.desk[*slot].at() == finished_at;
        let Some(slot) = self.desk.by_key(key).filter(is_meant) else { return Err(Refused::NothingThere) };
        self.forget(slot);
        Ok(Answer::Purged)
    }

    /// Removes a dead letter because somebody said so.
    pub(super) fn purge(&mut self, slot: Slot) {
        self.happens(slot, What::Purged);
        self.forget(slot);
    }
}
