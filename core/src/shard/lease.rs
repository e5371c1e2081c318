//! What a consumer says about a delivery it holds, and what happens when it says nothing.

use super::Shard;
use super::desk::Slot;
use crate::answer::{Answer, Lease, Refused, Reply};
use crate::command::Back;
use crate::event::What;
use crate::settings::{QueueSettings, Retry, scramble};
use crate::state::{Ending, Phase, Reason};
use crate::time::{Millis, Timestamp};

impl<R> Shard<R> {
    pub(super) fn acknowledge(&mut self, lease: &Lease) -> Reply {
        let slot = self.held(lease)?;
        self.end(slot, Ending::Done);
        Ok(Answer::Acknowledged)
    }

    /// Gives a delivery back; a delay counts `from` when that was said.
    pub(super) fn release(&mut self, lease: &Lease, back: Back, priority: Option<u32>, from: Timestamp) -> Reply {
        let slot = self.held(lease)?;
        self.touch(slot);
        let row = &mut self.desk[slot];
        row.state.priority = priority.unwrap_or(row.state.priority);
        if back != Back::Abandoned {
            row.state.past_mut().releases += 1;
        }
        if let Back::After(delay) = back {
            row.state.past_mut().delay = Some(delay);
        }
        match back {
            Back::Retry => self.fail(slot, from),
            // Given back at once, it stands where it stood before: its time is its due time.
            Back::After(Millis::ZERO) | Back::Abandoned => {
                let at = row.state.due.min(self.now);
                self.note(slot, What::Released { at: self.now });
                self.wait_until(slot, at);
            }
            Back::After(delay) => {
                let at = from.plus(delay);
                self.note(slot, What::Released { at });
                self.wait_until(slot, at);
            }
        }
        Ok(Answer::Released(self.standing(slot)))
    }

    pub(super) fn reject(&mut self, lease: &Lease, note: Option<String>, priority: Option<u32>) -> Reply {
        let slot = self.held(lease)?;
        self.touch(slot);
        let state = &mut self.desk[slot].state;
        state.priority = priority.unwrap_or(state.priority);
        state.past_mut().rejections += 1;
        self.die(slot, Reason::Rejected, note);
        Ok(Answer::Rejected)
    }

    pub(super) fn extend(&mut self, lease: &Lease, by: Option<Millis>) -> Reply {
        let slot = self.held(lease)?;
        let by = by.or(self.desk[slot].state.lease).unwrap_or_else(|| self.queue_settings(slot).lease);
        let until = self.hand_over_at.plus(by.max(Millis(1)));
        self.hold_until(slot, until);
        self.note(slot, What::Extended { until });
        Ok(Answer::Extended(until))
    }

    /// Sets the end of a row's lease.
    pub(super) fn hold_until(&mut self, slot: Slot, until: Timestamp) {
        self.touch(slot);
        self.clear_timer(slot);
        self.desk[slot].at = until;
        self.set_timer(slot);
    }

    /// The delivery that is held under this lease. A lease that is over is refused even if its
    /// timer has not been looked at yet.
    fn held(&self, lease: &Lease) -> Result<Slot, Refused> {
        let Some(slot) = self.desk.by_key(&lease.key) else { return Err(Refused::LeaseLost { now: None }) };
        let row = &self.desk[slot];
        match &row.state.phase {
            Phase::Leased { token, .. } if *token == lease.token && self.now < row.at => Ok(slot),
            _ => Err(Refused::LeaseLost { now: Some(self.standing(slot)) }),
        }
    }

    /// An attempt failed at this time: there is another one later, or it is given up.
    pub(super) fn fail(&mut self, slot: Slot, at: Timestamp) {
        self.touch(slot);
        let retry = self.desk[slot].state.retry.unwrap_or_else(|| self.queue_settings(slot).retry);
        let row = &mut self.desk[slot];
        row.state.failures += 1;
        let failures = row.state.failures;
        if retry.is_exhausted(failures) {
            return self.die(slot, Reason::OutOfAttempts, None);
        }
        let again = at.plus(self.retry_wait(&retry, slot));
        self.note(slot, What::Failed { again });
        self.wait_until(slot, again);
    }

    fn retry_wait(&self, retry: &Retry, slot: Slot) -> Millis {
        let row = &self.desk[slot];
        let seed = self.config.seed ^ scramble(row.seq) ^ u64::from(row.state.failures);
        retry.wait(row.state.failures, seed)
    }

    fn queue_settings(&self, slot: Slot) -> QueueSettings {
        let queue = self.desk[slot].state.queue.as_ref();
        let queue = queue.and_then(|queue| self.directory.queue_index(queue));
        queue.map_or_else(QueueSettings::default, |queue| self.directory.queue(queue).settings.clone())
    }
}
