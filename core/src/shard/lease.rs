//! What a consumer says about a delivery it holds, and what happens when it says nothing.

use super::Shard;
use super::desk::Slot;
use super::directory::QueueIndex;
use crate::answer::{Answer, Delivery, Lease, Refused, Reply};
use crate::attempt::{Undone, check_note};
use crate::command::{Back, Revoke};
use crate::event::What;
use crate::name::Name;
use crate::settings::{QueueSettings, Retry, scramble};
use crate::state::{Ending, Phase, Reason, State};
use crate::task::{Content, NO_LEASE, unpack};
use crate::time::{Millis, Timestamp};

impl<R> Shard<R> {
    pub(super) fn acknowledge(&mut self, lease: &Lease) -> Reply {
        let slot = self.held(lease)?;
        self.end(slot, Ending::Done);
        Ok(Answer::Acknowledged)
    }

    /// Gives a delivery back; a delay counts `from` when that was said.
    pub(super) fn release(
        &mut self,
        lease: &Lease,
        back: Back,
        priority: Option<u32>,
        note: Option<String>,
        from: Timestamp,
    ) -> Reply {
        check_note(note.as_deref())?;
        let note = self.kept_note(note);
        let slot = self.held(lease)?;
        let undone = match back {
            Back::Retry => Undone::Failed,
            Back::After(_) => Undone::Released,
            Back::Abandoned => Undone::Abandoned,
        };
        self.touch(slot);
        let state = &mut self.desk.edit(slot).state;
        state.priority = priority.unwrap_or(state.priority);
        state.log_attempt(self.now, undone, note.as_deref());
        if back != Back::Abandoned {
            state.past_mut().releases += 1;
        }
        self.give_back(slot, back, note, from)
    }

    /// Ends a lease because an operator says so: for its consumer it is lost.
    pub(super) fn revoke(&mut self, revoke: Revoke, from: Timestamp) -> Reply {
        let Revoke { selected, holder, back, note } = revoke;
        check_note(note.as_deref())?;
        let note = self.kept_note(note);
        let Some(slot) = self.desk.by_key(&selected.key()) else { return Err(Refused::LeaseLost { now: None }) };
        let row = &self.desk[slot];
        match &row.state.phase {
            Phase::Leased { holder: by, .. } if self.now < row.at() && holder.as_ref().is_none_or(|is| is == by) => {}
            _ => return Err(Refused::LeaseLost { now: Some(self.standing(slot)) }),
        }
        self.touch(slot);
        self.desk.edit(slot).state.log_attempt(self.now, Undone::Revoked, note.as_deref());
        self.give_back(slot, back, note, from)
    }

    /// Lets a delivery that was with a consumer wait again, or gives it up after too many failures.
    fn give_back(&mut self, slot: Slot, back: Back, note: Option<String>, from: Timestamp) -> Reply {
        let row = self.desk.edit(slot);
        if let Back::After(delay) = back {
            row.state.past_mut().delay = Some(delay);
        }
        match back {
            Back::Retry => self.fail(slot, from, note),
            // Given back at once, it stands where it stood before: its time is its due time.
            Back::After(Millis::ZERO) | Back::Abandoned => {
                let at = row.state.due.min(self.now);
                self.happens(slot, What::Released { at: self.now });
                self.wait_until(slot, at);
            }
            Back::After(delay) => {
                let at = from.plus(delay);
                self.happens(slot, What::Released { at });
                self.wait_until(slot, at);
            }
        }
        Ok(Answer::Released(self.standing(slot)))
    }

    pub(super) fn reject(&mut self, lease: &Lease, note: Option<String>, priority: Option<u32>) -> Reply {
        check_note(note.as_deref())?;
        let note = self.kept_note(note);
        let slot = self.held(lease)?;
        self.touch(slot);
        let state = &mut self.desk.edit(slot).state;
        state.priority = priority.unwrap_or(state.priority);
        state.past_mut().rejections += 1;
        state.log_attempt(self.now, Undone::Rejected, note.as_deref());
        self.die(slot, Reason::Rejected, note);
        Ok(Answer::Rejected)
    }

    pub(super) fn extend(&mut self, lease: &Lease, by: Option<Millis>) -> Reply {
        check_lease("after", by)?;
        let slot = self.held(lease)?;
        let queue = self.queue_settings(slot);
        let time = lease_time(by, &self.desk[slot].state, &queue);
        let until = self.flight.hand_over_at().plus(time);
        self.hand_over_until(slot, until);
        self.happens(slot, What::Extended { until });
        Ok(Answer::Extended(until))
    }

    /// Sets the end of a row's lease.
    pub(super) fn hold_until(&mut self, slot: Slot, until: Timestamp) {
        self.touch(slot);
        self.clear_timer(slot);
        self.desk.edit(slot).move_to(until);
        self.set_timer(slot);
    }

