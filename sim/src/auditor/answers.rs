//! What each answer says about the row, and what the row is after it.

use punctual_core::store::Key;
use punctual_core::{
    Answer, Command, Delivery, Ending, Lease, Millis, Name, Phase, Refused, Reply, Ruling, ScheduleOutcome, Standing,
    Timestamp,
};

use super::Promise;
use super::guess::{Body, Candidate, Guess, Shadow};
use super::rules::Context;
use super::standing::is_true;

/// The promise that is broken if this answer is not true.
pub(super) fn promise_of(command: &Command, reply: &Reply) -> Promise {
    let nothing_there = matches!(
        reply,
        Ok(Answer::Cancelled(Ruling::Unknown) | Answer::Rescheduled(Ruling::Unknown))
            | Err(Refused::NothingThere | Refused::LeaseLost { now: None })
    );
    match command {
        _ if nothing_there => Promise::NothingIsLost,
        Command::Schedule(_) => Promise::SameIdIsOneTask,
        Command::Acknowledge(_)
        | Command::Release { .. }
        | Command::Reject { .. }
        | Command::Extend { .. }
        | Command::Revoke(_) => Promise::OneHolder,
        Command::Remove { .. } if *reply == Ok(Answer::Removed(Ending::Done)) => Promise::OneHolder,
        Command::Take(_) => Promise::OneHolder,
        Command::Forwarded { .. } => Promise::NothingIsLost,
        _ => Promise::CertainAnswers,
    }
}

