//! Looking: counts, the forecast, and all that is known of tasks.

use bytes::Bytes;
use punctual_core::store::{Position, Table};
use punctual_core::view::{DeliveryView, TaskView};
use punctual_core::{
    Chosen, Counts, First, Form, Headers, Lease, Name, Phase, QueueCounts, QueueView, Timestamp, TopicCounts,
    TopicView, Total, Unit,
};

use super::{Model, Number, Row};

impl Model {
    pub fn view_topics(&self, chosen: &Chosen) -> Vec<TopicView> {
        let counts = choose(self.counts().topics, chosen, |topic| &topic.name);
        counts.into_iter().map(|counts| TopicView { settings: self.topics[&counts.name].clone(), counts }).collect()
    }

    pub fn view_queues(&self, chosen: &Chosen) -> Vec<QueueView> {
        let counts = choose(self.counts().queues, chosen, |queue| &queue.name);
        let view = |counts: QueueCounts| {
            let (settings, oldest) = (self.queues[&counts.name].clone(), self.oldest_in(&counts.name));
            QueueView { settings, counts, oldest }
        };
        counts.into_iter().map(view).collect()
    }

    /// Since when the oldest has been ready, of those that are the first of their priority.
    fn oldest_in(&self, queue: &Name) -> Option<Timestamp> {
        let ready: Vec<&Row> = self.ready_in(queue).into_iter().map(|number| &self.rows[&number]).collect();
        let firsts = ready.chunk_by(|one, other| one.state.priority == other.state.priority);
        firsts.map(|rows| rows[0].at).min()
    }

    pub fn total(&self) -> Total {
        let Counts { topics, queues } = self.counts();
        Total {
            topics: topics.len() as u64,
            queues: queues.len() as u64,
            waiting: topics.iter().map(|topic| topic.waiting).sum(),
            ready: queues.iter().map(|queue| queue.ready).sum(),
            urgent: queues.iter().map(|queue| queue.urgent).sum(),
            leased: topics.iter().map(|topic| topic.leased).sum(),
            dead: topics.iter().map(|topic| topic.dead).sum(),
            dead_in_queues: queues.iter().map(|queue| queue.dead).sum(),
            history: topics.iter().map(|topic| topic.history).sum(),
        }
    }

    /// What a queue hands out next.
    pub fn first(&self, queue: &Name) -> Option<First> {
        let number = self.first_in(queue)?;
        let row = &self.rows[&number];
        Some(First { priority: row.state.priority, position: Position { at: row.at, seq: number } })
    }

    /// What waits for a consumer in a queue, in its order: the priority and the time of each.
    pub fn ready_line(&self, queue: &Name) -> Vec<(u32, Timestamp)> {
        let row = |number: Number| (self.rows[&number].state.priority, self.rows[&number].at);
        self.ready_in(queue).into_iter().map(row).collect()
    }

    /// What is with a consumer, by when its lease ends, and who that is.
    pub fn leased_line(&self, queue: &Name) -> Vec<(Timestamp, Name)> {
        let of_queue = self.rows.values().filter(|row| row.state.queue.as_ref() == Some(queue));
        let mut leased: Vec<(Timestamp, Name)> = of_queue
            .filter_map(|row| match &row.state.phase {
                Phase::Leased { holder, .. } => Some((row.at, holder.clone())),
                _ => None,
            })
            .collect();
        leased.sort();
        leased
    }

    pub fn counts(&self) -> Counts {
        let count = |fits: &dyn Fn(&Row) -> bool| self.rows.values().filter(|row| fits(row)).count() as u64;
        let topics = self.topics.keys().map(|name| TopicCounts {
            name: name.clone(),
            waiting: count(&|row| row.topic == *name && row.is_waiting()),
            leased: count(&|row| row.topic == *name && row.is_leased()),
            dead: count(&|row| row.topic == *name && row.is_dead()),
            history: count(&|row| row.topic == *name && row.table == Table::History),
        });
        let queues = self.queues.keys().map(|name| QueueCounts {
            name: name.clone(),
            ready: count(&|row| row.ready_in.as_ref() == Some(name)),
            urgent: count(&|row| row.ready_in.as_ref() == Some(name) && row.state.priority < 1_024),
            leased: count(&|row| row.state.queue.as_ref() == Some(name) && row.is_leased()),
            dead: count(&|row| row.state.queue.as_ref() == Some(name) && row.is_dead()),
        });
        Counts { topics: topics.collect(), queues: queues.collect() }
    }

