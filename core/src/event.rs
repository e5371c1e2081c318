//! Events: what happened to tasks and deliveries, for those who watch.
//!
//! Events are told in the order in which things happened, and none is stored: who was not watching looks
//! at the tasks instead. Once a task has fired into several queues, each of its deliveries tells what
//! happens to it; that the last of them is finished is the end of the task.

use crate::name::Name;
use crate::state::Reason;
use crate::store::Key;
use crate::time::Timestamp;

/// Something that happened to a task or delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it happened.
    pub at: Timestamp,
    /// The row it happened to: a task, or one of several deliveries of a task that was broadcast.
    pub task: Key,
    /// Its number.
    pub number: u64,
    /// The queue it happened in, if it was in one.
    pub queue: Option<Name>,
    /// The task's key.
    pub key: Option<Name>,
    /// Under which name somebody asked for it; nobody is named if it happened because its time had come.
    pub by: Option<Name>,
    /// What happened.
    pub what: What,
}

/// What can happen to a task or delivery. What is removed because its time is over, or together with its
/// topic, goes without an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It was taken in.
    Scheduled {
        /// When it is due.
        due: Timestamp,
    },
    /// It was taken in, in the place of one of the same id that had not been handed out or was finished.
    Replaced {
        /// When it is due.
        due: Timestamp,
    },
    /// Its due time, priority or body was changed.
    Rescheduled {
        /// When it is due now.
        due: Timestamp,
    },
    /// It became available to consumers, for the first time or again. This is not stored: what was
    /// available when its shard was lost fires again when the shard is opened.
    Fired,
    /// It was handed out.
    Leased {
        /// The consumer.
        holder: Name,
        /// How often it has been handed out from this queue, this time included.
        attempt: u32,
        /// The end of the lease.
        until: Timestamp,
    },
    /// Its lease was extended.
    Extended {
        /// The new end of the lease.
        until: Timestamp,
    },
    /// Its consumer gave it back, and that was no failure.
    Released {
        /// When it is available again.
        at: Timestamp,
    },
    /// An attempt failed: its lease was over, or its consumer gave it back to be retried. Another one comes.
    Failed {
        /// When it is available again.
        again: Timestamp,
    },
    /// A consumer acknowledged it.
    Done,
    /// It was cancelled, or its queue was deleted.
    Cancelled,
    /// It was given up: it is a dead letter, or on its way to the topic that takes those.
    Died(Reason),
    /// As a dead letter it arrived in another topic.
    Forwarded,
    /// It was a dead letter or finished, and is to be handed out again.
    Replayed,
    /// As a dead letter it was removed.
    Purged,
}

impl What {
    /// The words for all that can happen.
    pub const WORDS: [&str; 14] = [
        "scheduled",
        "replaced",
        "rescheduled",
        "fired",
        "leased",
        "extended",
        "released",
        "failed",
        "done",
        "cancelled",
        "died",
        "forwarded",
        "replayed",
        "purged",
    ];

    /// The word for it in metrics and messages.
    pub fn as_str(&self) -> &'static str {
        match self {
            What::Scheduled { .. } => "scheduled",
            What::Replaced { .. } => "replaced",
            What::Rescheduled { .. } => "rescheduled",
            What::Fired => "fired",
            What::Leased { .. } => "leased",
            What::Extended { .. } => "extended",
            What::Released { .. } => "released",
            What::Failed { .. } => "failed",
            What::Done => "done",
            What::Cancelled => "cancelled",
            What::Died(_) => "died",
            What::Forwarded => "forwarded",
            What::Replayed => "replayed",
            What::Purged => "purged",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_one_of_all_words() {
        let at = Timestamp::ZERO;
        let holder = Name::new("c").unwrap();
        let all = [
            What::Scheduled { due: at },
            What::Replaced { due: at },
            What::Rescheduled { due: at },
            What::Fired,
            What::Leased { holder, attempt: 1, until: at },
            What::Extended { until: at },
            What::Released { at },
            What::Failed { again: at },
            What::Done,
            What::Cancelled,
            What::Died(Reason::Expired),
            What::Forwarded,
            What::Replayed,
            What::Purged,
        ];
        assert_eq!(all.map(|what| what.as_str()), What::WORDS);
    }
}
