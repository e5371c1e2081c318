//! Looking at tasks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::bytes::Base64;
use crate::given::given;
use crate::settings::Retry;
use crate::standing::{Ending, Standing};
use crate::time::{Span, Time};

/// All that is known of a task. Bodies and headers are there if they were asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskInfo {
    /// Its topic.
    pub topic: String,
    /// Its id.
    pub id: String,
    /// The number of its row, by which it can be found too: its job id at the beanstalk door. Not there in the archive,
    /// whose tasks have no rows any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its body, if it was handed in as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub body: Option<Box<RawValue>>,
    /// Its body, if it was handed in as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its body, if it was handed in as bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<Base64>,
    /// What goes along with the body.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What bindings look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing_key: Option<String>,
    /// How long after its due time it is worth handing over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// What happens when it fails, if that differs from the queue's settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// How long a consumer may work on it if it does not say, if that differs from the queue's settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Span>,
    /// How long a lease on it lasts at most, if that is less than the queue allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lease: Option<Span>,
    /// When it was scheduled.
    pub scheduled_at: Time,
    /// When it is or was due.
    pub due: Time,
    /// The queue, once it was handed out or given up there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Where it stands.
    pub standing: Standing,
    /// Lower comes first.
    pub priority: u32,
    /// How often it was handed out.
    pub attempts: u32,
    /// How many of the attempts failed.
    pub failures: u32,
    /// What happened to it besides, if anything did.
    #[serde(default, skip_serializing_if = "Past::is_empty")]
    pub past: Past,
    /// The first and the last of its attempts that did not end in the work being done, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<Attempt>,
    /// Where its open deliveries stand, if it was broadcast. Empty in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliveries: Vec<DeliveryInfo>,
}

/// All that is known of a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeliveryInfo {
    /// The number of its row: its job id at the beanstalk door.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The queue, once it was handed out or given up there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Where it stands.
    pub standing: Standing,
    /// Lower comes first.
    pub priority: u32,
    /// How often it was handed out.
    pub attempts: u32,
    /// How many of the attempts failed.
    pub failures: u32,
    /// What happened to it besides, if anything did.
    #[serde(default, skip_serializing_if = "Past::is_empty")]
    pub past: Past,
    /// The first and the last of its attempts that did not end in the work being done, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<Attempt>,
}

/// An attempt that did not end in the work being done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Attempt {
    /// Which one it was; after a replay they count from one again.
    pub attempt: u32,
    /// When it ended.
    pub at: Time,
    /// The consumer.
    pub consumer: String,
    /// How it ended.
    pub undone: Undone,
    /// The beginning of what was said about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How an attempt ended, if the work was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Undone {
    /// Its consumer gave it back to be retried.
    Failed,
    /// Its lease ended without a word.
    Lapsed,
    /// Its consumer gave it back for a time of its choice. That is no failure.
    Released,
    /// Its consumer said that the work cannot be done.
    Rejected,
    /// An operator ended its lease.
    Revoked,
    /// The connection of its consumer was gone.
    Abandoned,
}

/// What happened to a task or a delivery besides the attempts that count now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Past {
    /// How often it was handed out before its attempts were counted from zero again.
    pub attempts: u32,
    /// How many of those attempts failed.
    pub failures: u32,
    /// How often its consumer gave it back.
    pub releases: u32,
    /// How often its consumer said that the work cannot be done.
    pub rejections: u32,
    /// How often it was called back: as a dead letter, as finished, or before its time.
    pub replays: u32,
}

impl Past {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        *self == Past::default()
    }
}

/// What to list, as the query of `GET /v1/tasks`, `/v1/dead`, `/v1/history` and `/v1/keys/{key}`. Not every
/// filter fits every list; one that does not is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Only of this topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        param(
            min_length = 1,
            max_length = 255,
            pattern = "^(\\.{0,2}[^\\u0000-\\u0020.\\u007f-\\u00a0]|\\.{3})[^\\u0000-\\u0020\\u007f-\\u00a0]*$"
        )
    )]
    pub topic: Option<String>,
    /// Dead letters and finished tasks: only of this queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        param(
            min_length = 1,
            max_length = 255,
            pattern = "^(\\.{0,2}[^\\u0000-\\u0020.\\u007f-\\u00a0]|\\.{3})[^\\u0000-\\u0020\\u007f-\\u00a0]*$"
        )
    )]
    pub queue: Option<String>,
    /// Dead letters and finished tasks: only with this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        param(min_length = 1, max_length = 255, pattern = "^[^\\u0000-\\u0020\\u007f-\\u00a0]+$")
    )]
    pub key: Option<String>,
    /// Dead letters: only those that died of this: `rejected`, `out-of-attempts`, `expired`, `pushed-out` or `unrouted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Finished tasks: only those that finished so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// Dead letters and finished tasks: which come first; without, the latest. Those of a key stand in the order in
    /// which they were scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<First>,
    /// Tasks: only in this state. Tasks of a key: which of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ListState>,
    /// From this instant on: when they come due, died or finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// Up to before this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// At most so many; without, 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1000))]
    pub limit: Option<u32>,
    /// Go on where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Whether bodies and headers come along; without, they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bodies: Option<bool>,
}

/// Which end of a list comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum First {
    /// What died or finished last.
    #[default]
    Latest,
    /// What died or finished first.
    Earliest,
}

/// A state by which tasks can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ListState {
    /// Waiting for their time.
    Scheduled,
    /// Waiting for a consumer.
    Ready,
    /// With a consumer.
    Leased,
    /// Broadcast to several queues.
    Spread,
    /// Dead letters; for tasks of a key only.
    Dead,
    /// Finished; for tasks of a key only.
    Finished,
}

/// One page of a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Page {
    /// The tasks, maybe fewer than asked for even if there are more.
    pub tasks: Vec<TaskInfo>,
    /// Where to go on; not there if that was all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