    /// How many deliveries come due in each slot, the running one first.
    pub fn forecast(&self, unit: Unit, slots: usize) -> Vec<(Timestamp, u64)> {
        let first = unit.slot(self.now);
        let slot = |slot: u64| {
            let waiting = self.rows.values().filter(|row| row.is_waiting());
            let count = waiting.filter(|row| unit.slot(row.at) == slot).count();
            (unit.beginning(slot), count as u64)
        };
        (first..first + slots as u64).map(slot).collect()
    }

    /// All that is known of a task; places in the store's order are left out.
    pub fn view(&self, number: Number) -> TaskView {
        let row = &self.rows[&number];
        TaskView {
            topic: row.topic.clone(),
            id: row.id.clone(),
            number,
            key: row.group.clone(),
            body: row.body.clone(),
            form: row.form,
            headers: row.headers.clone(),
            routing_key: row.state.routing_key.clone(),
            ttl: row.state.ttl,
            retry: row.state.retry,
            lease_time: row.state.lease,
            max_lease: row.state.max_lease,
            scheduled_at: row.state.scheduled_at,
            due: row.state.due,
            delivery: self.delivery(number),
            parts: Vec::new(),
            position: Position { at: row.at, seq: 0 },
        }
    }

    /// The same with the deliveries of a task that was broadcast.
    pub fn view_with_parts(&self, number: Number) -> TaskView {
        let mut view = self.view(number);
        let row = &self.rows[&number];
        if let Phase::Spread(parts) = &row.state.phase {
            let open = parts.iter().filter_map(|part| self.find(&row.key().in_queue(&part.queue)));
            view.parts = open.map(|number| self.delivery(number)).collect();
        }
        view
    }

    fn delivery(&self, number: Number) -> DeliveryView {
        let state = &self.rows[&number].state;
        let death = match &state.phase {
            Phase::Dead(death) | Phase::Forwarding { death, .. } => Some(death.clone()),
            _ => None,
        };
        let lease = match &state.phase {
            Phase::Leased { token, .. } => Some(Lease { key: self.rows[&number].key(), token: *token }),
            _ => None,
        };
        DeliveryView {
            number,
            queue: state.queue.clone(),
            standing: self.standing(number),
            lease,
            priority: state.priority,
            attempts: state.attempts,
            failures: state.failures,
            past: state.past.as_deref().copied().unwrap_or_default(),
            delay: self.rows[&number].delay(),
            death,
            log: self.rows[&number].attempts.clone(),
        }
    }

    /// A table in time order, without bodies.
    pub fn table(&self, table: Table) -> Vec<TaskView> {
        let bare = |number: Number| TaskView {
            body: Bytes::new(),
            form: Form::Bytes,
            headers: Headers::new(),
            ..self.view(number)
        };
        self.those(|row| row.table == table).into_iter().map(bare).collect()
    }

    /// The tasks of a key in the order in which they were scheduled.
    pub fn of_key(&self, key: &Name, table: Table) -> Vec<TaskView> {
        let mut tasks = self.those(|row| row.table == table && row.part.is_none() && row.group.as_ref() == Some(key));
        tasks.sort_unstable();
        tasks.into_iter().map(|number| self.view(number)).collect()
    }
}

impl Row {
    fn is_leased(&self) -> bool {
        matches!(self.state.phase, Phase::Leased { .. })
    }

    fn is_dead(&self) -> bool {
        matches!(self.state.phase, Phase::Dead(_) | Phase::Forwarding { .. })
    }
}

/// Those that are meant, given all in the order of their names.
fn choose<T: Clone>(all: Vec<T>, chosen: &Chosen, name_of: impl Fn(&T) -> &Name) -> Vec<T> {
    match chosen {
        Chosen::Named(names) => {
            names.iter().filter_map(|name| all.iter().find(|one| name_of(one) == name)).cloned().collect()
        }
        Chosen::After { name, limit } => {
            let is_after = |one: &T| name.as_ref().is_none_or(|name| name_of(one) > name);
            all.into_iter().filter(is_after).take(*limit).collect()
        }
    }
}
