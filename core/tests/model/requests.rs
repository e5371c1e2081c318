//! Taking tasks in, taking them back, and changing them while it is not too late.

use punctual_core::store::{Key, Table};
use punctual_core::{
    Answer, Command, Death, Ending, Millis, Name, Overflow, Phase, Refused, Reply, Reschedule, Ruling, Schedule,
    ScheduleOutcome, Scheduled, Selected, Shift, Standing, State, Task, Timestamp, What, When,
};

use super::life::beside;
use super::{LeadsTo, Model, Number, Row};

impl Model {
    /// Carries out a command that was read at this time.
    pub fn handle(&mut self, command: Command, read_at: Timestamp) -> Reply {
        self.from = read_at;
        match command {
            Command::Schedule(schedule) => self.schedule(*schedule),
            Command::Cancel { topic, id } => Ok(Answer::Cancelled(
                self.change(&Key::task(&topic, &id), |model, row| model.end(row, Ending::Cancelled)),
            )),
            Command::Reschedule(change) => self.reschedule(*change),
            Command::Acknowledge(lease) => self.acknowledge(&lease),
            Command::Release { lease, back, priority, note } => self.release(&lease, back, priority, note),
            Command::Revoke(revoke) => self.revoke(*revoke),
            Command::Reject { lease, note, priority } => self.reject(&lease, note, priority),
            Command::Extend { lease, by } => self.extend(&lease, by),
            Command::Remove { row, token } => self.remove(&row, token),
            Command::Hasten { row } => self.hasten(&row),
            Command::Take(take) => self.take(&take),
            Command::Replay(selected) => self.replay_one(&selected),
            Command::Restore { topic, id } => self.restore(&Key::task(&topic, &id)),
            Command::Purge(selected) => self.purge_one(&selected),
            Command::Forget { topic, id, finished_at } => self.forget_finished(&Key::task(&topic, &id), finished_at),
            Command::Sweep(sweep) => self.sweep(&sweep),
            Command::Preview(sweep) => self.preview(&sweep),
            Command::BeginSweep(_) | Command::StopSweep { .. } | Command::Sweeps => {
                unreachable!("sweeps that go on by themselves are shown by facts of their own")
            }
            Command::PutTopic { name, settings } => self.put_topic(&name, *settings),
            Command::PutQueue { name, settings } => self.put_queue(&name, *settings),
            Command::PauseTopic { name, paused } => self.pause_topic(&name, paused),
            Command::PauseQueue { name, until } => self.pause_queue(&name, until),
            Command::DeleteTopic { name, force } => self.delete_topic(&name, force),
            Command::DeleteQueue { name, force } => self.delete_queue(&name, force),
            Command::Adopt(adopt) => self.adopt(*adopt),
            Command::Forwarded { key, journey, refused } => self.forwarded(&key, journey, refused),
            Command::Topics(chosen) => Ok(Answer::Topics(self.view_topics(&chosen))),
            Command::Queues(chosen) => Ok(Answer::Queues(self.view_queues(&chosen))),
            Command::Total => Ok(Answer::Total(self.total())),
            Command::Draw { .. } => unreachable!("rates are shown by facts of their own"),
            Command::First { queue } => Ok(Answer::First(self.first(&queue))),
            Command::Line(_) | Command::Leases(_) | Command::Holders { .. } => {
                unreachable!("these are compared without a command")
            }
            Command::Forecast { unit, slots } => Ok(Answer::Forecast(self.forecast(unit, slots))),
        }
    }

    fn schedule(&mut self, Schedule { task, id, .. }: Schedule) -> Reply {
        self.limits.check(&task.body, &task.headers)?;
        task.check()?;
        let old = self.find(&Key::task(&task.topic, &id));
        if let Some(old) = old {
            let row = &self.rows[&old];
            let untouched = row.is_waiting() && row.state.attempts == 0;
            let is_over = row.table == Table::History;
            if !task.replace || !(untouched || is_over) {
                let outcome = ScheduleOutcome::Existed(self.standing(old));
                return Ok(Answer::Scheduled(Scheduled { id, number: old, outcome }));
            }
        }
        let (number, outcome) = self.take_in(&id, old, task)?;
        Ok(Answer::Scheduled(Scheduled { id, number, outcome }))
    }

