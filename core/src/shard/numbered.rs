//! What is done to one row by its number, whatever it waits for. The shard decides at its instant what that is, so
//! that nobody has to look first.
//!
//! **Invariant**: a row of the same key with another number is another row, and is left alone.

use super::Shard;
use super::desk::Slot;
use super::directory::{QueueIndex, Route};
use super::lease::check_lease;
use crate::answer::{Answer, Refused, Reply};
use crate::command::{RowId, Shift, Take};
use crate::event::What;
use crate::state::{Ending, Phase};
use crate::store::Table;
use crate::time::Millis;

impl<R> Shard<R> {
    /// The row that is meant.
    fn numbered(&self, row: &RowId) -> Result<Slot, Refused> {
        let slot = self.desk.by_key(&row.key).filter(|slot| self.desk[*slot].seq() == row.number);
        slot.ok_or(Refused::NothingThere)
    }

    /// Ends a row, unless somebody else works on it or on one of its deliveries.
    pub(super) fn remove(&mut self, row: &RowId, token: Option<u64>) -> Reply {
        let slot = self.numbered(row)?;
        let row = &self.desk[slot];
        let ending = match row.state.phase {
            Phase::Waiting => Ending::Cancelled,
            Phase::Leased { token: held, .. } if token == Some(held) && self.now < row.at() => Ending::Done,
            Phase::Leased { .. } => return Err(Refused::LeaseLost { now: Some(self.standing(slot)) }),
            Phase::Spread(_) => return self.remove_spread(slot),
            Phase::Dead(_) => {
                self.purge(slot);
                return Ok(Answer::Removed(Ending::Purged));
            }
            Phase::Forwarding { .. } => {
                self.happens(slot, What::Purged);
                Ending::Purged
            }
            Phase::Finished(_) => return Err(Refused::NothingThere),
        };
        self.end(slot, ending);
        Ok(Answer::Removed(ending))
    }

    /// Ends a task that was broadcast with all of its deliveries, if none was handed out or given up.
    fn remove_spread(&mut self, slot: Slot) -> Reply {
        let open = self.open_parts(slot).map_err(|standing| Refused::LeaseLost { now: Some(standing) })?;
        for part in open {
            self.end(part, Ending::Cancelled);
        }
        Ok(Answer::Removed(Ending::Cancelled))
    }

    /// Makes a dead letter, or what waits for its time, available now.
    pub(super) fn hasten(&mut self, row: &RowId) -> Reply {
        let slot = self.numbered(row)?;
        let row = &self.desk[slot];
        match row.state.phase {
            Phase::Dead(_) => self.replay(slot).map(Answer::Hastened),
            Phase::Waiting if row.at() > self.now => {
                self.check_return(slot)?;
                self.outdate_mark(slot);
                self.touch(slot);
                let state = &mut self.desk.edit(slot).state;
                state.keep_delay();
                state.past_mut().replays += 1;
                self.change(slot, Some(Shift::In(Millis::ZERO)), None, self.now);
                Ok(Answer::Hastened(self.standing(slot)))
            }
            _ => Err(Refused::NothingThere),
        }
    }

    /// Hands a row to a consumer: a dead letter, or what waits for its time or for anybody. It does not enter the
    /// ready set of its queue, so that it neither finds that full nor pushes anything out.
    pub(super) fn take(&mut self, take: &Take) -> Reply {
        check_lease("lease", take.lease)?;
        let slot = self.numbered(&take.row)?;
        let row = &self.desk[slot];
        let is_free = match row.state.phase {
            Phase::Waiting => self.now < row.state.expires_at(),
            Phase::Dead(_) => true,
            Phase::Leased { .. } | Phase::Spread(_) | Phase::Forwarding { .. } | Phase::Finished(_) => false,
        };
        if !is_free || !self.desk.has_body(slot) {
            return Err(Refused::NothingThere);
        }
        let queue = self.queue_of(slot)?;
        if self.desk[slot].ready_in().is_none() {
            self.call_up(slot, queue);
        }
        Ok(Answer::Reserved(vec![self.lease(slot, queue, &take.consumer, take.lease)]))
    }

    /// The queue from which a row is, or would be, handed out.
    fn queue_of(&mut self, slot: Slot) -> Result<QueueIndex, Refused> {
        let row = &self.desk[slot];
        if let Some(queue) = row.ready_in() {
            return Ok(queue);
        }
        let is_open = |queue: &QueueIndex| self.directory.queue(*queue).closing.is_none();
        let own = row.state.queue.as_ref().and_then(|queue| self.directory.queue_index(queue));
        if let Some(own) = own.filter(is_open) {
            return Ok(own);
        }
        match self.route(slot) {
            Route::To(queue) => Ok(queue),
            // A delivery whose queue was deleted stays one delivery.
            Route::ToSeveral(queues) if self.desk[slot].is_part() => Ok(queues[0]),
            Route::Detained { queue, .. } => Err(Refused::BeingDeleted(self.directory.queue(queue).name.clone())),
            Route::Nowhere | Route::ToSeveral(_) => Err(Refused::NothingThere),
        }
    }

    /// Makes a row that was not ready due now, in a queue from which it is handed out at once.
    fn call_up(&mut self, slot: Slot, queue: QueueIndex) {
        self.touch(slot);
        self.clear_timer(slot);
        let was_dead = self.desk[slot].table() == Table::Dead;
        if was_dead {
            self.happens(slot, What::Replayed);
            self.desk.edit(slot).state.begin_anew();
        }
        let mut at = self.desk[slot].at();
        if was_dead || at > self.now {
            at = self.now;
            let row = self.desk.edit(slot);
            row.state.keep_delay();
            row.state.due = at;
            if !was_dead {
                self.happens(slot, What::Rescheduled { due: self.now });
            }
        }
        let row = self.desk.edit(slot);
        row.enter(Phase::Waiting, at);
        row.state.queue = Some(self.directory.queue(queue).name.clone());
        self.happens(slot, What::Fired);
    }
}
