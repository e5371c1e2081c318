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

/// A task to schedule. At most one of `body`, `text` and `base64`, at most one of `delay` and `at`;
/// without the latter it is due at once.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct NewTask {
    /// Where it is scheduled: 1 to 255 bytes of visible characters.
    #[cfg_attr(
        feature = "openapi",
        schema(
            min_length = 1,
            max_length = 255,
            pattern = "^(\\.{0,2}[^\\u0000-\\u0020.\\u007f-\\u00a0]|\\.{3})[^\\u0000-\\u0020\\u007f-\\u00a0]*$"
        )
    )]
    pub topic: String,
    /// Its id within the topic; without, one is made up. The same topic and id again is the same task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        schema(
            min_length = 1,
            max_length = 255,
            pattern = "^(\\.{0,2}[^\\u0000-\\u0020.\\u007f-\\u00a0]|\\.{3})[^\\u0000-\\u0020\\u007f-\\u00a0]*$"
        )
    )]
    pub id: Option<String>,
    /// So long from now.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub delay: Option<Span>,
    /// At this instant; what lies in the past is due at once.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub at: Option<Time>,
    /// What is handed to the consumer, as any JSON; it comes back as it was.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub body: Option<Box<RawValue>>,
    /// The same as plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The same as bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<Base64>,
    /// What is handed over along with it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What it can be found by together with others: a user, an order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        schema(
            min_length = 1,
            max_length = 255,
            pattern = "^(\\.{0,2}[^\\u0000-\\u0020.\\u007f-\\u00a0]|\\.{3})[^\\u0000-\\u0020\\u007f-\\u00a0]*$"
        )
    )]
    pub key: Option<String>,
    /// What the topic's bindings look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        schema(
            min_length = 1,
            max_length = 255,
            pattern = "^(\\.{0,2}[^\\u0000-\\u0020.\\u007f-\\u00a0]|\\.{3})[^\\u0000-\\u0020\\u007f-\\u00a0]*$"
        )
    )]
    pub routing_key: Option<String>,
    /// Lower comes first; without, the topic's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>, maximum = 4294967295_i64))]
    pub priority: Option<u32>,
    /// How long after its due time it is worth handing over; without, the topic's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// What happens when it fails; without, the queue's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// How long a consumer may work on it if it does not say; without, as long as the queue gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Span>,
    /// How long a lease on it lasts at most, whoever asks for more; without, or if that is less, as long as the queue
    /// allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lease: Option<Span>,
    /// Whether a task of the same id that was not handed out yet, or is finished, gives way to this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
}

/// What became of a task that was handed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Scheduled {
    /// Its topic.
    pub topic: String,
    /// Its id, made up if none was given.
    pub id: String,
    /// What happened.
    pub outcome: ScheduleOutcome,
    /// When it is due, if it is new or took the place of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Time>,
    /// Where the task of this id stands, if there was one already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// How to go on if this is not what was wanted, in words; if there was one already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What scheduling did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ScheduleOutcome {
    /// The task is new.
    Created,
    /// It took the place of one that had not been handed out, or was finished.
    Replaced,
    /// There is a task of this id; nothing was changed.
    Existed,
}

/// Tasks to schedule together; each is answered by itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Batch {
    /// The tasks.
    #[cfg_attr(feature = "openapi", schema(max_items = 10000))]
    pub tasks: Vec<NewTask>,
}

/// What became of the tasks of a [`Batch`], in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchResults {
    /// One for each task.
    pub results: Vec<Answer<Scheduled>>,
}

/// What became of a cancellation that was not too late.
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
    /// It had been cancelled before: whoever asks again, because the answer was lost, may be sure.
    WasCancelled,
}

/// What to change about a task. At most one of `at`, `delay` and `by`, at most one of `body`, `text` and `base64`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Reschedule {
    /// To this instant.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub at: Option<Time>,
    /// To so long from now.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub delay: Option<Span>,
    /// By so much, in either direction. Unlike the others this must not be repeated when an answer was lost.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub by: Option<Shift>,
    /// To this priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>, maximum = 4294967295_i64))]
    pub priority: Option<u32>,
    /// To this body, as any JSON.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub body: Option<Box<RawValue>>,
    /// The same as plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The same as bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<Base64>,
}

/// What became of a change that was not too late.
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

/// What became of a dead letter or a finished task that was handed out again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Replayed {
    /// Where it stands now. Into a full queue nothing is replayed, whatever gives way there to what is new.
    pub standing: Standing,
}

objects!(NewTask, Batch, Reschedule);
