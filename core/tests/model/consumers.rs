//! Consumers, and what they say about the deliveries they hold.

use punctual_core::{
    Answer, Back, Choice, Delivery, Ending, Lease, Millis, Name, Order, Phase, QueueSettings, Reason, Refused, Reply,
    Reserve, Revoke, Timestamp, Undone, What,
};

use super::{Model, Number};

/// A consumer that waits, and under which number it is to be answered.
#[derive(Clone, Debug)]
pub struct Consumer {
    pub reserve: Reserve,
    pub reply: u64,
}

impl Model {
    /// Consumers get what is ready, the one that has waited longest first; those that have waited
    /// long enough get nothing.
    pub fn serve(&mut self) {
        while let Some(place) =
            self.consumers.iter().position(|consumer| consumer.reserve.queues.iter().any(|queue| self.serves(queue)))
        {
            let Consumer { mut reserve, reply } = self.consumers.remove(place);
            reserve.queues.sort_unstable();
            let mut deliveries = Vec::new();
            while deliveries.len() < reserve.max.max(1) {
                let serving = || reserve.queues.iter().filter(|queue| self.serves(queue));
                let next = match reserve.choice {
                    Choice::InTurn => serving().min_by_key(|queue| self.served.get(*queue).copied().unwrap_or(0)),
                    Choice::Foremost => {
                        let by_arrival = serving().all(|queue| self.queues[queue].order == Order::Arrival);
                        serving().min_by_key(|queue| self.rank(self.first_in(queue).expect("it serves"), by_arrival))
                    }
                };
                let Some(queue) = next.cloned() else { break };
                let latest = self.served.values().max().copied().unwrap_or(0);
                self.served.insert(queue.clone(), latest + 1);
                deliveries.push(self.hand_out(&queue, &reserve));
            }
            self.answers.push((reply, Ok(Answer::Reserved(deliveries))));
        }
        let (over, waiting) =
            std::mem::take(&mut self.consumers).into_iter().partition(|consumer| consumer.reserve.until <= self.now);
        self.consumers = waiting;
        let over: Vec<Consumer> = over;
        self.answers.extend(over.into_iter().map(|consumer| (consumer.reply, Ok(Answer::Reserved(vec![])))));
    }

    fn serves(&self, queue: &Name) -> bool {
        let paused = self.queues.get(queue).and_then(|settings| settings.paused_until);
        paused.is_none_or(|until| until <= self.now) && self.first_in(queue).is_some()
    }

    /// Where a delivery stands among others: by priority, then time, then arrival, or without time.
    fn rank(&self, number: Number, by_arrival: bool) -> (u32, Timestamp, Number) {
        let row = &self.rows[&number];
        (row.state.priority, if by_arrival { Timestamp::ZERO } else { row.at }, number)
    }

    /// What waits for a consumer in a queue, in its order.
    pub fn ready_in(&self, queue: &Name) -> Vec<Number> {
        let by_arrival = self.queues.get(queue).is_some_and(|queue| queue.order == Order::Arrival);
        let ready = self.rows.iter().filter(|(_, row)| row.ready_in.as_ref() == Some(queue));
        let mut ready: Vec<Number> = ready.map(|(number, _)| *number).collect();
        ready.sort_by_key(|number| self.rank(*number, by_arrival));
        ready
    }

    /// The next delivery of a queue.
    pub fn first_in(&self, queue: &Name) -> Option<Number> {
        self.ready_in(queue).first().copied()
    }

    fn hand_out(&mut self, queue: &Name, reserve: &Reserve) -> Delivery {
        let number = self.first_in(queue).expect("the queue has something to give");
        self.lease(number, queue, &reserve.consumer, reserve.lease)
    }

    /// Gives a row to a consumer.
    pub fn lease(&mut self, number: Number, queue: &Name, consumer: &Name, lease: Option<Millis>) -> Delivery {
        let token = self.number();
        let lease_time = self.lease_time(number, lease, &self.queues[queue]);
        let until = self.hand_over_at.plus(lease_time);
        let opened_at = self.opened_at;
        let row = self.row(number);
        let fired_at = row.at.max(opened_at);
        row.ready_in = None;
        row.at = until;
        row.state.phase = Phase::Leased { token, holder: consumer.clone() };
        row.state.queue = Some(queue.clone());
        row.state.attempts += 1;
        let (holder, attempt) = (consumer.clone(), row.state.attempts);
        self.note(number, What::Leased { holder, attempt, until });
        let row = self.rows[&number].clone();
        let task = self.find(&row.key().of_task()).expect("a task stays while it has deliveries");
        let task = self.rows[&task].clone();
        Delivery {
            topic: row.topic.clone(),
            id: row.id.clone(),
            queue: queue.clone(),
            number,
            body: task.body,
            form: task.form,
            headers: task.headers,
            routing_key: row.state.routing_key.clone(),
            key: row.group.clone(),
            priority: row.state.priority,
            attempt: row.state.attempts,
            scheduled_at: row.state.scheduled_at,
            due: row.state.due,
            fired_at,
            lease: Lease { key: row.key(), token },
            until,
            lease_time,
        }
    }

