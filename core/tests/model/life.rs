//! What happens to a task by itself: it comes due, fails, dies, ends, and is forgotten.

use bytes::Bytes;
use punctual_core::store::Table;
use punctual_core::{
    Death, Ending, Form, Headers, Millis, Name, Overflow, Part, Phase, QueueSettings, Reason, Task, Timestamp,
    TopicSettings, Undone, What,
};

use super::{Model, Number, Row, Sent};

/// How long word of a forwarded dead letter is waited for at least and at most.
const PATIENCE: (Millis, Millis) = (Millis::from_secs(60), Millis::from_hours(6));
/// How many topics a dead letter may pass.
const HOPS: u32 = 16;

impl Model {
    /// Whatever is due happens, in the order of its time; then what is too old is given up.
    pub fn wake(&mut self) {
        self.forget_what_was_kept();
        loop {
            let now = self.now;
            let due = self.those(|row| row.ready_in.is_none() && row.wakes_at() <= now && !row.detained);
            let Some(number) = due.first().copied() else { break };
            match self.rows[&number].state.phase {
                Phase::Waiting => self.arrive(number),
                Phase::Leased { .. } => self.lapse(number),
                Phase::Forwarding { .. } => self.send_on(number),
                Phase::Spread(_) | Phase::Dead(_) | Phase::Finished(_) => unreachable!("it does not wake"),
            }
        }
        let now = self.now;
        for number in self.those(|row| row.ready_in.is_some() && row.expires_at() <= now) {
            self.die(number, Reason::Expired, None);
        }
        // Those that died may have to be sent on.
        if !self.those(|row| row.ready_in.is_none() && row.wakes_at() <= now && !row.detained).is_empty() {
            self.wake();
        }
    }

    /// Lets a row wait for a time, which may have come already, but not before it is due; at its expiry it wakes at the
    /// latest.
    pub fn wait_until(&mut self, number: Number, at: Timestamp) {
        let now = self.now;
        let row = self.row(number);
        row.state.phase = Phase::Waiting;
        row.table = Table::Live;
        (row.ready_in, row.detained) = (None, false);
        row.at = at.max(row.state.due).min(row.expires_at());
        if row.at <= now {
            self.arrive(number);
        }
    }

    fn arrive(&mut self, number: Number) {
        let row = self.rows[&number].clone();
        let own = row.state.queue.clone();
        if own.as_ref().is_some_and(|own| self.closing_queues.contains_key(own)) {
            self.row(number).detained = true;
            return;
        }
        if let Some(own) = own.filter(|queue| self.queues.contains_key(queue)) {
            return self.enqueue(number, &own);
        }
        self.row(number).state.queue = None;
        if self.is_detained(&row).is_some() {
            self.row(number).detained = true;
            return;
        }
        let queues = self.route(&row.topic, row.state.routing_key.as_ref());
        match queues.len() {
            0 if row.expires_at() <= self.now => self.die(number, Reason::Expired, None),
            0 => self.die(number, Reason::Unrouted, None),
            1 => self.enqueue(number, &queues[0]),
            _ if row.part.is_some() => self.enqueue(number, &queues[0]),
            _ => self.spread(number, &queues),
        }
    }

    /// The queue that is being deleted and where a row would go.
    pub fn is_detained(&self, row: &Row) -> Option<Name> {
        let mut queues = self.topics[&row.topic].leads_to(&row.topic, row.state.routing_key.as_ref()).into_iter();
        queues.find(|queue| self.closing_queues.contains_key(queue))
    }

    /// The queues that a topic's bindings lead to; missing ones come to be, if they may.
    pub fn route(&mut self, topic: &Name, routing_key: Option<&Name>) -> Vec<Name> {
        let mut queues = self.topics[topic].leads_to(topic, routing_key);
        for queue in &queues {
            self.use_queue(queue);
        }
        queues.retain(|queue| self.queues.contains_key(queue));
        queues
    }

    pub fn use_queue(&mut self, name: &Name) {
        if self.create_on_use {
            self.queues.entry(name.clone()).or_default();
        }
    }

    fn spread(&mut self, number: Number, queues: &[Name]) {
        let now = self.now;
        let row = self.row(number);
        row.state.phase =
            Phase::Spread(queues.iter().map(|queue| Part { queue: queue.clone(), finished: None }).collect());
        row.at = Timestamp::LAST;
        let task = row.clone();
        for queue in queues {
            let mut part = Row { part: Some(queue.clone()), at: task.state.due.min(now), ..task.clone() };
            part.state.phase = Phase::Waiting;
            part.state.queue = Some(queue.clone());
            part.state.past = None;
            part.attempts = Vec::new();
            (part.headers, part.body, part.form) = (Headers::new(), Bytes::new(), Form::Bytes);
            let number = self.number();
            self.rows.insert(number, part);
            self.arrive(number);
        }
    }

    pub fn is_full(&self, queue: &Name) -> bool {
        self.is_full_with(queue, 0)
    }

