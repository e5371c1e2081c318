//! Tasks and changes to them, from the wire to the core.

use bytes::Bytes;
use punctual_core::{Form, Millis, Name, Reschedule, Shift, Task, When};
use punctual_wire as wire;
use serde_json::value::RawValue;

use super::settings::retry_from_wire;
use super::{millis, timestamp};
use crate::fault::{Code, Fault};
use crate::input::{maybe_name, name};
use crate::parsable;

pub(crate) fn new_task(task: wire::NewTask) -> Result<Task, Fault> {
    let when = match (task.delay, task.at) {
        (Some(_), Some(_)) => return Err(only_one_of("`delay` and `at`")),
        (Some(delay), None) => When::After(millis(delay)),
        (None, Some(at)) => When::At(timestamp(at)),
        (None, None) => When::After(Millis::ZERO),
    };
    let (form, body) = body_of(task.body, task.text, task.base64)?.unwrap_or_default();
    Ok(Task {
        topic: name("topic", &task.topic)?,
        id: maybe_name("id", task.id.as_deref())?,
        body,
        form,
        headers: task.headers.into_iter().collect(),
        routing_key: maybe_name("routing_key", task.routing_key.as_deref())?,
        when,
        key: maybe_name("key", task.key.as_deref())?,
        priority: task.priority,
        ttl: task.ttl.map(millis),
        retry: task.retry.map(retry_from_wire),
        lease: task.lease.map(millis),
        max_lease: task.max_lease.map(millis),
        replace: task.replace,
    })
}

pub(crate) fn reschedule(topic: Name, id: Name, change: wire::Reschedule) -> Result<Reschedule, Fault> {
    let shift = shift_of(change.at, change.delay, change.by)?;
    let body = body_of(change.body, change.text, change.base64)?;
    if shift.is_none() && body.is_none() && change.priority.is_none() {
        let detail = "there is nothing to change: give `at`, `delay` or `by`, `priority`, or a body";
        return Err(Fault::new(Code::Invalid, detail));
    }
    Ok(Reschedule { topic, id, shift, priority: change.priority, body })
}

pub(crate) fn shift_of(
    at: Option<wire::Time>,
    delay: Option<wire::Span>,
    by: Option<wire::Shift>,
) -> Result<Option<Shift>, Fault> {
    match (at, delay, by) {
        (None, None, None) => Ok(None),
        (Some(at), None, None) => Ok(Some(Shift::To(timestamp(at)))),
        (None, Some(delay), None) => Ok(Some(Shift::In(millis(delay)))),
        (None, None, Some(by)) => Ok(Some(Shift::By(by.0))),
        _ => Err(only_one_of("`at`, `delay` and `by`")),
    }
}

fn body_of(
    json: Option<Box<RawValue>>,
    text: Option<String>,
    bytes: Option<wire::Base64>,
) -> Result<Option<(Form, Bytes)>, Fault> {
    match (json, text, bytes) {
        (None, None, None) => Ok(None),
        (Some(json), None, None) => {
            parsable::check(&json).map_err(|why| Fault::invalid("body", why))?;
            let json: Box<str> = json.into();
            Ok(Some((Form::Json, Bytes::from(json.into_string()))))
        }
        (None, Some(text), None) => Ok(Some((Form::Text, Bytes::from(text)))),
        (None, None, Some(bytes)) => Ok(Some((Form::Bytes, Bytes::from(bytes.0)))),
        _ => Err(only_one_of("`body`, `text` and `base64`")),
    }
}

fn only_one_of(fields: &str) -> Fault {
    Fault::new(Code::Invalid, format!("only one of {fields} can be given"))
}
