//! Going back in time: the clock was wrong and is right again, and the shard follows it.
//!
//! Firing is not written down, so what has fired and was not handed out waits for its time again. What was written
//! down by the wrong time, such as a due time, the end of a lease or a death, stays as it was told.
//!
//! **Invariant**: afterwards all that is in memory is as if the shard had been opened now, but for what is on its way.

use super::Shard;
use crate::name::Name;
use crate::store::Position;
use crate::time::{Millis, Timestamp};

impl<R> Shard<R> {
    /// Moves the shard's time back to `now`.
    pub(super) fn go_back(&mut self, now: Timestamp) {
        debug_assert!(now < self.now);
        self.now = now;
        self.opened_at = self.opened_at.min(now);
        // What is still to come is read ahead anew. If the horizon stayed where the wrong time has led it, memory would
        // grow until that time has come.
        self.horizon = self.horizon.min(Position::start_of(now.plus(Millis(1))));
        self.next_far = self.next_far.min(self.horizon.at);
        self.forget_timers();
        self.unfire();
        self.pauses.clear();
        let paused = self.directory.queues_after(None);
        let paused = paused.filter_map(|queue| Some((queue.settings.paused_until?, queue.name.clone())));
        self.pauses.extend(paused.filter(|(until, _)| (now..Timestamp::NEVER).contains(until)));
        self.history.begin_again();
        self.dead.begin_again();
        self.forecast.go_back(now);
        self.directory.go_back(now);
    }

    /// Takes all timers off the wheel but those that are due.
    fn forget_timers(&mut self) {
        let mut timers = std::mem::replace(&mut self.wheel, punctual_wheel::Wheel::new(self.now.as_millis()));
        let mut late = self.late.take(usize::MAX);
        while let Some((at, timer)) = timers.pop(u64::MAX) {
            late.push((timer.topic, Position { at: Timestamp::from_millis(at), seq: timer.seq }));
        }
        for (topic, position) in late {
            if let Some(slot) = self.desk.at(position) {
                self.desk[slot].timer = None;
            }
            if position.at <= self.now {
                self.late.push(topic, position);
            }
        }
    }

    /// Takes what is not due any more out of the ready sets.
    fn unfire(&mut self) {
        let now = self.now;
        self.expiries.retain(|(_, position)| position.at <= now);
        let stocked: Vec<Name> = self.stocked.iter().cloned().collect();
        for name in stocked {
            let Some(index) = self.directory.queue_index(&name) else { continue };
            let ready = &self.directory.queue(index).ready;
            let early: Vec<(u32, Position)> = ready.iter().filter(|(_, position)| position.at > now).collect();
            for (priority, position) in &early {
                self.directory.leave_ready(index, *priority, *position);
            }
            if self.directory.queue(index).ready.is_empty() {
                self.stocked.remove(&name);
                self.restocked.insert(name);
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
            (self.desk[slot].ready_in, self.desk[slot].offered_at) = (None, None);
        }
    }
}
