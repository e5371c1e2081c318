//! Looking: counts, the forecast, and all that is known of tasks.

use bytes::Bytes;
use punctual_core::store::{Position, Table};
use punctual_core::view::{DeliveryView, TaskView};
use punctual_core::{Counts, First, Form, Headers, Lease, Name, Phase, QueueCounts, Timestamp, TopicCounts, Unit};

use super::{Model, Number, Row};

impl Model {
    /// Everything, or only the topic and the queue of this name.
    pub fn counts_of(&self, only: Option<&Name>) -> Counts {
        let mut counts = self.counts();
        counts.topics.retain(|topic| only.is_none_or(|only| topic.name == *only));
        counts.queues.retain(|queue| only.is_none_or(|only| queue.name == *only));
        counts
    }

    /// What a queue hands out next.
    pub fn first(&self, queue: &Name) -> Option<First> {
        let number = self.first_in(queue)?;
        let row = &self.rows[&number];
        Some(First { priority: row.state.priority, position: Position { at: row.at, seq: number } })
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
        let first = self.now.as_millis() / unit.millis();
        let slot = |slot: u64| {
            let waiting = self.rows.values().filter(|row| row.is_waiting());
            let count = waiting.filter(|row| row.at.as_millis() / unit.millis() == slot).count();
            (Timestamp::from_millis(slot * unit.millis()), count as u64)
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
