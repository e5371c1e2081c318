//! Topics, queues, sweeps, forecasts and numbers: what operators look at and do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::given::given;
use crate::object::objects;
use crate::settings::{QueueSettings, TopicSettings};
use crate::time::{Shift, Span, Time};

/// A topic, its settings, and how much it holds. A broadcast task counts once for each open delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TopicInfo {
    /// Its name.
    pub name: String,
    /// Its settings.
    pub settings: TopicSettings,
    /// Which settings these are: send it as `If-Match` to change them only if nobody else has meanwhile.
    #[serde(default)]
    pub version: String,
    /// Waiting for their time or for a consumer.
    pub waiting: u64,
    /// With a consumer.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
    /// Finished and still kept.
    pub history: u64,
    /// What happened in it since the server started, or since it was created.
    #[serde(default)]
    pub happened: Happened,
    /// Who paused it, if it is paused and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<PauseNote>,
}

/// Who paused a topic or queue, since when, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PauseNote {
    /// The name of the token that paused it; `loopback` where none is needed, `beanstalk` for a tube.
    pub by: String,
    /// Since when it has been paused without a break.
    pub since: Time,
    /// Why, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Which topics or queues to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct ListNames {
    /// The maximum number of entries. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1000))]
    pub limit: Option<u32>,
    /// Continue where the previous page ended: its `next`.
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
    /// Ordered by name.
    pub topics: Vec<TopicInfo>,
    /// Where to continue; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A queue, its settings, and how much it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueInfo {
    /// Its name.
    pub name: String,
    /// Its settings.
    pub settings: QueueSettings,
    /// Which settings these are: send it as `If-Match` to change them only if nobody else has meanwhile.
    #[serde(default)]
    pub version: String,
    /// Waiting for a consumer.
    pub ready: u64,
    /// With a consumer.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
    /// Since when the oldest ready delivery has been ready. In a queue ordered by arrival, only the first in line of each
    /// priority is considered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_ready: Option<Time>,
    /// The server's part of the lateness: from when deliveries should have been offered to consumers until they were.
    #[serde(default)]
    pub offered_micros: Timing,
    /// The consumers' part: from when deliveries were offered until they were handed over.
    #[serde(default)]
    pub taken_micros: Timing,
    /// Who paused it, if it is paused and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<PauseNote>,
}

/// How long the deliveries of a queue took since the server started, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Timing {
    /// The number of deliveries.
    pub count: u64,
    /// The mean.
    pub mean: u64,
    /// Half of them took at most this long; rounded up to a coarse bound, such as 1000, 2000, or 5000.
    pub p50: u64,
    /// 99 percent of them took at most this long; rounded up likewise.
    pub p99: u64,
}

/// A page of queues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueList {
    /// Ordered by name.
    pub queues: Vec<QueueInfo>,
    /// Where to continue; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Why to pause a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct PauseTopic {
    /// Why, in at most 1024 bytes: for whoever wonders later.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(max_length = 1024))]
    pub reason: Option<String>,
}

/// For how long to pause a queue, and why. With neither `until` nor `for`, until it is resumed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct PauseQueue {
    /// Until this time.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub until: Option<Time>,
    /// For this duration.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub length: Option<Span>,
    /// Why, in at most 1024 bytes: for whoever wonders later.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(max_length = 1024))]
    pub reason: Option<String>,
}

/// What was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Deleted {
    /// How many tasks, deliveries, dead letters, and finished tasks were deleted with it.
    pub rows: u64,
}

/// How to move the tasks of a key. Exactly one of `at`, `delay`, and `by`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct ShiftKey {
    /// The new due time.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub at: Option<Time>,
    /// The new due time, from now.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub delay: Option<Span>,
    /// Move the due time by this much, in either direction.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub by: Option<Shift>,
    /// Only tasks of this topic.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::Name>))]
    pub topic: Option<String>,
    /// Only count, without changing anything.
    #[serde(default)]
    pub dry_run: bool,
}

/// Which dead letters or finished tasks to replay or purge. Dead letters need a filter, or `all`. Replaying the history
/// needs a topic, and cannot be filtered by queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Selection {
    /// Only those of this topic.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::Name>))]
    pub topic: Option<String>,
    /// Only those of this queue.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::Name>))]
    pub queue: Option<String>,
    /// Only those that died or finished at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub from: Option<Time>,
    /// Only those that died or finished before this time.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub until: Option<Time>,
    /// Finished tasks: only those with this ending. Default: those that are done.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub ending: Option<EndingChoice>,
    /// Dead letters: all of them. Required if there is no filter.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Only count, without changing anything.
    #[serde(default)]
    pub dry_run: bool,
}

/// An ending to select by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndingChoice {
    /// Acknowledged by a consumer.
    Done,
    /// Cancelled.
    Cancelled,
    /// Forwarded to another topic as a dead letter.
    Forwarded,
    /// Removed as a dead letter.
    Purged,
    /// Any ending.
    Any,
}

