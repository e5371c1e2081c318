//! Who waits for deliveries, and who has some.

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Which consumers to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct ListConsumers {
    /// Only those waiting for this queue, or holding deliveries of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<crate::Name>))]
    pub queue: Option<String>,
    /// The maximum number of consumers. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1000))]
    pub limit: Option<u32>,
}

/// The consumers that are waiting for deliveries right now, at all nodes, and those that are working on some. One that is
/// working and is not asking for more is not waiting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ConsumerList {
    /// By name.
    pub consumers: Vec<ConsumerInfo>,
    /// How many there are, including those that are not listed.
    pub count: u64,
    /// Those that hold deliveries, by name and queue.
    #[serde(default)]
    pub holders: Vec<HolderInfo>,
    /// How many holders are not listed.
    #[serde(default)]
    pub holders_left_out: u64,
    /// How many deliveries are with a consumer that is not known here: they were handed out before the server started and their
    /// leases last long, or there are too many to look at.
    #[serde(default)]
    pub leases_unknown: u64,
    /// Nodes that did not answer in time: their consumers are missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
}

/// A waiting consumer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ConsumerInfo {
    /// Its name.
    pub name: String,
    /// The node it is connected to.
    pub node: String,
    /// The queues it is waiting for, of those that the token covers.
    pub queues: Vec<String>,
    /// How many deliveries it takes at once.
    pub max: u64,
}

/// A consumer that holds deliveries of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HolderInfo {
    /// Its name.
    pub name: String,
    /// The queue.
    pub queue: String,
    /// How many deliveries it holds.
    pub leases: u64,
    /// Since when it has held the first of them. Absent if they were handed out before the server started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Time>,
    /// When the first of its leases ends.
    pub next_end: Time,
}
