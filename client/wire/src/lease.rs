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
    /// At most so many at once; without, one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 10000))]
    pub max: Option<u32>,
    /// To work on each for so long; without, as long as its task or its queue gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Span>,
    /// Waiting so long for the first one; without, not at all. The server has a longest wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Span>,
    /// Under this name; without, `anonymous`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        schema(
            min_length = 1,
            max_length = 255,
            pattern = "^(\\.{0,2}[^\\u0000-\\u0020.\\u007f-\\u00a0]|\\.{3})[^\\u0000-\\u0020\\u007f-\\u00a0]*$"
        )
    )]
    pub consumer: Option<String>,
}

/// What a consumer gets: nothing if the time to wait was over.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Deliveries {
    /// The deliveries, most urgent first.
    pub deliveries: Vec<Delivery>,
}

/// A task in the hands of a consumer. One of `body`, `text` and `base64` is there, as it was handed in.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Delivery {
    /// The task's topic.
    pub topic: String,
    /// The task's id.
    pub id: String,
    /// The queue that hands it over.
    pub queue: String,
    /// What to work on, if it was handed in as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub body: Option<Box<RawValue>>,
    /// What to work on, if it was handed in as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What to work on, if it was handed in as bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<Base64>,
    /// What came along with it.
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
    /// How often it has been handed out from this queue, this time included.
    pub attempt: u32,
    /// When it was scheduled.
    pub scheduled_at: Time,
    /// When it was due.
    pub due: Time,
    /// When it became available, this time.
    pub fired_at: Time,
    /// The right to work on it: pass it back as it is.
    pub lease: String,
    /// When that right ends.
    pub until: Time,
    /// How long it lasts in all, for clients whose clock differs from the server's: as long as was asked for, or less
    /// if the task or its queue allow no more.
    #[serde(default)]
    pub lease_time: Span,
}

/// What a consumer says about deliveries it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Actions {
    /// One for each delivery.
    #[cfg_attr(feature = "openapi", schema(max_items = 10000))]
    pub actions: Vec<Action>,
}

/// What a consumer says about one delivery it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Action {
    /// What.
    #[serde(rename = "do")]
    pub what: Do,
    /// The right to say so, as it came with the delivery.
    pub lease: String,
    /// `release`: available again after so long, and the attempt does not count as a failure;
    /// without, it failed and the retry policy says when. `extend`: so long from now; without, as
    /// long as the task or its queue gives, and no longer than these allow.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub after: Option<Span>,
    /// `release`: from now on with this priority.
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

/// What becomes of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Do {
    /// The work is done.
    Acknowledge,
    /// The work is not done and somebody else may try.
    Release,
    /// The work cannot be done: it is a dead letter.
    Reject,
    /// The work takes longer.
    Extend,
}

/// What became of the [`Actions`], in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Settlements {
    /// One for each action.
    pub results: Vec<Answer<Settled>>,
}

/// What became of an [`Action`].
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
    /// Its lease ends later.
    Extended,
}

/// An operator's word that ends a lease, whoever holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Revoke {
    /// Only if it is with this consumer.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 255, pattern = "^[^\\u0000-\\u0020\\u007f-\\u00a0]+$")
    )]
    pub holder: Option<String>,
    /// Available again after so long, and the attempt does not count as a failure; without, it failed and the retry
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