    fn take_in(&mut self, id: &Name, old: Option<Number>, task: Task) -> Result<(Number, ScheduleOutcome), Refused> {
        let Task { topic, .. } = task.clone();
        if self.closing_topics.contains_key(&topic) {
            return Err(Refused::BeingDeleted(topic));
        }
        let settings = self.topics.get(&topic).cloned();
        if settings.is_none() && !self.create_on_use {
            return Err(Refused::NoSuchTopic(topic));
        }
        let is_new = settings.is_none();
        let settings = settings.unwrap_or_default();
        if settings.paused {
            return Err(Refused::TopicPaused(topic));
        }
        let due = match task.when {
            When::At(at) => at.max(self.now),
            When::After(Millis::ZERO) => self.now,
            When::After(delay) => self.from.plus(delay),
        };
        if due <= self.now {
            self.check_room(settings.leads_to(&topic, task.routing_key.as_ref()))?;
        }
        if is_new {
            self.put_topic(&topic, settings)?;
        }
        if let Some(old) = old {
            self.rows.remove(&old);
        }
        let settings = &self.topics[&topic];
        let state = State {
            phase: Phase::Waiting,
            scheduled_at: self.from.min(due),
            due,
            priority: task.priority.unwrap_or(settings.priority),
            ttl: task.ttl.or(settings.ttl),
            retry: task.retry,
            routing_key: task.routing_key,
            queue: None,
            attempts: 0,
            failures: 0,
            lease: task.lease,
            past: None,
            max_lease: task.max_lease,
            log: None,
            swept: None,
        };
        let row = Row {
            topic,
            id: id.clone(),
            part: None,
            group: task.key,
            table: Table::Live,
            at: due,
            state,
            headers: task.headers,
            body: task.body,
            form: task.form,
            ready_in: None,
            attempts: Vec::new(),
            detained: false,
            sent_as: None,
        };
        let number = self.number();
        self.rows.insert(number, row);
        self.note(number, if old.is_some() { What::Replaced { due } } else { What::Scheduled { due } });
        self.wait_until(number, due);
        let outcome = if old.is_some() { ScheduleOutcome::Replaced { due } } else { ScheduleOutcome::Created { due } };
        Ok((number, outcome))
    }

    /// Whether one of these queues is full and refuses what comes.
    fn check_room(&self, queues: Vec<Name>) -> Result<(), Refused> {
        let refuses = |queue: &Name| self.queues[queue].overflow == Overflow::Refuse && self.is_full(queue);
        self.check_queues(queues, refuses)
    }

    /// Queues that are not there have room. While one of them is being deleted nobody looks.
    fn check_queues(&self, queues: Vec<Name>, has_no_room: impl Fn(&Name) -> bool) -> Result<(), Refused> {
        if queues.iter().any(|queue| self.closing_queues.contains_key(queue)) {
            return Ok(());
        }
        let mut there = queues.into_iter().filter(|queue| self.queues.contains_key(queue));
        there.find(has_no_room).map_or(Ok(()), |queue| Err(Refused::QueueFull(queue)))
    }

    /// Whether there is room for a row that is brought back, which pushes out nothing, beside those that are promised a
    /// place.
    pub fn check_return(&self, number: Number, promised: &[Name]) -> Result<(), Refused> {
        let more = |queue: &Name| promised.iter().filter(|known| *known == queue).count() as u64;
        self.check_queues(self.places_of(number), |queue| self.is_full_with(queue, more(queue)))
    }

    /// The queues to which a row goes that is to be ready now.
    pub fn places_of(&self, number: Number) -> Vec<Name> {
        let row = &self.rows[&number];
        let exists = |queue: &Name| self.queues.contains_key(queue) || self.closing_queues.contains_key(queue);
        let own = row.state.queue.clone().filter(|queue| row.table != Table::History && exists(queue));
        let fed = || {
            let mut queues = self.topics[&row.topic].leads_to(&row.topic, row.state.routing_key.as_ref());
            if row.part.is_some() && self.is_detained(row).is_none() {
                queues.retain(exists);
                queues.truncate(1);
            }
            queues
        };
        own.map_or_else(fed, |own| vec![own])
    }

    /// Whether there is room for what a shift makes due now.
    pub fn check_moved(&self, open: &[Number], shift: Option<Shift>) -> Result<(), Refused> {
        let Some(shift) = shift else { return Ok(()) };
        let comes = |number: &&Number| {
            let row = &self.rows[number];
            row.ready_in.is_none() && shift.apply(row.at, self.now, self.from) <= self.now
        };
        open.iter().filter(comes).try_for_each(|number| self.check_room(self.places_of(*number)))
    }

    /// The rows that change with a task, or where it stands if it is too late.
    pub fn open_rows(&self, task: Number) -> Result<Vec<Number>, Standing> {
        let row = &self.rows[&task];
        if row.is_waiting() {
            return Ok(vec![task]);
        }
        let Phase::Spread(parts) = &row.state.phase else { return Err(self.standing(task)) };
        let mut open = Vec::new();
        for part in parts {
            match self.find(&row.key().in_queue(&part.queue)) {
                Some(number) if self.rows[&number].is_waiting() => open.push(number),
                Some(number) => return Err(self.standing(number)),
                None => return Err(self.standing(task)),
            }
        }
        Ok(open)
    }

