//! Handing out again what is dead or finished.

use super::Shard;
use super::desk::Slot;
use crate::answer::{Answer, Refused, Reply, Standing};
use crate::event::What;
use crate::store::{Key, Table};

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
}
