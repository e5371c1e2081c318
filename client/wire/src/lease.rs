//! Taking deliveries, and saying what became of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::bytes::Base64;
use crate::given::given;
use crate::object::objects;
use crate::problem::Answer;
use crate::standing::Standing;
use crate::time::{Span, Time};

/// A consumer's request for deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Reserve {
    /// From any of these queues.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 64))]
    pub queues: Vec<String>,
    /// The maximum number of deliveries. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 10000))]
    pub max: Option<u32>,
    /// How long to lease each delivery. Default: as long as its task or its queue says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Span>,
    /// How long to wait for the first delivery. Default: not at all. The server limits the wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Span>,
    /// The consumer's name. Default: `anonymous`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::Name>))]
    pub consumer: Option<String>,
}

/// What a consumer receives; empty if the wait was over.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Deliveries {
    /// The deliveries, most urgent first.
    pub deliveries: Vec<Delivery>,
}

/// A task that is handed to a consumer. It has one of `body`, `text`, and `base64`, depending on how it was sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Delivery {
    /// The task's topic.
    pub topic: String,
    /// The task's id.
    pub id: String,
    /// The queue that hands it over.
    pub queue: String,
    /// The body, if it was sent as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub body: Option<Box<RawValue>>,
    /// The body, if it was sent as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The body, if it was sent as bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<Base64>,
    /// Its headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The task's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The task's routing key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing_key: Option<String>,
    /// The delivery's priority; lower is more urgent.
    #[cfg_attr(feature = "openapi", schema(value_type = u64, maximum = 4294967295_i64))]
    pub priority: u32,
    /// How many times it has been handed out from this queue, including this time.
    pub attempt: u32,
    /// When it was scheduled.
    pub scheduled_at: Time,
    /// When it was due.
    pub due: Time,
    /// When it became available, this time.
    pub fired_at: Time,
    /// The lease: pass it back unchanged.
    pub lease: String,
    /// When the lease ends.
    pub until: Time,
    /// How long the lease lasts in total, for clients whose clock differs from the server's: as long as requested, or less
    /// if the task or its queue does not allow that much.
    #[serde(default)]
    pub lease_time: Span,
}

/// What a consumer says about deliveries it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Actions {
    /// One action for each delivery.
    #[cfg_attr(feature = "openapi", schema(max_items = 10000))]
    pub actions: Vec<Action>,
}

/// What a consumer says about one delivery it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Action {
    /// What to do with it.
    #[serde(rename = "do")]
    pub what: Do,
    /// The lease that came with the delivery.
    pub lease: String,
    /// `release`: make it available again after this time, without counting the attempt as a failure; if omitted,
    /// the attempt has failed and the retry policy decides when. `extend`: the new length of the lease from now; if
    /// omitted, as long as the task or its queue says. Limited to what these allow.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub after: Option<Span>,
    /// `release`: the new priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>, maximum = 4294967295_i64))]
    pub priority: Option<u32>,
    /// `release`: what went wrong. `reject`: why it cannot be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 1024))]
    pub note: Option<String>,
}

impl Action {
    /// This, about the delivery under this lease.
    pub fn new(what: Do, lease: impl Into<String>) -> Action {
        Action { what, lease: lease.into(), after: None, priority: None, note: None }
    }
}

/// What to do with a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Do {
    /// The work is done.
    Acknowledge,
    /// The work is not done, and another consumer may try.
    Release,
    /// The work cannot be done: the delivery becomes a dead letter.
    Reject,
    /// The work takes longer.
    Extend,
}

/// The results of the [`Actions`], in the same order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Settlements {
    /// One result for each action.
    pub results: Vec<Answer<Settled>>,
}

/// The result of an [`Action`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Settled {
    /// What happened.
    pub outcome: SettledOutcome,
    /// Where a released delivery stands now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// The new end of an extended lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

/// What happened to a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SettledOutcome {
    /// It is finished here.
    Acknowledged,
    /// It is available again, now or later, or given up after too many failures.
    Released,
    /// It is a dead letter.
    Rejected,
    /// Its lease was extended.
    Extended,
}

/// An operator's request to end a lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Revoke {
    /// Only if this consumer holds it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::Name>))]
    pub holder: Option<String>,
    /// Make it available again after this time, without counting the attempt as a failure; if omitted, it has failed and the retry
    /// policy says when, as if the lease had ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub after: Option<Span>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 1024))]
    pub note: Option<String>,
}

/// A lease that was ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Revoked {
    /// The task's topic.
    pub topic: String,
    /// The task's id.
    pub id: String,
    /// Where the delivery stands now.
    pub standing: Standing,
}

objects!(Revoke, Reserve, Actions, Action);
