//! Standing ready in a queue, and leaving it again.

use super::Shard;
use super::desk::Slot;
use super::directory::QueueIndex;
use crate::event::What;
use crate::state::Reason;
use crate::store::Position;
use crate::time::Timestamp;

/// A ready delivery that is to be given up.
#[derive(Clone, Debug)]
pub(super) struct Doomed {
    pub position: Position,
    pub reason: Reason,
    /// The queue that it was pushed out of.
    pub pushed_from: Option<QueueIndex>,
}

impl<R> Shard<R> {
    /// Puts a row into a queue's ready set, where it should have been `since` then. This is not written: once its time
    /// has come, a waiting row is ready by definition.
    pub(super) fn enqueue(&mut self, slot: Slot, queue: QueueIndex, since: Timestamp) {
        let is_old = self.desk[slot].state.expires_at() <= self.now;
        if is_old || self.directory.queue(queue).refuses_newcomers() {
            // It never stands there, but it dies there: its queue tells what becomes of it.
            self.desk.stand_in(slot, Some(queue));
            return self.die(slot, if is_old { Reason::Expired } else { Reason::PushedOut }, None);
        }
        let row = &self.desk[slot];
        let (priority, position, expires_at) = (row.state.priority, row.position(), row.state.expires_at());
        self.desk.offer(slot, queue, self.now);
        self.draft.offered(&self.directory.queue(queue).name, since);
        self.happens(slot, What::Fired);
        self.timers.set_expiry(expires_at, position);
        if self.desk[slot].state.queue.is_none() {
            self.directory.feed(self.desk[slot].topic(), queue);
        }
        let is_only = self.directory.enter_ready(queue, priority, position);
        let (index, queue) = (queue, self.directory.queue(queue));
        if is_only {
            self.stock.fill(&queue.name);
        }
        // The least urgent gives way, which may be the one that has just come.
        let too_many = queue.settings.max_length.is_some_and(|max| queue.ready.len() > max);
        if too_many && let Some((priority, position)) = queue.ready.least_urgent() {
            match self.desk.at(position) {
                Some(slot) => self.die(slot, Reason::PushedOut, None),
                // It has to be read before it can be given up, which is in the next step.
                None => {
                    self.directory.push_out(index, priority, position);
                    self.agenda.doomed.push(Doomed { position, reason: Reason::PushedOut, pushed_from: Some(index) });
                }
            }
        }
    }

    /// Takes a row out of the ready set it stands in, if any.
    pub(super) fn leave_ready(&mut self, slot: Slot) -> Option<QueueIndex> {
        let index = self.desk.leave_ready(slot)?;
        let row = &self.desk[slot];
        let (priority, position, expires_at) = (row.state.priority, row.position(), row.state.expires_at());
        self.timers.clear_expiry(expires_at, position);
        self.directory.stop_leaving(index, position);
        if self.directory.leave_ready(index, priority, position) {
            self.stock.run_out(&self.directory.queue(index).name);
        }
        Some(index)
    }

    pub(super) fn give_up(&mut self, doomed: Doomed) {
        let Doomed { position, reason, pushed_from } = doomed;
        let slot = self.desk.at(position).filter(|slot| self.desk[*slot].is_waiting());
        // What was pushed out and has moved since, or entered again, is not out any more.
        let is_out = pushed_from.is_none_or(|queue| self.directory.stop_leaving(queue, position));
        if let Some(slot) = slot.filter(|_| is_out) {
            self.die(slot, reason, None);
        }
    }
}