/// The result of a bulk change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Swept {
    /// How many matched.
    pub matched: u64,
    /// How many were changed, or would be if this were not a dry run.
    pub changed: u64,
    /// For how many it was too late.
    pub too_late: u64,
    /// How many were left as they are because their queue is full.
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
    /// 7 days, from Monday on, in UTC.
    Week,
    /// A month of the calendar, in UTC.
    Month,
}

/// Which forecast.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct ForecastQuery {
    /// The length of a slot; without, a minute.
    #[serde(default)]
    pub unit: Unit,
    /// How many slots; without, 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1440))]
    pub slots: Option<u32>,
    /// Only from the slot on that has this time in it; without, from the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// Only this topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<crate::Name>))]
    pub topic: Option<String>,
    /// Tell so many of the topics with the most deliveries apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 100))]
    pub top: Option<u32>,
}

/// How many deliveries come due when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Forecast {
    /// How long a slot is.
    pub unit: Unit,
    /// The slots, starting with the current one or that of `from`.
    pub slots: Vec<ForecastSlot>,
    /// Slots from here on are left out. By topic, and for a token that is bound to topics, deliveries are counted on
    /// request, and there were too many to count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_until: Option<Time>,
    /// With `top`: the topics with the most deliveries in these slots, most first, and all others together last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<TopicForecast>,
    /// With `top`, if there were too many to count by topic: the slot that begins here is the last one told of each topic, and at
    /// least so many come due in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topics_until: Option<Time>,
}

/// How many deliveries of a topic come due when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TopicForecast {
    /// The topic; absent for all others together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// How many come due in each slot, in their order.
    pub due: Vec<u64>,
}

/// One slot of the forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ForecastSlot {
    /// When it begins.
    pub from: Time,
    /// How many come due in it.
    pub due: u64,
}

/// How the nodes have performed, all together or one of them, since each of them started: what a node has counted goes with it.
/// A token that is bound to topics sees numbers for these only, and none for the nodes as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Stats {
    /// The version of the node that answers.
    pub version: String,
    /// The time.
    pub now: Time,
    /// When the first of the nodes started.
    pub started_at: Time,
    /// How late deliveries were handed over, in microseconds after they were due, including the time during which no consumer
    /// asked for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_micros: Option<Distribution>,
    /// How late they were in the last 10 to 20 seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recent_lateness_micros: Option<Distribution>,
    /// The server's part of it: from when deliveries should have been offered to consumers until they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_micros: Option<Distribution>,
    /// The consumers' part of it: from when deliveries were offered until they were handed over. If a consumer is waiting,
    /// this is the time of a commit.
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
    /// How many commits the store had confirmed and has lost since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_commits: Option<u64>,
    /// How many answers were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<u64>,
    /// How many consumers are waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_consumers: Option<u64>,
    /// How many requests are waiting to be processed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_requests: Option<u64>,
    /// What happened in all topics together, including deleted ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub happened: Option<Happened>,
    /// How much there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<Total>,
    /// What happened in the 100 busiest topics; for others, ask for the topic itself.
    pub topics: BTreeMap<String, Happened>,
    /// How often a request was refused, by the code of the problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusals: Option<BTreeMap<String, u64>>,
    /// How much the store uses, and how it is reached by the node that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreStats>,
    /// Nodes that are there and said nothing within a second: what they have done is missing here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
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
    /// Those of them that are waiting for a consumer.
    pub ready: u64,
    /// With a consumer.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
    /// Finished and still kept.
    pub history: u64,
}

/// How much a store uses, and how it is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StoreStats {
    /// Which store it is: `almanac`, `memory`, `postgres`, `mysql` or `redis`.
    #[serde(default)]
    pub kind: String,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Disk, in bytes.
    pub disk_bytes: u64,
    /// How it is reached, if it is a database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<StoreLink>,
}

/// How a database is reached, since the server started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StoreLink {
    /// How many requests were sent to it.
    pub round_trips: u64,
    /// How many of them were attempts after a failed one.
    pub retries: u64,
    /// How many calls failed after all attempts.
    pub failures: u64,
    /// How many connections are open.
    pub connections: u64,
    /// How many of them are in use.
    pub busy: u64,
}

/// How often things happened to the tasks of a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Happened {
    /// Tasks were scheduled.
    pub scheduled: u64,
    /// Tasks were moved.
    pub rescheduled: u64,
    /// Deliveries became available.
    pub fired: u64,
    /// Deliveries were handed out.
    pub leased: u64,
    /// Deliveries were given back without having failed.
    pub released: u64,
    /// Attempts failed, with another to follow.
    pub failed: u64,
    /// Deliveries were acknowledged.
    pub done: u64,
    /// Tasks were cancelled.
    pub cancelled: u64,
    /// Deliveries became dead letters.
    pub dead: u64,
    /// Dead letters and finished tasks were replayed.
    pub replayed: u64,
}

/// The distribution of a measurement.
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
    /// 99.9 percent of them are at most this.
    pub p999: u64,
    /// The largest of them.
    pub max: u64,
}

objects!(PauseQueue, PauseTopic, ShiftKey, Selection);
