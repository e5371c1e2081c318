//! How the server is doing, once a second.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::admin::{Distribution, Happened, Total};
use crate::time::Time;

/// Which topics and queues to tell of, beside all together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct PulseQuery {
    /// These topics, with spaces between their names; at most 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(example = "order-unpaid coupon-end"))]
    pub topics: Option<String>,
    /// These queues, with spaces between their names; at most 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(example = "sms"))]
    pub queues: Option<String>,
}

/// How all nodes together are doing: the data of a server-sent event `pulse`. A token that is bound to topics gets what it asks
/// for by name, and nothing of the whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Pulse {
    /// The server's time.
    pub now: Time,
    /// When the first of the nodes started.
    pub started_at: Time,
    /// What happened since then in all topics together, including deleted ones. The difference between two pulses is a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub happened: Option<Happened>,
    /// How many requests were refused since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<u64>,
    /// How much there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<Total>,
    /// How late deliveries were handed over in the last 10 to 20 seconds, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_micros: Option<Distribution>,
    /// The topics that were asked for, as far as they exist.
    pub topics: BTreeMap<String, TopicPulse>,
    /// The queues that were asked for, as far as they exist.
    pub queues: BTreeMap<String, QueuePulse>,
    /// Nodes that are there and said nothing within a second: what happened there is missing here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
    /// Why it is not known how much there is, if it is not: then `total`, `topics` and `queues` are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How a topic is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TopicPulse {
    /// Waiting for their time or for a consumer.
    pub waiting: u64,
    /// With a consumer.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
    /// Whether it refuses new tasks.
    pub paused: bool,
    /// What happened in it since the server started, or since it was created.
    pub happened: Happened,
}

/// How a queue is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueuePulse {
    /// Waiting for a consumer.
    pub ready: u64,
    /// With a consumer.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
    /// Whether it hands out nothing.
    pub paused: bool,
    /// Until when it is paused, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Time>,
    /// Since when the oldest ready delivery has been ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_ready: Option<Time>,
}
