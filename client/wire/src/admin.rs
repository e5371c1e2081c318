//! Topics, queues, sweeps, forecasts and numbers: what operators look at and do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::given::given;
use crate::object::objects;
use crate::settings::{QueueSettings, TopicSettings};
use crate::time::{Shift, Span, Time};

/// A topic, its settings and how much it holds. A task that was broadcast counts once for each open delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TopicInfo {
    /// Its name.
    pub name: String,
    /// What it is told to do.
    pub settings: TopicSettings,
    /// Waiting for their time or for a consumer.
    pub waiting: u64,
    /// With a consumer.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
    /// Finished and still kept.
    pub history: u64,
    /// What happened to it since the server started, or since it was made.
    #[serde(default)]
    pub happened: Happened,
}

/// Which topics or queues are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct ListNames {
    /// At most so many; without, 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1000))]
    pub limit: Option<u32>,
    /// Go on where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        param(min_length = 1, max_length = 255, pattern = "^[^\\u0000-\\u0020\\u007f-\\u00a0]+$")
    )]
    pub cursor: Option<String>,
}

/// A page of topics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TopicList {
    /// In the order of their names.
    pub topics: Vec<TopicInfo>,
    /// Where to go on; not there if that was all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A queue, its settings and how much it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueInfo {
    /// Its name.
    pub name: String,
    /// What it is told to do.
    pub settings: QueueSettings,
    /// Waiting for a consumer.
    pub ready: u64,
    /// With a consumer.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
    /// Since when the delivery has been ready that was ready first. In a queue ordered by arrival: of those that are
    /// first in line, one for each priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_ready: Option<Time>,
    /// The server's part of the lateness: how long after they should have been deliveries were offered to consumers.
    #[serde(default)]
    pub offered_micros: Timing,
    /// The consumers' part: how long after they were offered deliveries were handed over.
    #[serde(default)]
    pub taken_micros: Timing,
}

/// How long the deliveries of a queue took since the server started, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Timing {
    /// How many there were.
    pub count: u64,
    /// The mean.
    pub mean: u64,
    /// Half of them took at most this; one of few bounds, such as 1000, 2000, 5000.
    pub p50: u64,
    /// 99 percent of them took at most this; the same.
    pub p99: u64,
}

/// A page of queues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueList {
    /// In the order of their names.
    pub queues: Vec<QueueInfo>,
    /// Where to go on; not there if that was all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// For how long a queue is paused; without either, until it is resumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct PauseQueue {
    /// Until this instant.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub until: Option<Time>,
    /// For so long.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub length: Option<Span>,
}

/// What was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Deleted {
    /// How many tasks, deliveries, dead letters and finished tasks went with it.
    pub rows: u64,
}

/// How to move the tasks of a key. Exactly one of `at`, `delay` and `by`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct ShiftKey {
    /// To this instant.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub at: Option<Time>,
    /// To so long from now.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub delay: Option<Span>,
    /// By so much, in either direction.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub by: Option<Shift>,
    /// Only tasks of this topic.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(
        feature = "openapi",
        schema(
            min_length = 1,
            max_length = 255,
            pattern = "^(\\.{0,2}[^\\u0000-\\u0020.\\u007f-\\u00a0]|\\.{3})[^\\u0000-\\u0020\\u007f-\\u00a0]*$"
        )
    )]
    pub topic: Option<String>,
    /// Only count.
    #[serde(default)]
    pub dry_run: bool,
}

/// Which dead letters or finished tasks to replay or purge. Dead letters need a filter, or `all`. Replaying the history
/// needs a topic, and the history has no queues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Selection {
    /// Only of this topic.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(
        feature = "openapi",
        schema(
            min_length = 1,
            max_length = 255,
            pattern = "^(\\.{0,2}[^\\u0000-\\u0020.\\u007f-\\u00a0]|\\.{3})[^\\u0000-\\u0020\\u007f-\\u00a0]*$"
        )
    )]
    pub topic: Option<String>,
    /// Only of this queue.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(
        feature = "openapi",
        schema(
            min_length = 1,
            max_length = 255,
            pattern = "^(\\.{0,2}[^\\u0000-\\u0020.\\u007f-\\u00a0]|\\.{3})[^\\u0000-\\u0020\\u007f-\\u00a0]*$"
        )
    )]
    pub queue: Option<String>,
    /// Only those that died or finished from this instant on.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub from: Option<Time>,
    /// Only those that died or finished before this instant.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub until: Option<Time>,
    /// Finished tasks: only those that ended so; without, only those that are done.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub ending: Option<EndingChoice>,
    /// Dead letters: really all of them. Needed if nothing else says which.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Only count.
    #[serde(default)]
    pub dry_run: bool,
}