    /// Does something to all rows of a task, if it is not too late.
    fn change(&mut self, key: &Key, mut act: impl FnMut(&mut Model, Number)) -> Ruling<()> {
        let Some(task) = self.find(key) else { return Ruling::Unknown };
        match self.open_rows(task) {
            Err(standing) => Ruling::TooLate(standing),
            Ok(open) => {
                open.into_iter().for_each(|number| act(self, number));
                Ruling::Done(())
            }
        }
    }

    fn reschedule(&mut self, change: Reschedule) -> Reply {
        let key = Key::task(&change.topic, &change.id);
        if let Some(Ok(open)) = self.find(&key).map(|task| self.open_rows(task)) {
            self.check_moved(&open, change.shift)?;
        }
        if let Some(task) = self.find(&key)
            && let Some((form, body)) = change.body
            && self.open_rows(task).is_ok()
        {
            self.limits.check(&body, &self.rows[&task].headers)?;
            (self.row(task).form, self.row(task).body) = (form, body);
        }
        let mut due = Timestamp::ZERO;
        let ruling = self.change(&key, |model, number| due = model.shift(number, change.shift, change.priority));
        Ok(Answer::Rescheduled(match ruling {
            Ruling::Done(()) => Ruling::Done(due),
            Ruling::TooLate(standing) => Ruling::TooLate(standing),
            Ruling::Unknown => Ruling::Unknown,
        }))
    }

    /// Moves a waiting row and says when it is due.
    pub fn shift(&mut self, number: Number, shift: Option<Shift>, priority: Option<u32>) -> Timestamp {
        let (now, from) = (self.now, self.from);
        let row = self.row(number);
        row.state.priority = priority.unwrap_or(row.state.priority);
        if let Some(shift) = shift {
            row.state.due = shift.apply(row.at, now, from);
            row.at = row.state.due;
        }
        (row.ready_in, row.detained) = (None, false);
        let (at, due) = (row.at, row.state.due);
        self.note(number, What::Rescheduled { due });
        self.wait_until(number, at);
        due
    }

    fn replay_one(&mut self, selected: &Selected) -> Reply {
        let found = self.find(&selected.key());
        match found.filter(|number| matches!(self.rows[number].table, Table::Dead | Table::History)) {
            Some(number) => self.replay(number).map(Answer::Replayed),
            None => Err(Refused::NothingThere),
        }
    }

    pub fn replay(&mut self, number: Number) -> Result<Standing, Refused> {
        self.check_return(number, &[])?;
        let now = self.now;
        self.note(number, What::Replayed);
        let row = self.row(number);
        row.recall(now);
        row.state.past_mut().replays += 1;
        if row.table == Table::History {
            row.state.queue = None;
        }
        self.wait_until(number, now);
        Ok(self.standing(number))
    }

    fn restore(&mut self, key: &Key) -> Reply {
        let is_cancelled = |number: &Number| self.rows[number].state.phase == Phase::Finished(Ending::Cancelled);
        let Some(number) = self.find(key).filter(is_cancelled) else { return Err(Refused::NothingThere) };
        let due = self.rows[&number].state.due;
        if due <= self.now {
            self.check_return(number, &[])?;
        }
        self.note(number, What::Scheduled { due });
        self.row(number).state.queue = None;
        self.wait_until(number, self.now);
        Ok(Answer::Replayed(self.standing(number)))
    }

    fn purge_one(&mut self, selected: &Selected) -> Reply {
        match self.find(&selected.key()).filter(|number| self.rows[number].table == Table::Dead) {
            Some(number) => {
                self.purge(number);
                Ok(Answer::Purged)
            }
            None => Err(Refused::NothingThere),
        }
    }

    fn forget_finished(&mut self, key: &Key, finished_at: Timestamp) -> Reply {
        let found = self.find(key);
        match found.filter(|number| self.rows[number].table == Table::History && self.rows[number].at == finished_at) {
            Some(number) => {
                self.rows.remove(&number);
                Ok(Answer::Purged)
            }
            None => Err(Refused::NothingThere),
        }
    }

    fn forwarded(&mut self, key: &Key, journey: u64, refused: Option<String>) -> Reply {
        let Some(number) = self.find(key) else { return Err(Refused::NothingThere) };
        let (to, death) = match self.rows[&number].state.phase.clone() {
            Phase::Forwarding { to, number, death } if number == journey => (to, death),
            _ => return Err(Refused::NothingThere),
        };
        match refused {
            None => self.end(number, Ending::Forwarded),
            Some(why) => {
                let note = Some(beside(&death, &format!("topic {to} did not accept it: {why}")));
                self.bury(number, Death { note, ..death });
            }
        }
        Ok(Answer::Noted)
    }
}