impl Context<'_> {
    /// What the row is after a command about `about` (itself, its task, or one of its deliveries)
    /// was answered so; nothing if the answer cannot be true.
    pub(super) fn answered(
        &self,
        guess: &Guess,
        about: &Key,
        command: &Command,
        reply: &Reply,
        task: Option<&Shadow>,
        from: Timestamp,
    ) -> Vec<Guess> {
        let unchanged = || vec![guess.clone()];
        let row = match guess {
            Guess::Row(row) => Some(&**row),
            Guess::Gone => None,
        };
        let itself = about == self.key;
        if !itself && about.of_task() == *self.key {
            // About one of its deliveries; what that means here is checked between the two.
            return unchanged();
        }
        match (command, reply) {
            (Command::Schedule(schedule), Ok(Answer::Scheduled(scheduled))) if itself => {
                let number = scheduled.number;
                match (&scheduled.outcome, row) {
                    (ScheduleOutcome::Created { due }, None) => self.created(schedule, *due, number, from),
                    (ScheduleOutcome::Replaced { due }, Some(row))
                        if schedule.task.replace && row.may_be_replaced() =>
                    {
                        self.created(schedule, *due, number, from)
                    }
                    (ScheduleOutcome::Existed(standing), Some(row))
                        if row.may_have(number) && is_true(standing, row, self.now) =>
                    {
                        unchanged()
                    }
                    _ => Vec::new(),
                }
            }
            (Command::Cancel { .. }, Ok(Answer::Cancelled(ruling))) => match (ruling, row) {
                (Ruling::Done(()), Some(row)) if is_open(row) => self.end(row, Ending::Cancelled),
                (Ruling::Done(()), None) if !itself => unchanged(),
                (Ruling::TooLate(standing), _) => self.too_late(guess, row, standing, itself),
                (Ruling::Unknown, None) => unchanged(),
                // The task went before its deliveries, in the same deletion.
                (Ruling::Unknown, Some(_)) if !itself && self.is_closing() => unchanged(),
                _ => Vec::new(),
            },
            (Command::Reschedule(change), Ok(Answer::Rescheduled(ruling))) => match (ruling, row) {
                (Ruling::Done(due), Some(row)) if is_open(row) => {
                    let mut changed = row.clone();
                    if let Some((_, body)) = change.body.as_ref().filter(|_| itself) {
                        changed.body = Body::EndsWith(body.clone());
                    }
                    if matches!(row.state.phase, Phase::Spread(_)) {
                        return vec![Guess::row(changed)];
                    }
                    changed.state.priority = change.priority.unwrap_or(changed.state.priority);
                    let told = itself.then_some(*due);
                    let moved = match change.shift {
                        Some(shift) => self.shifted(&changed, shift, told, from),
                        None => Guess::row(changed),
                    };
                    let right = !itself || matches!(&moved, Guess::Row(row) if row.state.due == *due);
                    if right { vec![moved] } else { Vec::new() }
                }
                (Ruling::Done(_), None) if !itself => unchanged(),
                (Ruling::TooLate(standing), _) => self.too_late(guess, row, standing, itself),
                (Ruling::Unknown, None) => unchanged(),
                // The task went before its deliveries, in the same deletion.
                (Ruling::Unknown, Some(_)) if !itself && self.is_closing() => unchanged(),
                _ => Vec::new(),
            },
            (Command::Remove { .. }, Ok(Answer::Removed(_))) if !itself => match row {
                // With a task that was broadcast all of its deliveries go.
                Some(row) if row.is_waiting() => self.end(row, Ending::Cancelled),
                Some(_) => Vec::new(),
                None => unchanged(),
            },
            _ if !itself => unchanged(),
            (Command::Remove { row: meant, token }, reply) => self.removed(guess, meant.number, *token, reply),
            (Command::Hasten { row: meant }, reply) => self.hastened(guess, meant.number, reply),
            (Command::Take(take), reply) => self.taken(guess, take, reply, task),
            (Command::Acknowledge(lease), reply) => {
                self.with_lease(guess, row, lease, reply, |row| self.end(row, Ending::Done))
            }
            (Command::Release { lease, back, priority, note }, reply) => {
                let note = note.as_deref();
                self.with_lease(guess, row, lease, reply, |row| self.released(row, *back, *priority, note, from))
            }
            (Command::Reject { lease, priority, note }, reply) => {
                self.with_lease(guess, row, lease, reply, |row| self.rejected(row, *priority, note.as_deref()))
            }
            (Command::Revoke(revoke), reply) => {
                let is_held = |row: &Candidate| match &row.state.phase {
                    Phase::Leased { holder, .. } => revoke.holder.as_ref().is_none_or(|meant| meant == holder),
                    _ => false,
                };
                self.while_held(guess, row, is_held, reply, |row| self.revoked(row, revoke, from))
            }
            (Command::Extend { lease, .. }, reply) => self.with_lease(guess, row, lease, reply, |row| {
                let mut held = row.clone();
                match reply {
                    Ok(Answer::Extended(until)) if self.may_last_until(row, *until) => {
                        held.set_at(*until);
                        vec![Guess::row(held)]
                    }
                    _ => Vec::new(),
                }
            }),
            (Command::Replay(_), reply) => {
                let over = row.filter(|row| matches!(row.state.phase, Phase::Dead(_) | Phase::Finished(_)));
                match (reply, over) {
                    (Ok(Answer::Replayed(standing)), Some(row)) => self.stands(vec![self.replayed(row)], standing),
                    (Err(Refused::QueueFull(_)), Some(row)) if self.may_be_full(row) => unchanged(),
                    (Err(Refused::NothingThere), None) => unchanged(),
                    (Err(Refused::NothingThere), Some(_)) if self.is_closing() => unchanged(),
                    _ => Vec::new(),
                }
            }
            (Command::Purge(_), reply) => {
                let dead = row.filter(|row| matches!(row.state.phase, Phase::Dead(_)));
                match (reply, dead) {
                    (Ok(Answer::Purged), Some(_)) => vec![Guess::Gone],
                    (Err(Refused::NothingThere), None) => unchanged(),
                    _ => Vec::new(),
                }
            }
            (Command::Forwarded { journey, refused, .. }, Ok(_)) => {
                row.map(|row| self.forwarded(row, *journey, refused.is_some())).unwrap_or_default()
            }
            (Command::Forwarded { journey, .. }, Err(Refused::NothingThere)) => {
                let is_meant = row.is_some_and(|row| row.is_surely_on_journey(*journey));
                if is_meant { Vec::new() } else { unchanged() }
            }
            (_, Err(_)) => unchanged(),
            _ => Vec::new(),
        }
    }

    fn too_late(&self, guess: &Guess, row: Option<&Candidate>, standing: &Standing, itself: bool) -> Vec<Guess> {
        // For one delivery of a broadcast task it says nothing: another one may be what is too late.
        let says_true = !itself || row.is_some_and(|row| !row.is_waiting() && is_true(standing, row, self.now));
        if says_true { vec![guess.clone()] } else { Vec::new() }
    }

    /// A lease in force lets its holder do something; any other does not.
    fn with_lease(
        &self,
        guess: &Guess,
        row: Option<&Candidate>,
        lease: &Lease,
        reply: &Reply,
        effect: impl Fn(&Candidate) -> Vec<Guess>,
    ) -> Vec<Guess> {
        let is_held = |row: &Candidate| row.is_held(Some(lease.token));
        self.while_held(guess, row, is_held, reply, effect)
    }

    /// The same for whatever it takes to be allowed it.
    fn while_held(
        &self,
        guess: &Guess,
        row: Option<&Candidate>,
        is_held: impl Fn(&Candidate) -> bool,
        reply: &Reply,
        effect: impl Fn(&Candidate) -> Vec<Guess>,
    ) -> Vec<Guess> {
        let in_force = row.filter(|row| is_held(row) && self.now < row.at);
        match (reply, in_force) {
            (Ok(_), Some(row)) => effect(row),
            (Err(Refused::LeaseLost { now }), None) => {
                let right = match (now, row) {
                    (None, None) => true,
                    (Some(standing), Some(row)) => is_true(standing, row, self.now),
                    _ => false,
                };
                if right { vec![guess.clone()] } else { Vec::new() }
            }
            _ => Vec::new(),
        }
    }

    /// What the row is after it was handed over so.
    pub(super) fn delivered(
        &self,
        guess: &Guess,
        delivery: &Delivery,
        holder: Option<&Name>,
        task: Option<&Shadow>,
    ) -> Option<Guess> {
        let Guess::Row(row) = guess else { return None };
        let right = row.is_waiting()
            && row.may_have(delivery.number)
            && row.at <= self.now
            && self.now < row.state.expires_at()
            && row.state.due == delivery.due
            && delivery.due <= self.now
            && delivery.until > self.now
            && self.may_be_leased(row, &delivery.queue, delivery.until)
            && delivery.attempt == row.state.attempts + 1
            && delivery.priority == row.state.priority
            && delivery.key == row.group
            && delivery.scheduled_at == row.state.scheduled_at
            && delivery.topic.as_str() == self.key.topic()
            && delivery.id.as_str() == self.key.id()
            && (self.key.queue().is_empty() || self.may_come_from(row, &delivery.queue))
            && task.is_some_and(|task| task.body.ends_with(&delivery.body));
        let holder = holder?.clone();
        right.then(|| {
            let mut leased = (**row).clone();
            leased.seq = Some(delivery.number);
            leased.state.phase = Phase::Leased { token: delivery.lease.token, holder };
            leased.state.attempts += 1;
            leased.state.queue = Some(delivery.queue.clone());
            leased.set_at(delivery.until);
            Guess::row(leased)
        })
    }
}

impl Context<'_> {
    /// Whether a lease from this queue may last until then: no longer than the task and the queue allow.
    fn may_be_leased(&self, row: &Candidate, queue: &Name, until: Timestamp) -> bool {
        let own = row.state.max_lease.unwrap_or(Millis(u64::MAX));
        self.settings.queue(queue).iter().any(|queue| until <= self.now.plus(queue.max_lease.min(own)))
    }

    /// The same for a delivery that is with its consumer.
    fn may_last_until(&self, row: &Candidate, until: Timestamp) -> bool {
        row.state.queue.as_ref().is_none_or(|queue| self.may_be_leased(row, queue, until))
    }

    /// Whether one of several deliveries may be handed out from this queue: the one it was made for or, if that was
    /// deleted, the one it went to instead.
    fn may_come_from(&self, row: &Candidate, queue: &Name) -> bool {
        let may_be = |own: &Name| own == queue || !self.settings.has_queue(own);
        queue.as_str() == self.key.queue() || row.state.queue.as_ref().is_none_or(may_be)
    }
}

fn is_open(row: &Candidate) -> bool {
    row.is_waiting() || matches!(row.state.phase, Phase::Spread(_))
}
