//! Who did what: the actions of people, and of whoever operates on their behalf.

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Which actions to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct ListActs {
    /// Only those by the token, or the person, of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Only this action, such as `pause-queue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// Only those on this topic and its tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<crate::Name>))]
    pub topic: Option<String>,
    /// Only those on this queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<crate::Name>))]
    pub queue: Option<String>,
    /// Only those at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// Only those before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// The maximum number of actions. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1000))]
    pub limit: Option<u32>,
}

/// The actions that fit, of all nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ActList {
    /// Latest first.
    pub acts: Vec<ActInfo>,
    /// Actions before this time may be missing: only the latest are kept.
    pub known_since: Time,
    /// Whether more fit: those before the last one listed.
    pub more: bool,
}

/// Something that somebody did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ActInfo {
    /// When.
    pub at: Time,
    /// The name of the token; `loopback` where none is needed.
    pub by: String,
    /// The person, if the request named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// What was done, such as `pause-queue`.
    pub what: String,
    /// The topic, if it was done to one or to its tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The id of the task, if it was done to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The queue, if it was done to one or to its deliveries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// What else it was done to: a key, a node, a shard, a store, or a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The reason that was given, or how many tasks were changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The node that was asked.
    pub node: String,
}
