//! Going back in time: the clock was wrong and is right again, and the shard follows it.
//!
//! Firing is not written down, so what has fired and was not handed out waits for its time again. What was written
//! down by the wrong time, such as a due time, the end of a lease or a death, stays as it was told.
//!
//! **Invariant**: afterwards all that is in memory is as if the shard had been opened now, but for what is on its way.

use super::Shard;
use crate::name::Name;
use crate::store::Position;
use crate::time::Timestamp;

impl<R> Shard<R> {
    /// Moves the shard's time back to `now`.
    pub(super) fn go_back(&mut self, now: Timestamp) {
        debug_assert!(now < self.now);
        self.now = now;
        for position in self.timers.go_back(now) {
            if let Some(slot) = self.desk.at(position) {
                self.desk.take_timer(slot);
            }
        }
        self.desk.forget_timers_of_absent();
        self.unfire();
        self.retained.begin_again();
        self.forecast.go_back(now);
        self.directory.go_back(now);
    }

    /// Takes what is not due any more out of the ready sets.
    fn unfire(&mut self) {
        let now = self.now;
        let stocked: Vec<Name> = self.stock.stocked().cloned().collect();
        for name in stocked {
            let Some(index) = self.directory.queue_index(&name) else { continue };
            let ready = &self.directory.queue(index).ready;
            let early: Vec<(u32, Position)> = ready.iter().filter(|(_, position)| position.at > now).collect();
            for (priority, position) in &early {
                self.directory.leave_ready(index, *priority, *position);
            }
            if self.directory.queue(index).ready.is_empty() {
                self.stock.run_out(&name);
            }
            for (_, position) in early {
                self.leave_unready(position);
            }
        }
        for position in self.directory.stop_leaving_after(now) {
            self.leave_unready(position);
        }
    }

    /// What stands at a position waits for its time and for nothing else.
    fn leave_unready(&mut self, position: Position) {
        if let Some(slot) = self.desk.at(position) {
            self.desk.leave_ready(slot);
            self.desk.take_offer(slot);
        }
    }
}
