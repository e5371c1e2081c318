//! What happens, as it happens.

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Something that happened to a task or delivery: the data of a server-sent event whose name is `what`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Event {
    /// When.
    pub at: Time,
    /// What: `scheduled`, `replaced`, `rescheduled`, `fired`, `leased`, `extended`, `released`, `failed`, `done`,
    /// `cancelled`, `died`, `forwarded`, `replayed` or `purged`.
    pub what: String,
    /// The task's topic.
    pub topic: String,
    /// The task's id.
    pub id: String,
    /// Its number: the task's, or that of one delivery of a task that was broadcast. Absent if a node of an earlier version tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The queue, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The task's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Who asked for it: the name of a token, or `loopback` if the server has none. Absent if nobody did, because its time had come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// `leased`: the consumer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// `leased`: how many times it has been handed out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// `scheduled`, `replaced`, `rescheduled`: when it is due. `released`, `failed`: when it is available
    /// again. `leased`, `extended`: the end of the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// `died`: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