    /// As the consumer says, or the task, or the queue; and no longer than either of the latter allows.
    fn lease_time(&self, number: Number, asked: Option<Millis>, queue: &QueueSettings) -> Millis {
        let state = &self.rows[&number].state;
        let mut time = asked.or(state.lease).unwrap_or(queue.lease).max(Millis(1));
        for longest in state.max_lease.into_iter().chain([queue.max_lease]) {
            time = time.min(longest);
        }
        time
    }

    fn held(&self, lease: &Lease) -> Result<Number, Refused> {
        let Some(number) = self.find(&lease.key) else { return Err(Refused::LeaseLost { now: None }) };
        let row = &self.rows[&number];
        let in_force =
            matches!(row.state.phase, Phase::Leased { token, .. } if token == lease.token) && self.now < row.at;
        if in_force { Ok(number) } else { Err(Refused::LeaseLost { now: Some(self.standing(number)) }) }
    }

    pub fn acknowledge(&mut self, lease: &Lease) -> Reply {
        let number = self.held(lease)?;
        self.end(number, Ending::Done);
        Ok(Answer::Acknowledged)
    }

    pub fn release(&mut self, lease: &Lease, back: Back, priority: Option<u32>, note: Option<String>) -> Reply {
        let number = self.held(lease)?;
        let now = self.now;
        let row = self.row(number);
        row.state.priority = priority.unwrap_or(row.state.priority);
        let undone = match back {
            Back::Retry => Undone::Failed,
            Back::After(_) => Undone::Released,
            Back::Abandoned => Undone::Abandoned,
        };
        row.remember(now, undone, note.as_deref());
        if back != Back::Abandoned {
            row.state.past_mut().releases += 1;
        }
        self.give_back(number, back, note)
    }

    pub fn revoke(&mut self, revoke: Revoke) -> Reply {
        let Some(number) = self.find(&revoke.selected.key()) else { return Err(Refused::LeaseLost { now: None }) };
        let now = self.now;
        let row = self.row(number);
        let is_meant = match &row.state.phase {
            Phase::Leased { holder, .. } => revoke.holder.is_none_or(|meant| meant == *holder) && now < row.at,
            _ => false,
        };
        if !is_meant {
            return Err(Refused::LeaseLost { now: Some(self.standing(number)) });
        }
        row.remember(now, Undone::Revoked, revoke.note.as_deref());
        self.give_back(number, revoke.back, revoke.note)
    }

    fn give_back(&mut self, number: Number, back: Back, note: Option<String>) -> Reply {
        let row = self.row(number);
        let due: Timestamp = row.state.due;
        match back {
            Back::Retry => self.fail(number, self.from, note),
            Back::Abandoned => {
                let at = self.now;
                self.note(number, What::Released { at });
                self.wait_until(number, due.min(at));
            }
            Back::After(delay) => {
                row.state.past_mut().delay = Some(delay);
                let at = if delay == Millis::ZERO { self.now } else { self.from.plus(delay) };
                self.note(number, What::Released { at });
                self.wait_until(number, if delay == Millis::ZERO { due.min(at) } else { at });
            }
        }
        Ok(Answer::Released(self.standing(number)))
    }

    pub fn reject(&mut self, lease: &Lease, note: Option<String>, priority: Option<u32>) -> Reply {
        let number = self.held(lease)?;
        let now = self.now;
        self.row(number).remember(now, Undone::Rejected, note.as_deref());
        let state = &mut self.row(number).state;
        state.priority = priority.unwrap_or(state.priority);
        state.past_mut().rejections += 1;
        self.die(number, Reason::Rejected, note);
        Ok(Answer::Rejected)
    }

    pub fn extend(&mut self, lease: &Lease, by: Option<Millis>) -> Reply {
        asks_for_some("after", by)?;
        let number = self.held(lease)?;
        let until = self.hand_over_at.plus(self.lease_time(number, by, &self.settings_for(number)));
        self.row(number).at = until;
        self.note(number, What::Extended { until });
        Ok(Answer::Extended(until))
    }
}

/// Nobody can work for no time at all.
pub fn asks_for_some(field: &'static str, asked: Option<Millis>) -> Result<(), Refused> {
    let why = "0 ms is over before work can begin: use a longer time, or leave it out".into();
    if asked == Some(Millis(0)) { Err(Refused::Invalid { field, why }) } else { Ok(()) }
}
