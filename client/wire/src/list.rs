//! Looking at tasks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::bytes::Base64;
use crate::given::given;
use crate::settings::Retry;
use crate::standing::{Ending, Standing};
use crate::time::{Span, Time};

/// Everything known about a task. Bodies and headers are included on request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskInfo {
    /// Its topic.
    pub topic: String,
    /// Its id.
    pub id: String,
    /// Its number, by which it can also be found: its job id at the beanstalk door. Absent in the archive, whose tasks are no
    /// longer in the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its body, if it was sent as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub body: Option<Box<RawValue>>,
    /// Its body, if it was sent as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its body, if it was sent as bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<Base64>,
    /// Its headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Its routing key, which bindings match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing_key: Option<String>,
    /// Its time to live, counted from its due time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// What happens when it fails, if that differs from the queue's settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// The length of a lease for consumers that do not ask for one, if it differs from the queue's settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Span>,
    /// The maximum length of a lease on it, if that is less than the queue allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lease: Option<Span>,
    /// When it was scheduled.
    pub scheduled_at: Time,
    /// When it is or was due.
    pub due: Time,
    /// The queue, once it has been handed out or given up there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Where it stands.
    pub standing: Standing,
    /// Lower comes first.
    pub priority: u32,
    /// How many times it was handed out.
    pub attempts: u32,
    /// How many of the attempts failed.
    pub failures: u32,
    /// What else happened to it, if anything.
    #[serde(default, skip_serializing_if = "Past::is_empty")]
    pub past: Past,
    /// Its first and last unsuccessful attempts, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<Attempt>,
    /// Where its open deliveries stand, if it was broadcast. Empty in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliveries: Vec<DeliveryInfo>,
}

/// Everything known about a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeliveryInfo {
    /// Its number: its job id at the beanstalk door.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The queue, once it has been handed out or given up there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Where it stands.
    pub standing: Standing,
    /// Lower comes first.
    pub priority: u32,
    /// How many times it was handed out.
    pub attempts: u32,
    /// How many of the attempts failed.
    pub failures: u32,
    /// What else happened to it, if anything.
    #[serde(default, skip_serializing_if = "Past::is_empty")]
    pub past: Past,
    /// Its first and last unsuccessful attempts, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<Attempt>,
}

/// An unsuccessful attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Attempt {
    /// Which attempt it was; counting restarts at one after a replay.
    pub attempt: u32,
    /// When it ended.
    pub at: Time,
    /// The consumer.
    pub consumer: String,
    /// How it ended.
    pub undone: Undone,
    /// The beginning of the note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How an unsuccessful attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Undone {
    /// Its consumer gave it back to be retried.
    Failed,
    /// Its lease ended without an answer.
    Lapsed,
    /// Its consumer gave it back for a time of its choice. This is not a failure.
    Released,
    /// Its consumer said that the work cannot be done.
    Rejected,
    /// An operator ended its lease.
    Revoked,
    /// Its consumer's connection was lost.
    Abandoned,
}

/// What happened to a task or a delivery apart from its current attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Past {
    /// How many times it was handed out before its attempts were reset.
    pub attempts: u32,
    /// How many of those attempts failed.
    pub failures: u32,
    /// How many times a consumer gave it back.
    pub releases: u32,
    /// How many times a consumer rejected it.
    pub rejections: u32,
    /// How many times it was replayed, as a dead letter or as a finished task, or made due early.
    pub replays: u32,
}

impl Past {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        *self == Past::default()
    }
}

/// What to list, as the query of `GET /v1/tasks`, `/v1/dead`, `/v1/history`, and `/v1/keys/{key}`. A filter that does not
/// apply to a list is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Only those of this topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<crate::Name>))]
    pub topic: Option<String>,
    /// Dead letters and finished tasks: only those of this queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<crate::Name>))]
    pub queue: Option<String>,
    /// Dead letters and finished tasks: only those with this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<crate::Name>))]
    pub key: Option<String>,
    /// Dead letters: only those with this reason: `rejected`, `out-of-attempts`, `expired`, `pushed-out` or `unrouted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Dead letters: only those whose notes are like this, as their group says; empty: only those without a note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Finished tasks: only those with this ending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// Which come first. Default: the latest dead letters and finished tasks, and the earliest of all others. Dead letters and
    /// finished tasks with a key are in the order in which they were scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<First>,
    /// Only those in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ListState>,
    /// Only those that come due, died, or finished at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// Only those before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// Unfinished tasks: only those that this consumer holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<crate::Name>))]
    pub holder: Option<String>,
    /// Only those that were handed out at least this many times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<u64>, maximum = 4294967295_i64))]
    pub attempts_min: Option<u32>,
    /// Only those with this text in their id, key, or routing key, or in the note of a dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// Whether to count instead of listing: up to 10,000, looking at up to 100,000 rows. Default: no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<bool>,
    /// The maximum number of entries. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1000))]
    pub limit: Option<u32>,
    /// Continue where the previous page ended: its `next`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Whether to include bodies and headers. Default: no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bodies: Option<bool>,
}

/// Which end of a list comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum First {
    /// What comes due, died, or finished last.
    #[default]
    Latest,
    /// What comes due, died, or finished first.
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

/// Which deliveries of a queue to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct ListDeliveries {
    /// Those waiting for a consumer, in the order in which they are handed out, or those with a consumer, by the end of their
    /// lease. Default: ready.
    #[serde(default)]
    pub state: DeliveryState,
    /// The maximum number of entries. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1000))]
    pub limit: Option<u32>,
    /// Continue where the previous page ended: its `next`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// A state by which the deliveries of a queue can be listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// Waiting for a consumer.
    #[default]
    Ready,
    /// With a consumer.
    Leased,
}

/// One page of a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Page {
    /// The tasks; there may be fewer than requested even if there are more.
    pub tasks: Vec<TaskInfo>,
    /// Where to continue; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How many rows of the topics that the token covers were looked at for this page, or to count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_at: Option<u64>,
    /// With `count`: how many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// With `count`: whether there are more than were counted, or may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<bool>,
}
