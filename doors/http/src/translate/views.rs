//! What is known of tasks, from the core to the wire.

use punctual_core::Form;
use punctual_core::store::Table;
use punctual_core::view::{DeliveryView, LiveState, TaskView};
use punctual_node::Page;
use punctual_wire as wire;
use serde_json::value::RawValue;

use super::{retry_to_wire, standing, time};

pub(crate) fn page(page: Page, with_bodies: bool) -> wire::Page {
    let tasks = page.tasks.into_iter().map(|task| task_info(task, with_bodies)).collect();
    wire::Page { tasks, next: page.next.map(|next| next.to_string()) }
}

/// A task as the wire shows it, with its body or without.
pub fn task_info(task: TaskView, with_body: bool) -> wire::TaskInfo {
    let (mut body, mut text, mut base64) = (None, None, None);
    if with_body {
        // Whatever is said to be of a form was checked when it came in; if it were not, it goes out as bytes.
        let as_text = || String::from_utf8(task.body.to_vec()).ok();
        match task.form {
            Form::Json => body = as_text().and_then(|json| RawValue::from_string(json).ok()),
            Form::Text => text = as_text(),
            Form::Bytes => {}
        }
        if body.is_none() && text.is_none() {
            base64 = Some(wire::Base64(task.body.to_vec()));
        }
    }
    let delivery = delivery_info(task.delivery);
    wire::TaskInfo {
        topic: task.topic.to_string(),
        id: task.id.to_string(),
        key: task.key.map(|key| key.to_string()),
        body,
        text,
        base64,
        headers: task.headers.into_iter().collect(),
        routing_key: task.routing_key.map(|key| key.to_string()),
        ttl: task.ttl.map(|ttl| wire::Span(ttl.0)),
        retry: task.retry.map(retry_to_wire),
        scheduled_at: time(task.scheduled_at),
        due: time(task.due),
        queue: delivery.queue,
        standing: delivery.standing,
        priority: delivery.priority,
        attempts: delivery.attempts,
        failures: delivery.failures,
        deliveries: task.parts.into_iter().map(delivery_info).collect(),
    }
}

fn delivery_info(delivery: DeliveryView) -> wire::DeliveryInfo {
    let mut standing = standing(delivery.standing);
    if let (wire::Standing::Dead { note, .. }, Some(death)) = (&mut standing, delivery.death) {
        *note = death.note;
    }
    wire::DeliveryInfo {
        queue: delivery.queue.map(|queue| queue.to_string()),
        standing,
        priority: delivery.priority,
        attempts: delivery.attempts,
        failures: delivery.failures,
    }
}

/// The state of tasks that are not finished; `None` for the others.
pub(crate) fn list_state(state: wire::ListState) -> Option<LiveState> {
    match state {
        wire::ListState::Scheduled => Some(LiveState::Scheduled),
        wire::ListState::Ready => Some(LiveState::Ready),
        wire::ListState::Leased => Some(LiveState::Leased),
        wire::ListState::Spread => Some(LiveState::Spread),
        wire::ListState::Dead | wire::ListState::Finished => None,
    }
}

/// Where tasks of a state are kept; `None` if they are only some of those in a table.
pub(crate) fn table_of(state: Option<wire::ListState>) -> Option<Table> {
    match state {
        None => Some(Table::Live),
        Some(wire::ListState::Dead) => Some(Table::Dead),
        Some(wire::ListState::Finished) => Some(Table::History),
        Some(_) => None,
    }
}