/// Which endings are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndingChoice {
    /// What a consumer acknowledged.
    Done,
    /// What was cancelled.
    Cancelled,
    /// What went on to another topic as a dead letter.
    Forwarded,
    /// What was removed as a dead letter.
    Purged,
    /// However they ended.
    Any,
}

/// What a change to many tasks did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Swept {
    /// So many matched.
    pub matched: u64,
    /// So many were changed, or would be if it were not a dry run.
    pub changed: u64,
    /// So many came too late.
    pub too_late: u64,
    /// So many stay what they are: their queue is full.
    #[serde(default)]
    pub no_room: u64,
}

/// The length of a slot of the forecast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// 60 seconds.
    #[default]
    Minute,
    /// 60 minutes.
    Hour,
    /// 24 hours, from midnight UTC.
    Day,
}

/// How many deliveries come due when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Forecast {
    /// How long a slot is.
    pub unit: Unit,
    /// The slots, the running one first.
    pub slots: Vec<ForecastSlot>,
    /// Slots from here on are left out. For a token that is bound to topics their deliveries are counted when it asks, and
    /// there were too many to look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_until: Option<Time>,
}

/// One slot of the forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ForecastSlot {
    /// Its beginning.
    pub from: Time,
    /// How many come due in it.
    pub due: u64,
}

/// How a server has been working since it started. A token that is bound to topics is told of these, and not of the
/// server as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Stats {
    /// The version of the server.
    pub version: String,
    /// The time by its clock.
    pub now: Time,
    /// When it started.
    pub started_at: Time,
    /// How late deliveries were handed over, in microseconds after they were due, whether the server was slow or
    /// nobody asked for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_micros: Option<Distribution>,
    /// The server's part of it: from when they should have been until they were offered to consumers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_micros: Option<Distribution>,
    /// The consumers' part of it: from when they were offered until they were handed over. With a consumer waiting
    /// that is as long as it takes to write it down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_micros: Option<Distribution>,
    /// How long it took to make a commit durable, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_micros: Option<Distribution>,
    /// How many rows each commit changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_changes: Option<Distribution>,
    /// How many commits failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_commits: Option<u64>,
    /// How many answers were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<u64>,
    /// How many consumers wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_consumers: Option<u64>,
    /// How many requests wait to be looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_requests: Option<u64>,
    /// What happened to all topics together, those included that are deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub happened: Option<Happened>,
    /// How much there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<Total>,
    /// What happened to the 100 topics to which most has happened; of others, their own pages tell.
    pub topics: BTreeMap<String, Happened>,
    /// How often a request was refused, by the code of the problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusals: Option<BTreeMap<String, u64>>,
    /// What the store takes, by what it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreSize>,
}

/// How much there is in all topics and queues together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Total {
    /// How many topics there are.
    pub topics: u64,
    /// How many queues there are.
    pub queues: u64,
    /// Waiting for their time or for a consumer.
    pub waiting: u64,
    /// Those of them that wait for a consumer.
    pub ready: u64,
    /// With a consumer.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
    /// Finished and still kept.
    pub history: u64,
}

/// What a store takes of memory and disk, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StoreSize {
    /// Of memory.
    pub memory_bytes: u64,
    /// Of disk.
    pub disk_bytes: u64,
}

/// How often something happened to tasks of a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Happened {
    /// Tasks were taken in.
    pub scheduled: u64,
    /// Tasks were moved.
    pub rescheduled: u64,
    /// Deliveries became available.
    pub fired: u64,
    /// Deliveries were handed out.
    pub leased: u64,
    /// Deliveries were given back without having failed.
    pub released: u64,
    /// Attempts failed, and another one comes.
    pub failed: u64,
    /// Deliveries were acknowledged.
    pub done: u64,
    /// Tasks were cancelled.
    pub cancelled: u64,
    /// Deliveries became dead letters.
    pub dead: u64,
    /// Dead letters and finished tasks were handed out again.
    pub replayed: u64,
}

/// How the values of a measurement are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Distribution {
    /// How many values there are.
    pub count: u64,
    /// Their mean.
    pub mean: u64,
    /// Half of them are at most this.
    pub p50: u64,
    /// 90 percent of them are at most this.
    pub p90: u64,
    /// 99 percent of them are at most this.
    pub p99: u64,
    /// 999 of a thousand are at most this.
    pub p999: u64,
    /// The greatest of them.
    pub max: u64,
}

objects!(PauseQueue, ShiftKey, Selection);