    /// Whether it is full if so many more come.
    pub fn is_full_with(&self, queue: &Name, more: u64) -> bool {
        let ready = self.rows.values().filter(|row| row.ready_in.as_ref() == Some(queue)).count() as u64;
        self.queues[queue].max_length.is_some_and(|max| ready + more >= max)
    }

    fn enqueue(&mut self, number: Number, queue: &Name) {
        let full = self.is_full(queue);
        self.row(number).ready_in = Some(queue.clone());
        if self.rows[&number].expires_at() <= self.now {
            return self.die(number, Reason::Expired, None);
        }
        if !full || self.queues[queue].overflow == Overflow::DropOldest {
            self.note(number, What::Fired);
        }
        if !full {
            return;
        }
        match self.queues[queue].overflow {
            Overflow::Refuse => self.die(number, Reason::PushedOut, None),
            Overflow::DropOldest => {
                let ready = self.ready_in(queue);
                let least_urgent = ready.iter().map(|number| self.rows[number].state.priority).max();
                let oldest = ready.into_iter().find(|number| Some(self.rows[number].state.priority) == least_urgent);
                self.die(oldest.expect("a full queue holds something"), Reason::PushedOut, None);
            }
        }
    }

    /// A lease has ended without a word.
    fn lapse(&mut self, number: Number) {
        let (at, now) = (self.rows[&number].at, self.now);
        self.row(number).remember(at, Undone::Lapsed, None);
        self.fail(number, now, None);
    }

    /// An attempt has failed at this time.
    pub fn fail(&mut self, number: Number, at: Timestamp, note: Option<String>) {
        let retry = self.rows[&number].state.retry.unwrap_or_else(|| self.settings_for(number).retry);
        let row = self.row(number);
        row.state.failures += 1;
        let failures = row.state.failures;
        if retry.attempts != 0 && failures >= retry.attempts {
            return self.die(number, Reason::OutOfAttempts, note);
        }
        assert_eq!(retry.jitter_percent, 0, "the model knows nothing of jitter");
        let again = at.plus(retry.wait(failures, 0));
        self.note(number, What::Failed { again });
        self.wait_until(number, again);
    }

    pub fn settings_for(&self, number: Number) -> QueueSettings {
        let queue = self.rows[&number].state.queue.as_ref();
        queue.and_then(|queue| self.queues.get(queue)).cloned().unwrap_or_default()
    }

    pub fn die(&mut self, number: Number, reason: Reason, note: Option<String>) {
        let now = self.now;
        let row = self.row(number);
        let queue = row.ready_in.take().or(row.state.queue.take());
        let queue = queue.filter(|queue| self.queues.contains_key(queue));
        let death = Death { reason, at: now, note };
        let row = self.row(number);
        row.state.queue = queue;
        row.at = now;
        self.note(number, What::Died(reason));
        match self.settings_for(number).dead_letter {
            Some(to) => {
                let journey = self.number();
                let row = self.row(number);
                row.sent_as = None;
                row.state.phase = Phase::Forwarding { to, number: journey, death };
            }
            None => self.bury(number, death),
        }
    }

    pub fn bury(&mut self, number: Number, death: Death) {
        let now = self.now;
        let row = self.row(number);
        row.table = Table::Dead;
        row.at = now;
        row.state.phase = Phase::Dead(death);
    }

    /// Sends a dead letter to the topic that takes them.
    fn send_on(&mut self, number: Number) {
        let row = self.rows[&number].clone();
        let Phase::Forwarding { to, number: journey, death } = row.state.phase.clone() else {
            unreachable!("it is on its way")
        };
        let task = self.find(&row.key().of_task()).map(|task| self.rows[&task].clone());
        let Row { mut headers, body, form, .. } = task.expect("a task stays while it has deliveries");
        let hops = headers.iter().find(|(name, _)| name == "punctual-dead-hops");
        let hops = hops.map_or(0, |(_, hops)| hops.parse::<u32>().expect("it is a number")) + 1;
        if hops > HOPS {
            let why = format!("it has passed through {HOPS} topics: do their dead letters form a loop?");
            let note = Some(beside(&death, &why));
            return self.bury(number, Death { note, ..death });
        }
        headers.retain(|(name, _)| !name.starts_with("punctual-dead-"));
        let said = [
            ("topic", Some(row.topic.to_string())),
            ("id", Some(row.id.to_string())),
            ("queue", row.state.queue.as_ref().map(Name::to_string)),
            ("reason", Some(death.reason.as_str().to_owned())),
            ("attempts", Some(row.state.attempts.to_string())),
            ("at", Some(death.at.as_millis().to_string())),
            ("hops", Some(hops.to_string())),
            ("note", death.note.clone()),
        ];
        headers.extend(said.into_iter().filter_map(|(name, value)| Some((format!("punctual-dead-{name}"), value?))));
        let mut task = Task::new(to, body).form(form);
        task.headers = headers;
        task.routing_key = row.state.routing_key.clone();
        task.key = row.group.clone();
        task.priority = Some(row.state.priority);
        self.sent.push(Sent { number, journey, key: row.key(), task });
        let dead_for = self.now.since(death.at).0;
        self.row(number).at = self.now.plus(Millis(dead_for / 2).clamp(PATIENCE.0, PATIENCE.1));
    }

