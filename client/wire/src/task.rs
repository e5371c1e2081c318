//! Scheduling tasks, and changing what was scheduled.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::bytes::Base64;
use crate::given::given;
use crate::object::objects;
use crate::problem::Answer;
use crate::settings::Retry;
use crate::standing::Standing;
use crate::time::{Shift, Span, Time};

/// A task to schedule. At most one of `body`, `text`, and `base64`, and at most one of `delay` and `at`;
/// with neither of the latter it is due at once.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct NewTask {
    /// Its topic: 1 to 255 bytes of visible characters.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::Name))]
    pub topic: String,
    /// Its id within the topic; generated if omitted. The same topic and id again is the same task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::Name>))]
    pub id: Option<String>,
    /// Due this long from now.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub delay: Option<Span>,
    /// Due at this time; a time in the past means at once.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub at: Option<Time>,
    /// The body, as any JSON; it comes back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub body: Option<Box<RawValue>>,
    /// The body as plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The body as bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<Base64>,
    /// Headers that are handed over with the body.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A key by which to find it together with others: a user, an order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::Name>))]
    pub key: Option<String>,
    /// The routing key that the topic's bindings match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::Name>))]
    pub routing_key: Option<String>,
    /// Its priority; lower comes first. Default: the topic's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>, maximum = 4294967295_i64))]
    pub priority: Option<u32>,
    /// Its time to live, counted from its due time. Default: the topic's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// Its retry policy. Default: the queue's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// The length of a lease for consumers that do not ask for one. Default: the queue's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Span>,
    /// The maximum length of a lease on it. Default: the queue's, which also applies if it is shorter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lease: Option<Span>,
    /// Whether to replace a task with the same id that has not been handed out yet, or is finished.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
}

/// The result of scheduling a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Scheduled {
    /// Its topic.
    pub topic: String,
    /// Its id, generated if none was given.
    pub id: String,
    /// What happened.
    pub outcome: ScheduleOutcome,
    /// When it is due, if it is new or replaced another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Time>,
    /// Where the existing task stands, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// If there was one already: how to proceed if this is not what you wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The same, written without a copy of its texts.
#[derive(Clone, Debug, Serialize)]
pub struct ScheduledRef<'a> {
    /// Its topic.
    pub topic: &'a str,
    /// Its id.
    pub id: &'a str,
    /// What happened.
    pub outcome: ScheduleOutcome,
    /// When it is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<Time>,
    /// Where the task of this id stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// How to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<&'a str>,
}

/// What scheduling did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ScheduleOutcome {
    /// The task is new.
    Created,
    /// It replaced one that had not been handed out, or was finished.
    Replaced,
    /// There already is a task with this id; nothing was changed.
    Existed,
}

/// Tasks to schedule together; each is answered individually.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Batch {
    /// The tasks.
    #[cfg_attr(feature = "openapi", schema(max_items = 10000))]
    pub tasks: Vec<NewTask>,
}

/// The results for the tasks of a [`Batch`], in the same order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchResults {
    /// One result for each task.
    pub results: Vec<Answer<Scheduled>>,
}

/// The result of a cancellation that was not too late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Cancelled {
    /// The task's topic.
    pub topic: String,
    /// The task's id.
    pub id: String,
    /// What happened.
    pub outcome: CancelOutcome,
}

/// What cancelling did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum CancelOutcome {
    /// It is cancelled and will never be handed over.
    Cancelled,
    /// It had been cancelled before, as when a request is repeated because its answer was lost.
    WasCancelled,
}

/// What to change about a task. At most one of `at`, `delay`, and `by`, and at most one of `body`, `text`, and `base64`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Reschedule {
    /// The new due time.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub at: Option<Time>,
    /// The new due time, from now.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub delay: Option<Span>,
    /// Move the due time by this much, in either direction. Unlike the others, this must not be repeated if its answer was lost.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub by: Option<Shift>,
    /// The new priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>, maximum = 4294967295_i64))]
    pub priority: Option<u32>,
    /// The new body, as any JSON.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub body: Option<Box<RawValue>>,
    /// The body as plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The body as bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<Base64>,
}

/// The result of a change that was not too late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Rescheduled {
    /// The task's topic.
    pub topic: String,
    /// The task's id.
    pub id: String,
    /// When it is due now.
    pub due: Time,
}

/// The result of replaying a dead letter or a finished task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Replayed {
    /// Where it stands now. Nothing is replayed into a full queue, whatever its overflow setting.
    pub standing: Standing,
}

/// A task whose cancellation was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Restored {
    /// The task's topic.
    pub topic: String,
    /// The task's id.
    pub id: String,
    /// Where it stands now.
    pub standing: Standing,
}

/// A task or delivery that is available now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Hastened {
    /// The task's topic.
    pub topic: String,
    /// The task's id.
    pub id: String,
    /// Where it stands now.
    pub standing: Standing,
}

objects!(NewTask, Batch, Reschedule);

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_a_task_reads_back_as_it_was_written() {
        let created = ScheduledRef {
            topic: "orders",
            id: "7",
            outcome: ScheduleOutcome::Created,
            due: Some(Time(9)),
            standing: None,
            hint: None,
        };
        let standing = Some(Standing::Ready { since: Time(5) });
        let hint = Some("use another id");
        let existed = ScheduledRef { outcome: ScheduleOutcome::Existed, due: None, standing, hint, ..created.clone() };
        for written in [created, existed] {
            let text = serde_json::to_string(&written).unwrap();
            let read: Scheduled = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
            assert_eq!((read.topic.as_str(), read.id.as_str()), (written.topic, written.id));
            assert_eq!((read.outcome, read.due, read.standing), (written.outcome, written.due, written.standing));
            assert_eq!(read.hint.as_deref(), written.hint);
        }
    }
}
