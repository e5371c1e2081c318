//! The course of a task: what has happened to it, what is to come, and why it is still where it is.

use serde::{Deserialize, Serialize};

use crate::standing::Ending;
use crate::time::{Span, Time};

/// What has happened to a task, what is to come, and why it is still where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Timeline {
    /// Its topic.
    pub topic: String,
    /// Its id.
    pub id: String,
    /// As of when.
    pub now: Time,
    /// Since when the actions of people are known. What the task itself remembers goes back to when it was scheduled.
    pub known_since: Time,
    /// How many attempts were counted of which nothing is remembered: only the first and the last unsuccessful ones are.
    pub untold_attempts: u32,
    /// How many times it was replayed or made due early.
    pub replays: u32,
    /// What has happened, earliest first.
    pub entries: Vec<TimelineEntry>,
    /// What is to come if nobody interferes: first what has a time, earliest first.
    pub to_come: Vec<ToCome>,
    /// Why it is still where it is, the main cause first. Several may hold at once.
    pub why: Vec<Why>,
}

/// Something that happened to a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TimelineEntry {
    /// When; not before this, if it is not exact.
    pub at: Time,
    /// Whether it happened exactly then.
    pub exact: bool,
    /// What happened.
    pub what: Passed,
    /// For an action of a person: which one, as `/v1/audit` names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<String>,
    /// The consumer, or the name of the token of whoever acted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// The queue, if it was in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Which attempt it was; counting restarts at one after a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The end of the lease; when it was scheduled, the time it is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// Why it became a dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What was said about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What happened to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Passed {
    /// It was scheduled.
    Scheduled,
    /// It came due.
    Due,
    /// It began to wait for a consumer again.
    Ready,
    /// It was handed to the consumer that has it.
    Leased,
    /// Its consumer gave it back to be retried.
    Failed,
    /// Its lease ended without an answer.
    Lapsed,
    /// Its consumer gave it back for a time of its choice.
    Released,
    /// Its consumer said that the work cannot be done.
    Rejected,
    /// An operator ended its lease.
    Revoked,
    /// Its consumer's connection was lost.
    Abandoned,
    /// A consumer acknowledged it.
    Done,
    /// It was cancelled.
    Cancelled,
    /// It was forwarded to another topic as a dead letter.
    Forwarded,
    /// It was removed as a dead letter.
    Purged,
    /// It became a dead letter.
    Dead,
    /// Somebody acted on it.
    Act,
}

impl Passed {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Passed::Scheduled => "scheduled",
            Passed::Due => "due",
            Passed::Ready => "ready",
            Passed::Leased => "leased",
            Passed::Failed => "failed",
            Passed::Lapsed => "lapsed",
            Passed::Released => "released",
            Passed::Rejected => "rejected",
            Passed::Revoked => "revoked",
            Passed::Abandoned => "abandoned",
            Passed::Done => "done",
            Passed::Cancelled => "cancelled",
            Passed::Forwarded => "forwarded",
            Passed::Purged => "purged",
            Passed::Dead => "dead",
            Passed::Act => "act",
        }
    }
}

/// Something that is to come for a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ToCome {
    /// What.
    pub what: Prospect,
    /// When, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// The queue, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Which attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// How long it waits at least before its next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Span>,
}

/// What is to come for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Prospect {
    /// It comes due.
    Due,
    /// It is available for its next attempt.
    Retry,
    /// The lease ends, unless its consumer is done or extends it.
    LeaseEnds,
    /// Its time to live ends.
    Expires,
    /// It is not kept any longer.
    Removed,
    /// It is retried, if the attempt before `attempt` fails.
    RetryIfFailed,
    /// It becomes a dead letter, if `attempt` and all before it fail.
    DeadIfFailed,
}

/// Why a task or a delivery is still where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Why {
    /// Its time has not come.
    NotDue {
        /// When it comes due.
        at: Time,
    },
    /// It is waiting for its next attempt.
    Retry {
        /// When that is.
        at: Time,
        /// Which attempt.
        attempt: u32,
    },
    /// A consumer has it.
    Held {
        /// The queue it was handed out from.
        queue: String,
        /// The consumer.
        holder: String,
        /// The end of the lease.
        until: Time,
        /// Which attempt.
        attempt: u32,
    },
    /// Its queue is paused.
    Paused {
        /// The queue.
        queue: String,
        /// Who paused it, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// Since when.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Time>,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Until when; absent: until it is resumed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Time>,
    },
    /// No consumer is waiting for its queue.
    NobodyWaits {
        /// The queue.
        queue: String,
    },
    /// Others come before it.
    Behind {
        /// The queue.
        queue: String,
        /// How many.
        ahead: u64,
        /// Whether there may be more: only some thousand rows are looked at.
        more: bool,
    },
    /// Its queue has a rate limit.
    Rate {
        /// The queue.
        queue: String,
        /// How many deliveries a second it hands out.
        per_second: u32,
    },
    /// Nothing is in its way: it is about to be handed out.
    Next {
        /// The queue.
        queue: String,
    },
    /// It was broadcast; what its deliveries wait for follows, with their queues.
    Spread {
        /// The queues whose deliveries are open or dead letters.
        open: Vec<String>,
    },
    /// No queue takes it.
    Unrouted,
    /// It is a dead letter.
    Dead {
        /// Why.
        reason: String,
        /// Since when.
        at: Time,
    },
    /// It is finished.
    Finished {
        /// How.
        ending: Ending,
        /// When.
        at: Time,
    },
}
