//! Dead letters by what they have in common.

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Which dead letters to group, and by what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct DeadGroupsQuery {
    /// What those of a group have in common: some of `topic`, `queue`, `reason` and `note`, with commas between them. Default:
    /// `reason,queue,note`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        param(pattern = "^(topic|queue|reason|note)(,(topic|queue|reason|note))*$", example = "reason,note")
    )]
    pub by: Option<String>,
    /// Only those of this topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<crate::Name>))]
    pub topic: Option<String>,
    /// Only those of this queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<crate::Name>))]
    pub queue: Option<String>,
    /// Only those with this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Only those that died at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// Only those that died before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

/// Groups of dead letters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadGroups {
    /// The 100 largest, largest first.
    pub groups: Vec<DeadGroup>,
    /// How many dead letters are in other groups.
    pub others: u64,
    /// How many dead letters of the topics that the token covers were looked at.
    pub looked_at: u64,
    /// If there were too many to look at: those that died before this time are not all counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_since: Option<Time>,
}

/// Dead letters that have something in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadGroup {
    /// Their topic, if they are grouped by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Their queue, if they are grouped by it and have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Why they died, if they are grouped by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What their notes are like, if they are grouped by it and have one: words of more than three characters with a digit in
    /// them are `*`. The list of dead letters can be filtered by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// How many there are.
    pub count: u64,
    /// How many of them died within the last hour.
    pub last_hour: u64,
    /// How many of them died within the last 24 hours.
    pub last_day: u64,
    /// When the first of them died.
    pub first_at: Time,
    /// When the last of them died.
    pub last_at: Time,
    /// Some of them, latest first.
    pub samples: Vec<DeadSample>,
}

/// One dead letter of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadSample {
    /// Its topic.
    pub topic: String,
    /// Its id.
    pub id: String,
    /// Its queue, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Its whole note, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