    /// The delivery that is held under this lease. A lease that is over is refused even if its
    /// timer has not been looked at yet.
    fn held(&self, lease: &Lease) -> Result<Slot, Refused> {
        let Some(slot) = self.desk.by_key(&lease.key) else { return Err(Refused::LeaseLost { now: None }) };
        let row = &self.desk[slot];
        match &row.state.phase {
            Phase::Leased { token, .. } if *token == lease.token && self.now < row.at() => Ok(slot),
            _ => Err(Refused::LeaseLost { now: Some(self.standing(slot)) }),
        }
    }

    /// A lease ended without a word from its consumer.
    pub(super) fn lapse(&mut self, slot: Slot) {
        self.touch(slot);
        let row = self.desk.edit(slot);
        row.state.log_attempt(row.at(), Undone::Lapsed, None);
        self.fail(slot, self.now, None);
    }

    /// An attempt failed at this time: there is another one later, or it is given up, with what was said last.
    fn fail(&mut self, slot: Slot, at: Timestamp, note: Option<String>) {
        self.touch(slot);
        let retry = self.desk[slot].state.retry.unwrap_or_else(|| self.queue_settings(slot).retry);
        let row = self.desk.edit(slot);
        row.state.failures += 1;
        let failures = row.state.failures;
        if retry.is_exhausted(failures) {
            return self.die(slot, Reason::OutOfAttempts, note);
        }
        let again = at.plus(self.retry_wait(&retry, slot));
        self.happens(slot, What::Failed { again });
        self.wait_until(slot, again);
    }

    fn retry_wait(&self, retry: &Retry, slot: Slot) -> Millis {
        let row = &self.desk[slot];
        let seed = self.config.seed ^ scramble(row.seq()) ^ u64::from(row.state.failures);
        retry.wait(row.state.failures, seed)
    }

    fn queue_settings(&self, slot: Slot) -> QueueSettings {
        let queue = self.desk[slot].state.queue.as_ref();
        let queue = queue.and_then(|queue| self.directory.queue_index(queue));
        queue.map_or_else(QueueSettings::default, |queue| self.directory.queue(queue).settings.clone())
    }

    /// Gives a waiting row whose time has come to a consumer.
    pub(super) fn lease(&mut self, slot: Slot, queue: QueueIndex, consumer: &Name, lease: Option<Millis>) -> Delivery {
        let fired_at = self.timers.since(self.desk[slot].at());
        let offered_at = self.desk.take_offer(slot).unwrap_or(fired_at);
        self.draft.taken(&self.directory.queue(queue).name, offered_at);
        self.leave_ready(slot);
        self.touch(slot);
        self.outdate_mark(slot);
        self.desk.hand_over(slot, self.now);
        let token = self.numbers.token();
        let queue = self.directory.queue(queue);
        let row = self.desk.edit(slot);
        let lease_time = lease_time(lease, &row.state, &queue.settings);
        let until = self.flight.hand_over_at().plus(lease_time);
        row.enter(Phase::Leased { token, holder: consumer.clone() }, until);
        row.state.queue = Some(queue.name.clone());
        row.state.attempts += 1;
        let (holder, attempt) = (consumer.clone(), row.state.attempts);
        self.hand_over_until(slot, until);
        self.happens(slot, What::Leased { holder, attempt, until });
        let row = &self.desk[slot];
        let Content { form, headers, body } = unpack(row.body().expect("it was looked for"));
        Delivery {
            topic: self.directory.topic(row.topic()).name.clone(),
            id: Name::stored(row.key().id()),
            queue: row.state.queue.clone().expect("it was just set"),
            number: row.seq(),
            body,
            form,
            headers,
            routing_key: row.state.routing_key.clone(),
            key: row.group().cloned(),
            priority: row.state.priority,
            attempt: row.state.attempts,
            scheduled_at: row.state.scheduled_at,
            due: row.state.due,
            fired_at,
            lease: Lease { key: row.key().clone(), token },
            until,
            lease_time,
        }
    }
}

/// How long a lease lasts: as the consumer says, else as the task does, else as the queue does, but never longer than
/// the task and the queue allow.
pub(super) fn lease_time(asked: Option<Millis>, state: &State, queue: &QueueSettings) -> Millis {
    let longest = state.max_lease.map_or(queue.max_lease, |own| own.min(queue.max_lease));
    asked.or(state.lease).unwrap_or(queue.lease).min(longest).max(Millis(1))
}

/// A lease that was asked for must have some length.
pub(super) fn check_lease(field: &'static str, asked: Option<Millis>) -> Result<(), Refused> {
    match asked {
        Some(Millis::ZERO) => Err(Refused::Invalid { field, why: NO_LEASE.into() }),
        _ => Ok(()),
    }
}
