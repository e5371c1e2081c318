//! Where tasks and deliveries stand.

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Where a task or a delivery stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Standing {
    /// It is waiting for its time.
    Scheduled {
        /// When it comes due (again).
        at: Time,
    },
    /// It is waiting for a consumer.
    Ready {
        /// Since when.
        since: Time,
    },
    /// It is with a consumer.
    Leased {
        /// The queue it was handed out from.
        queue: String,
        /// The consumer.
        holder: String,
        /// The end of the lease.
        until: Time,
    },
    /// It was broadcast to several queues, and some of its deliveries are open.
    Spread {
        /// The queues whose deliveries are open or dead letters.
        open: Vec<String>,
        /// The queues whose deliveries are finished.
        finished: Vec<String>,
    },
    /// It is finished.
    Finished {
        /// How.
        ending: Ending,
        /// When.
        at: Time,
    },
    /// It is a dead letter.
    Dead {
        /// Why: `rejected`, `out-of-attempts`, `expired`, `pushed-out`, `unrouted` or `lost`.
        reason: String,
        /// Since when.
        at: Time,
        /// The consumer's note, or the topic it should have been forwarded to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
}

/// How a task finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// A consumer acknowledged it.
    Done,
    /// It was cancelled.
    Cancelled,
    /// It was forwarded to another topic as a dead letter.
    Forwarded,
    /// It was removed as a dead letter.
    Purged,
}
