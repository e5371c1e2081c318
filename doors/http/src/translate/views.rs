//! What is known of tasks, from the core to the wire.

use punctual_core::store::Table;
use punctual_core::view::{DeliveryView, LiveState, TaskView};
use punctual_core::{Attempt, Form, Past, Undone};
use punctual_node::Handle;
use punctual_wire as wire;
use serde_json::value::RawValue;

use super::{retry_to_wire, standing, time};

/// A task as the wire shows it, with its body or without. Its number is told if it is a row of this node.
pub fn task_info(task: TaskView, node: Option<&Handle>, with_body: bool) -> wire::TaskInfo {
    let numbered = |delivery: DeliveryView| {
        let number = node.map(|node| node.number(&task.topic, &task.id, delivery.number).0);
        delivery_info(delivery, number)
    };
    let delivery = numbered(task.delivery);
    let deliveries = task.parts.into_iter().map(numbered).collect();
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
    wire::TaskInfo {
        topic: task.topic.to_string(),
        id: task.id.to_string(),
        number: delivery.number,
        key: task.key.map(|key| key.to_string()),
        body,
        text,
        base64,
        headers: task.headers.into_iter().collect(),
        routing_key: task.routing_key.map(|key| key.to_string()),
        ttl: task.ttl.map(|ttl| wire::Span(ttl.0)),
        retry: task.retry.map(retry_to_wire),
        lease: task.lease_time.map(|lease| wire::Span(lease.0)),
        max_lease: task.max_lease.map(|lease| wire::Span(lease.0)),
        scheduled_at: time(task.scheduled_at),
        due: time(task.due),
        queue: delivery.queue,
        standing: delivery.standing,
        priority: delivery.priority,
        attempts: delivery.attempts,
        failures: delivery.failures,
        past: delivery.past,
        log: delivery.log,
        deliveries,
    }
}

fn delivery_info(delivery: DeliveryView, number: Option<u64>) -> wire::DeliveryInfo {
    let mut standing = standing(delivery.standing);
    if let (wire::Standing::Dead { note, .. }, Some(death)) = (&mut standing, delivery.death) {
        *note = death.note;
    }
    wire::DeliveryInfo {
        number,
        queue: delivery.queue.map(|queue| queue.to_string()),
        standing,
        priority: delivery.priority,
        attempts: delivery.attempts,
        failures: delivery.failures,
        past: past(delivery.past),
        log: delivery.log.into_iter().map(attempt).collect(),
    }
}

fn attempt(attempt: Attempt) -> wire::Attempt {
    let Attempt { number, at, holder, undone, note } = attempt;
    let undone = match undone {
        Undone::Failed => wire::Undone::Failed,
        Undone::Lapsed => wire::Undone::Lapsed,
        Undone::Released => wire::Undone::Released,
        Undone::Rejected => wire::Undone::Rejected,
        Undone::Revoked => wire::Undone::Revoked,
        Undone::Abandoned => wire::Undone::Abandoned,
    };
    wire::Attempt { attempt: number, at: time(at), consumer: holder.to_string(), undone, note }
}

fn past(past: Past) -> wire::Past {
    // The delay that it was last given shows in where it stands.
    let Past { attempts, failures, releases, rejections, replays, delay: _ } = past;
    wire::Past { attempts, failures, releases, rejections, replays }
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