    /// Ends a delivery, and with its last delivery the task.
    pub fn end(&mut self, number: Number, ending: Ending) {
        let now = self.now;
        let what = match ending {
            Ending::Done => Some(What::Done),
            Ending::Cancelled => Some(What::Cancelled),
            Ending::Forwarded => Some(What::Forwarded),
            Ending::Purged => None,
        };
        if !matches!(self.rows[&number].state.phase, Phase::Spread(_)) {
            what.into_iter().for_each(|what| self.note(number, what));
        }
        let row = self.row(number);
        row.ready_in = None;
        if let Some(queue) = row.part.clone() {
            let task = row.key().of_task();
            self.rows.remove(&number);
            let task = self.find(&task).expect("a task stays while it has deliveries");
            return self.end_part(task, &queue, ending);
        }
        row.table = Table::History;
        row.at = now;
        row.state.phase = Phase::Finished(ending);
        if self.topics[&self.rows[&number].topic].history == Millis::ZERO {
            self.rows.remove(&number);
        }
    }

    fn end_part(&mut self, task: Number, queue: &Name, ending: Ending) {
        let now = self.now;
        let Phase::Spread(parts) = &mut self.row(task).state.phase else { unreachable!("it was broadcast") };
        for part in parts.iter_mut().filter(|part| part.queue == *queue) {
            part.finished = Some((ending, now));
        }
        let endings: Vec<Option<Ending>> = parts.iter().map(|part| part.finished.map(|(ending, _)| ending)).collect();
        if endings.iter().all(Option::is_some) {
            self.end(task, if endings.contains(&Some(Ending::Done)) { Ending::Done } else { ending });
        }
    }

    /// When a dead letter or a finished task is to be forgotten.
    pub fn kept_until(&self, row: &Row) -> Timestamp {
        let period = match row.table {
            Table::History if self.keeps_history => None,
            Table::History => Some(self.topics[&row.topic].history),
            Table::Dead => row.state.queue.as_ref().and_then(|queue| self.queues.get(queue)?.dead_retention),
            Table::Live | Table::Settings => None,
        };
        period.map_or(Timestamp::NEVER, |period| row.at.plus(period))
    }

    /// The shortest time for which anything is kept at all.
    pub fn briefest_keeping(&self) -> Millis {
        let history = self.topics.values().map(|topic| topic.history);
        let history = history.filter(|history| *history > Millis::ZERO && !self.keeps_history);
        let dead = self.queues.values().filter_map(|queue| queue.dead_retention);
        history.chain(dead).min().unwrap_or(Millis(u64::MAX))
    }

    fn forget_what_was_kept(&mut self) {
        for number in self.those(|row| self.kept_until(row) <= self.now) {
            self.forgot = true;
            self.forget(number);
        }
    }

    /// Removes a dead letter because somebody said so.
    pub fn purge(&mut self, number: Number) {
        self.note(number, What::Purged);
        self.forget(number);
    }

    /// Removes a dead letter or a finished task.
    pub fn forget(&mut self, number: Number) {
        match self.rows[&number].part {
            Some(_) => self.end(number, Ending::Purged),
            None => _ = self.rows.remove(&number),
        }
    }

    /// When something happens next by itself.
    pub fn next_event(&self) -> Timestamp {
        let of = |row: &Row| match row.ready_in {
            Some(_) => row.expires_at(),
            None => row.wakes_at().min(self.kept_until(row)),
        };
        self.rows.values().map(of).min().unwrap_or(Timestamp::NEVER)
    }
}

/// Where a topic's settings lead.
pub trait LeadsTo {
    /// The queues for a task of this topic with this routing key, whether they are there or not.
    fn leads_to(&self, topic: &Name, routing_key: Option<&Name>) -> Vec<Name>;
}

impl LeadsTo for TopicSettings {
    fn leads_to(&self, topic: &Name, routing_key: Option<&Name>) -> Vec<Name> {
        let routing_key = routing_key.map_or("", |key| key.as_str());
        let Some(feeds) = &self.feeds else { return vec![topic.clone()] };
        let mut queues: Vec<Name> = Vec::new();
        for binding in feeds.iter().filter(|binding| binding.pattern.fits(routing_key)) {
            if !queues.contains(&binding.queue) {
                queues.push(binding.queue.clone());
            }
        }
        queues
    }
}

impl Row {
    /// When its time comes; never for what waits for somebody else.
    fn wakes_at(&self) -> Timestamp {
        match self.state.phase {
            Phase::Waiting | Phase::Leased { .. } | Phase::Forwarding { .. } => self.at,
            Phase::Spread(_) | Phase::Dead(_) | Phase::Finished(_) => Timestamp::NEVER,
        }
    }
}

/// What a dead letter says with what came of sending it on. The notes of a plan are short.
pub fn beside(death: &Death, why: &str) -> String {
    match &death.note {
        Some(note) => format!("{note}; {why}"),
        None => why.to_owned(),
    }
}
