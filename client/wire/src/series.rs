//! What happened when: counts and gauges in slots of time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Which series.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct SeriesQuery {
    /// Of this topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<crate::Name>))]
    pub topic: Option<String>,
    /// Of this queue. With neither, of all together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<crate::Name>))]
    pub queue: Option<String>,
    /// Some of the metrics, with commas between them; without, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(example = "scheduled,done,lateness_p99"))]
    pub metric: Option<String>,
    /// The length of a slot; without, a minute.
    #[serde(default)]
    pub step: SeriesStep,
    /// From the slot of this time on; without, the last hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// Up to this time; without, until now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

/// The length of a slot of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum SeriesStep {
    /// 10 seconds; kept for an hour.
    #[serde(rename = "10s")]
    TenSeconds,
    /// A minute; kept for 48 hours.
    #[default]
    #[serde(rename = "1m")]
    Minute,
    /// 10 minutes; kept for 48 hours.
    #[serde(rename = "10m")]
    TenMinutes,
}

/// What can be told of each slot. Lateness is in microseconds and rounded up to a coarse bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Tasks were scheduled.
    Scheduled,
    /// Deliveries became available.
    Fired,
    /// Deliveries were acknowledged.
    Done,
    /// Attempts failed, with another to follow.
    Failed,
    /// Deliveries became dead letters.
    Dead,
    /// Tasks were cancelled.
    Cancelled,
    /// Half of the deliveries were handed over at most so late.
    LatenessP50,
    /// 99 percent of the deliveries were handed over at most so late.
    LatenessP99,
    /// How many were waiting for their time or for a consumer at the end of the slot. Not of queues.
    Waiting,
    /// How many were waiting for a consumer. Not of topics.
    Ready,
    /// How many were with a consumer.
    Leased,
    /// How many dead letters there were.
    DeadLetters,
}

impl Metric {
    /// How it is called.
    pub fn as_str(self) -> &'static str {
        Metric::ALL.iter().find(|(_, metric)| *metric == self).map_or("", |(word, _)| word)
    }

    /// All of them, and how they are called.
    pub const ALL: [(&str, Metric); 12] = [
        ("scheduled", Metric::Scheduled),
        ("fired", Metric::Fired),
        ("done", Metric::Done),
        ("failed", Metric::Failed),
        ("dead", Metric::Dead),
        ("cancelled", Metric::Cancelled),
        ("lateness_p50", Metric::LatenessP50),
        ("lateness_p99", Metric::LatenessP99),
        ("waiting", Metric::Waiting),
        ("ready", Metric::Ready),
        ("leased", Metric::Leased),
        ("dead_letters", Metric::DeadLetters),
    ];
}

/// Series of one topic or queue, or of all together. They are kept in memory by each node, and lost when it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Series {
    /// The length of a slot.
    pub step: SeriesStep,
    /// When the first slot begins.
    pub from: Time,
    /// How many slots there are. The last one may still be running.
    pub slots: u64,
    /// Since when the first of the nodes has counted. Absent if nothing is known: nothing has happened to it since the server
    /// started, or too many others have series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_since: Option<Time>,
    /// By metric: the value of each slot, or `null` if there is none.
    pub series: BTreeMap<String, Vec<Option<u64>>>,
    /// Nodes that are there and said nothing within a second: what they have counted is missing here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_called_the_same_everywhere() {
        for (word, metric) in Metric::ALL {
            assert_eq!(serde_json::to_value(metric).unwrap(), word);
        }
    }
}
