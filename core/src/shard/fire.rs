//! Coming due: what a timer means, and what becomes of a row whose time has come.

use super::Shard;
use super::desk::Slot;
use super::directory::{Closed, Closing, QueueIndex, Route};
use crate::state::{Phase, Reason};
use crate::store::Position;
use crate::time::Timestamp;

impl<R> Shard<R> {
    /// A timer has come. What that means depends on the row's phase; a timer whose row has moved on means nothing.
    pub(super) fn fire(&mut self, position: Position) {
        let Some(slot) = self.desk.at(position) else { return };
        self.desk.take_timer(slot);
        match self.going(slot) {
            Some(Closed::Topic(_)) => {
                self.clear_up(slot);
                return;
            }
            // It counts until the deletion of its queue comes to it, and nothing else happens to it any more.
            Some(Closed::Queue(_)) if !self.desk[slot].is_waiting() => return,
            _ => {}
        }
        match self.desk[slot].state.phase {
            Phase::Waiting if self.desk[slot].ready_in().is_none() => {
                let since = self.timers.since(position.at);
                self.arrive(slot, since);
            }
            Phase::Leased { .. } if self.is_on_its_way(slot) => self.overtake(position),
            Phase::Leased { .. } => self.lapse(slot),
            Phase::Forwarding { .. } if !self.may_grow() => self.hold_up(slot),
            Phase::Forwarding { .. } => self.forward(slot),
            Phase::Waiting | Phase::Spread(_) | Phase::Dead(_) | Phase::Finished(_) => {}
        }
    }

    /// Lets a row wait for a time, which may have come already. It is not to stand in a ready set.
    pub(super) fn wait_until(&mut self, slot: Slot, at: Timestamp) {
        self.touch(slot);
        self.clear_timer(slot);
        let row = self.desk.edit(slot);
        // The clock may show less than when it was first handed out, if the shard was opened anew
        // since. At its expiry it is woken too, to be given up.
        let at = at.max(row.state.due).min(row.state.expires_at());
        row.enter(Phase::Waiting, at);
        if at <= self.now { self.arrive(slot, self.now) } else { self.set_timer(slot) }
    }

    /// A waiting row's time has come: it becomes ready in its queue, or in all that its topic feeds, and
    /// should have been `since` then.
    pub(super) fn arrive(&mut self, slot: Slot, since: Timestamp) {
        if !self.may_grow() && !self.arrives_unwritten(slot) {
            return self.hold_up(slot);
        }
        if let Some(own) = self.desk[slot].state.queue.clone() {
            match self.directory.queue_index(&own) {
                Some(queue) if self.is_leaving_behind(queue) => return self.detain(slot, queue),
                Some(queue) => return self.enqueue(slot, queue, since),
                None => {
                    // Its queue was deleted.
                    self.touch(slot);
                    self.desk.edit(slot).state.queue = None;
                }
            }
        }
        match self.route(slot) {
            Route::Nowhere => {
                let is_old = self.desk[slot].state.expires_at() <= self.now;
                self.die(slot, if is_old { Reason::Expired } else { Reason::Unrouted }, None);
            }
            Route::To(queue) => self.enqueue(slot, queue, since),
            // A delivery whose queue was deleted stays one delivery.
            Route::ToSeveral(queues) if self.desk[slot].is_part() => self.enqueue(slot, queues[0], since),
            Route::ToSeveral(queues) => self.spread(slot, &queues, since),
            // Its time had come before its only queue was deleted, so it was there.
            Route::Detained { queue, is_only: true } if self.was_due_before_closing(slot, queue) => {
                self.enqueue(slot, queue, since);
            }
            Route::Detained { queue, .. } => self.detain(slot, queue),
        }
    }

    /// Whether a queue goes at the end of this step and leaves what waits for a retry there behind.
    fn is_leaving_behind(&self, queue: QueueIndex) -> bool {
        self.directory.queue(queue).closing.as_ref().is_some_and(|closing| !closing.is_forced)
    }

    fn was_due_before_closing(&self, slot: Slot, queue: QueueIndex) -> bool {
        let (row, closing) = (self.desk[slot].position(), self.directory.queue(queue).closing.as_ref());
        let was_there = |closing: &Closing| row.at < closing.since && row.seq < closing.first_after;
        closing.is_some_and(|closing| closing.is_forced && was_there(closing))
    }

    /// Lets a row whose time has come wait for the end of a deletion: it goes to the next queue of that name.
    fn detain(&mut self, slot: Slot, queue: QueueIndex) {
        let row = (self.desk[slot].topic(), self.desk[slot].position());
        self.directory.closing_mut(Closed::Queue(queue)).detained.push(row);
    }
}
