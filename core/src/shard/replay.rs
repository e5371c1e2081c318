//! Handing out again what is dead or finished, and taking back a cancellation.

use super::Shard;
use super::desk::Slot;
use crate::answer::{Answer, Refused, Reply, Standing};
use crate::event::What;
use crate::state::{Ending, Phase};
use crate::store::{Key, Table};
use crate::time::Timestamp;

impl<R> Shard<R> {
    pub(super) fn replay_one(&mut self, key: &Key) -> Reply {
        let slot =
            self.desk.by_key(key).filter(|slot| matches!(self.desk[*slot].table(), Table::Dead | Table::History));
        let slot = slot.ok_or(Refused::NothingThere)?;
        self.replay(slot).map(Answer::Replayed)
    }

    /// Hands a dead letter or a finished task out again, as if it were new and due now, and says where it stands
    /// then. A dead letter goes back to its queue, a finished task to wherever its topic feeds. If that is full
    /// it stays what it is, and a delivery whose task is lost has nothing to hand out.
    pub(super) fn replay(&mut self, slot: Slot) -> Result<Standing, Refused> {
        if self.is_orphan(slot) {
            return Err(Refused::NothingThere);
        }
        self.check_return(slot)?;
        self.happens(slot, What::Replayed);
        self.touch(slot);
        self.outdate_mark(slot);
        let row = self.desk.edit(slot);
        row.state.begin_anew();
        row.state.keep_delay();
        row.state.past_mut().replays += 1;
        row.state.due = self.now;
        if row.table() == Table::History {
            row.state.queue = None;
        }
        self.wait_until(slot, self.now);
        Ok(self.standing(slot))
    }

    /// Takes back the cancellation of a task. It waits for its old due time again, with what is known of its attempts; if that
    /// has passed, or it was waiting for its next attempt, it is available at once, and stays cancelled if there is no room.
    pub(super) fn restore(&mut self, key: &Key) -> Reply {
        let is_cancelled = |slot: &Slot| self.desk[*slot].state.phase == Phase::Finished(Ending::Cancelled);
        let slot = self.desk.by_key(key).filter(is_cancelled).ok_or(Refused::NothingThere)?;
        self.restore_one(slot, self.now)?;
        Ok(Answer::Replayed(self.standing(slot)))
    }

    /// The same, if it was to wake at a time that may be later than it was due.
    pub(super) fn restore_one(&mut self, slot: Slot, at: Timestamp) -> Result<(), Refused> {
        let due = self.desk[slot].state.due;
        if due.max(at) <= self.now {
            self.check_return(slot)?;
        }
        self.happens(slot, What::Scheduled { due });
        self.touch(slot);
        self.outdate_mark(slot);
        self.desk.edit(slot).state.queue = None;
        self.wait_until(slot, at.max(self.now));
        Ok(())
    }
}
