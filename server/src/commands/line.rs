//! The lines of an export: one task on each, as JSON.
//!
//! A line is a task as the server lists it, with its body and headers. Reading is generous: the fields
//! of a task to schedule will do as well, so that lines can be written by hand or by another program.

use std::collections::BTreeMap;

use punctual_wire::{Base64, Misread, NewTask, Retry, Span, Standing, TaskInfo, Time, read_json};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A line of an export as it is read. What only the server can know, such as attempts, is passed over.
#[derive(Debug, Deserialize)]
pub struct Line {
    topic: String,
    id: Option<String>,
    #[serde(default, deserialize_with = "given")]
    body: Option<Box<RawValue>>,
    text: Option<String>,
    base64: Option<Base64>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    key: Option<String>,
    routing_key: Option<String>,
    priority: Option<u32>,
    ttl: Option<Span>,
    retry: Option<Retry>,
    lease: Option<Span>,
    max_lease: Option<Span>,
    due: Option<Time>,
    at: Option<Time>,
    standing: Option<Standing>,
}

/// A body that is there, though it may be `null`.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

/// What kind of task a line holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One that is not finished.
    Live,
    /// A dead letter.
    Dead,
    /// A finished one.
    Finished,
}

/// A line that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadLine {
    /// It is not JSON, or not a task.
    #[error("this is not a task: {0}")]
    NotATask(#[from] Misread),
    /// Without an id a second import would make a second task.
    #[error("the task has no id: without one, importing twice would create it twice")]
    NoId,
    /// Without a due time it would come due at once, which is rather a mistake.
    #[error("the task has no due time: give `due`")]
    NoDue,
}

impl Line {
    /// Reads a line.
    pub fn read(text: &str) -> Result<Line, BadLine> {
        Ok(read_json(text.as_bytes())?)
    }

    /// What kind of task it is.
    pub fn kind(&self) -> Kind {
        match &self.standing {
            Some(Standing::Dead { .. }) => Kind::Dead,
            Some(Standing::Finished { .. }) => Kind::Finished,
            _ => Kind::Live,
        }
    }

    /// The task to schedule: the same id, so that a second import finds the first, and the same due time.
    pub fn into_task(mut self) -> Result<NewTask, BadLine> {
        // What Punctual said of a dead letter's way is not for others to set, and that way is over.
        self.headers.retain(|name, _| !name.starts_with("punctual-"));
        Ok(NewTask {
            topic: self.topic,
            id: Some(self.id.ok_or(BadLine::NoId)?),
            delay: None,
            at: Some(self.due.or(self.at).ok_or(BadLine::NoDue)?),
            body: self.body,
            text: self.text,
            base64: self.base64,
            headers: self.headers,
            key: self.key,
            routing_key: self.routing_key,
            priority: self.priority,
            ttl: self.ttl,
            retry: self.retry,
            lease: self.lease,
            max_lease: self.max_lease,
            replace: false,
        })
    }
}

/// Whether this is one delivery of a task that was broadcast: its body is with the task, not here.
pub fn is_part(task: &TaskInfo) -> bool {
    let bytes = task.base64.as_ref().is_none_or(|bytes| bytes.0.is_empty());
    task.queue.is_some() && task.body.is_none() && task.text.is_none() && bytes && task.headers.is_empty()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::super::output::json_line;
    use super::*;

    const TASK: &str = r#"{"topic":"t","id":"i","key":"k","body":{"a": 1.50},"headers":{"h":"v","punctual-dead-hops":"1"},"routing_key":"a.b",
        "number":12,"ttl":"1h","retry":{"attempts":3},"lease":"5m","max_lease":"9m","scheduled_at":1,"due":900000,"priority":7,"attempts":2,"failures":1,
        "standing":{"state":"scheduled","at":950000}}"#;

    #[test]
    fn a_task_comes_back_from_its_line() {
        let task: TaskInfo = serde_json::from_str(TASK).unwrap();
        let line = String::from_utf8(json_line(&task).unwrap()).unwrap();
        assert_eq!(line.lines().count(), 1);
        let line = Line::read(&line).unwrap();
        assert_eq!(line.kind(), Kind::Live);
        let back = line.into_task().unwrap();
        assert_eq!((back.topic.as_str(), back.id.as_deref(), back.key.as_deref()), ("t", Some("i"), Some("k")));
        assert_eq!(back.body.as_ref().unwrap().get(), "{\"a\": 1.50}");
        assert_eq!((back.at, back.delay), (Some(Time(900_000)), None));
        assert_eq!((back.priority, back.ttl, back.lease), (Some(7), Some(Span(3_600_000)), Some(Span(300_000))));
        assert_eq!(back.max_lease, Some(Span(540_000)));
        assert_eq!(back.retry.map(|retry| retry.attempts), Some(3));
        assert_eq!((back.routing_key.as_deref(), back.headers["h"].as_str()), (Some("a.b"), "v"));
        assert_eq!(back.headers.len(), 1, "what Punctual set is not scheduled again");
        assert!(!back.replace);
    }

    #[test]
    fn a_body_that_is_null_comes_back_as_null() {
        let line = Line::read(r#"{"topic":"t","id":"i","due":1,"body":null}"#).unwrap();
        assert_eq!(line.into_task().unwrap().body.unwrap().get(), "null");
    }

    #[test]
    fn bytes_and_texts_come_back_as_they_were() {
        let line = Line::read(r#"{"topic":"t","id":"i","due":1,"base64":"AP8="}"#).unwrap();
        assert_eq!(line.into_task().unwrap().base64, Some(Base64(vec![0, 255])));
        let line = Line::read(r#"{"topic":"t","id":"i","due":1,"text":"{}"}"#).unwrap();
        assert_eq!(line.into_task().unwrap().text.as_deref(), Some("{}"));
    }

    #[test]
    fn a_line_may_be_written_by_hand() {
        let line = Line::read(r#"{"topic":"t","id":"i","at":"2026-12-24T18:00:00Z","text":"hello"}"#).unwrap();
        assert!(line.into_task().unwrap().at.is_some());
    }

    #[test]
    fn a_line_without_id_or_due_time_is_refused() {
        let refused = |text: &str| Line::read(text).unwrap().into_task().unwrap_err().to_string();
        assert!(refused(r#"{"topic":"t","due":1}"#).contains("no id"));
        assert!(refused(r#"{"topic":"t","id":"i"}"#).contains("no due time"));
        assert!(Line::read("not json").unwrap_err().to_string().contains("not a task"));
        let bad = Line::read(r#"{"topic":"t","id":"i","due":1,"retry":{"attempts":"many"}}"#).unwrap_err().to_string();
        assert!(bad.contains("`retry.attempts`: this must be a number"), "it names the field: {bad}");
    }

    #[test]
    fn dead_and_finished_tasks_are_told_apart() {
        let kind = |standing: &str| {
            Line::read(&format!(r#"{{"topic":"t","id":"i","due":1,"standing":{standing}}}"#)).unwrap().kind()
        };
        assert_eq!(kind(r#"{"state":"dead","reason":"rejected","at":1}"#), Kind::Dead);
        assert_eq!(kind(r#"{"state":"finished","ending":"done","at":1}"#), Kind::Finished);
        assert_eq!(kind(r#"{"state":"ready","since":1}"#), Kind::Live);
    }
}
