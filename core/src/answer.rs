//! What the answers to commands say: exactly what happened, or why nothing did.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::line::{Holders, Lined};
use crate::name::Name;
use crate::settings::{QueueSettings, TopicSettings};
use crate::shard::{QueueView, TopicView, Total};
use crate::state::{Ending, Reason};
use crate::store::{Key, Position};
use crate::sweep::{Preview, SweepProgress};
use crate::task::{Form, Headers};
use crate::time::{Millis, Timestamp};

/// The answer to a command.
pub type Reply = Result<Answer, Refused>;

/// What happened, by command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To `Schedule`.
    Scheduled(Scheduled),
    /// To `Cancel`.
    Cancelled(Ruling<()>),
    /// To `Reschedule`: the new due time.
    Rescheduled(Ruling<Timestamp>),
    /// To `Reserve`; empty when the time to wait was over. To `Take`: the one that was asked for.
    Reserved(Vec<Delivery>),
    /// To `Acknowledge`.
    Acknowledged,
    /// To `Release` and `Revoke`: where the delivery stands now.
    Released(Standing),
    /// To `Reject`.
    Rejected,
    /// To `Extend`: the new end of the lease.
    Extended(Timestamp),
    /// To `Remove`: how the row ended.
    Removed(Ending),
    /// To `Hasten`: where the row stands now. A full queue may have pushed it out again.
    Hastened(Standing),
    /// To `Replay` of one task or delivery: where it stands now, likewise.
    Replayed(Standing),
    /// To `Purge` of one dead letter and `Forget` of one finished task.
    Purged,
    /// To `Sweep`.
    Swept(Swept),
    /// To `Preview`.
    Preview(Preview),
    /// To `Sweeps`, in the order of their numbers.
    Sweeps(Vec<SweepProgress>),
    /// To `PutTopic` and `PauseTopic`: the settings in force now.
    Topic(TopicSettings),
    /// To `PutQueue` and `PauseQueue`: the settings in force now.
    Queue(QueueSettings),
    /// To `DeleteTopic` and `DeleteQueue`, and to `Adopt` of a deletion to its end: how many rows went with it.
    Deleted(u64),
    /// To `Forwarded`, and to `Adopt`: it is adopted, now or before; to `BeginSweep` and `StopSweep`, likewise.
    Noted,
    /// To `Topics`.
    Topics(Vec<TopicView>),
    /// To `Queues`.
    Queues(Vec<QueueView>),
    /// To `Total`.
    Total(Total),
    /// To `Draw`.
    Drawn(Drawn),
    /// To `First`; `None` if nothing waits for a consumer there.
    First(Option<First>),
    /// To `Forecast`: how many deliveries come due in each slot, by its beginning.
    Forecast(Vec<(Timestamp, u64)>),
    /// To `Line` and `Leases`.
    Line(Lined),
    /// To `Holders`.
    Holders(Holders),
}

/// What an answer tells, for whoever knows what was asked.
pub trait Told: Sized {
    /// What it tells. An answer to another command would be a bug of the shard, and is a panic.
    fn by(answer: Answer) -> Self;
}

impl Told for Answer {
    fn by(answer: Answer) -> Answer {
        answer
    }
}

/// By what is told: which answers tell it.
macro_rules! told {
    ($($answer:pat => $told:expr, $what:ty;)*) => {$(
        impl Told for $what {
            fn by(answer: Answer) -> $what {
                match answer {
                    $answer => $told,
                    other => panic!("a shard answers a command with its own answer, not with {other:?}"),
                }
            }
        }
    )*};
}

told! {
    Answer::Scheduled(scheduled) => scheduled, Scheduled;
    Answer::Cancelled(ruling) => ruling, Ruling<()>;
    Answer::Rescheduled(ruling) => ruling, Ruling<Timestamp>;
    Answer::Reserved(deliveries) => deliveries, Vec<Delivery>;
    Answer::Acknowledged | Answer::Rejected | Answer::Purged | Answer::Noted => (), ();
    Answer::Released(standing) | Answer::Hastened(standing) | Answer::Replayed(standing) => standing, Standing;
    Answer::Extended(until) => until, Timestamp;
    Answer::Removed(ending) => ending, Ending;
    Answer::Swept(swept) => swept, Swept;
    Answer::Preview(preview) => preview, Preview;
    Answer::Sweeps(sweeps) => sweeps, Vec<SweepProgress>;
    Answer::Topic(settings) => settings, TopicSettings;
    Answer::Queue(settings) => settings, QueueSettings;
    Answer::Deleted(rows) => rows, u64;
    Answer::Topics(topics) => topics, Vec<TopicView>;
    Answer::Queues(queues) => queues, Vec<QueueView>;
    Answer::Total(total) => total, Total;
    Answer::Drawn(drawn) => drawn, Drawn;
    Answer::First(first) => first, Option<First>;
    Answer::Forecast(slots) => slots, Vec<(Timestamp, u64)>;
    Answer::Line(lined) => lined, Lined;
    Answer::Holders(holders) => holders, Holders;
}

/// What became of a task that was handed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// Its id, made up if none was given.
    pub id: Name,
    /// The number of its row: no other row of the shard ever has it. A task that takes another one's place has
    /// one of its own.
    pub number: u64,
    /// What happened.
    pub outcome: ScheduleOutcome,
}

/// What scheduling did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleOutcome {
    /// The task is new and due then.
    Created {
        /// When it is due.
        due: Timestamp,
    },
    /// It took the place of one that had not been handed out or was finished, and is due then.
    Replaced {
        /// When it is due.
        due: Timestamp,
    },
    /// There is a task of this id; nothing was changed.
    Existed(Standing),
}

/// The answer to a change that may come too late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling<T> {
    /// It is done.
    Done(T),
    /// It is too late: this is where the task stands, and nothing was changed.
    TooLate(Standing),
    /// There is no such task.
    Unknown,
}

/// Where a task or a delivery stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It waits for its time.
    Scheduled {
        /// When it comes due (again).
        at: Timestamp,
    },
    /// It waits for a consumer.
    Ready {
        /// Since when.
        since: Timestamp,
    },
    /// It is with a consumer.
    Leased {
        /// The queue it was handed out from.
        queue: Name,
        /// The consumer.
        holder: Name,
        /// The end of the lease.
        until: Timestamp,
    },
    /// It was broadcast to several queues, and some of its deliveries are open.
    Spread {
        /// The queues whose deliveries are open or dead letters.
        open: Vec<Name>,
        /// The queues whose deliveries are finished.
        finished: Vec<Name>,
    },
    /// It is finished.
    Finished {
        /// How.
        ending: Ending,
        /// When.
        at: Timestamp,
    },
    /// It is a dead letter.
    Dead {
        /// Why.
        reason: Reason,
        /// Since when.
        at: Timestamp,
    },
}

/// A task in the hands of a consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The task's topic.
    pub topic: Name,
    /// The task's id.
    pub id: Name,
    /// The queue that hands it over.
    pub queue: Name,
    /// The number of its row: the task's, or its own if the task was broadcast.
    pub number: u64,
    /// What to work on.
    pub body: Bytes,
    /// How the body was handed in.
    pub form: Form,
    /// What came along with it.
    pub headers: Headers,
    /// The task's routing key.
    pub routing_key: Option<Name>,
    /// The task's key.
    pub key: Option<Name>,
    /// The delivery's priority.
    pub priority: u32,
    /// How often it has been handed out from this queue, this time included.
    pub attempt: u32,
    /// When it was scheduled.
    pub scheduled_at: Timestamp,
    /// When it was due.
    pub due: Timestamp,
    /// When it became available, this time.
    pub fired_at: Timestamp,
    /// The right to work on it.
    pub lease: Lease,
    /// When that right ends.
    pub until: Timestamp,
    /// How long it lasts in all: what was asked for, or less if that was more than the task or its queue allow.
    pub lease_time: Millis,
}

/// What was drawn of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// So many tokens, each for one task that comes in or one delivery that goes out.
    pub tokens: u32,
    /// How long until there is another one.
    pub wait: Millis,
}

/// The delivery that a queue of one shard hands out next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct First {
    /// Its priority.
    pub priority: u32,
    /// Where its row stands among the live ones.
    pub position: Position,
}

/// The right of one consumer to work on a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The delivery's row.
    pub key: Key,
    /// Which of its leases, told apart from all others of the shard.
    pub token: u64,
}

/// What a sweep over many tasks did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swept {
    /// So many matched.
    pub matched: u64,
    /// So many were changed, or would be if it were not a dry run.
    pub changed: u64,
    /// So many came too late.
    pub too_late: u64,
    /// So many stay what they are: their queue is full.
    pub no_room: u64,
}

impl Swept {
    /// Both together, for sweeps over several shards.
    #[must_use]
    pub fn plus(self, other: Swept) -> Swept {
        Swept {
            matched: self.matched + other.matched,
            changed: self.changed + other.changed,
            too_late: self.too_late + other.too_late,
            no_room: self.no_room + other.no_room,
        }
    }
}

/// Why nothing was done, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The body is larger than allowed.
    #[error("the body has {bytes} bytes, but at most {limit} are allowed: store it elsewhere and send its address")]
    BodyTooLarge {
        /// What it has.
        bytes: usize,
        /// What is allowed.
        limit: usize,
    },
    /// There are more or longer headers than allowed.
    #[error("too many headers ({entries} with {bytes} bytes in all): at most {max_entries} of {max_bytes} bytes are allowed",
        max_entries = crate::task::Limits::HEADER_ENTRIES, max_bytes = crate::task::Limits::HEADER_BYTES)]
    HeadersTooLarge {
        /// How many there are.
        entries: usize,
        /// What they take.
        bytes: usize,
    },
    /// The topic takes no tasks for now.
    #[error("topic {0} is paused: resume it or try again later")]
    TopicPaused(Name),
    /// The topic or queue is being deleted, and can be made anew when that is over.
    #[error("{0} is being deleted: try again in a moment")]
    BeingDeleted(Name),
    /// The topic takes no more tasks for now.
    #[error("topic {topic} is over its rate limit: try again after {retry_after}")]
    RateLimited {
        /// The topic.
        topic: Name,
        /// How long to wait.
        retry_after: Millis,
    },
    /// There is no such topic, and topics are not made by using them.
    #[error("there is no topic {0}: create it first")]
    NoSuchTopic(Name),
    /// There is no such queue, and queues are not made by using them.
    #[error("there is no queue {0}: create it first")]
    NoSuchQueue(Name),
    /// The task is due at once and its queue is full.
    #[error("queue {0} is full: try again when it has room")]
    QueueFull(Name),
    /// The topic or queue holds rows.
    #[error("{name} is not empty (tasks, deliveries and dead letters: {rows}): empty it first, or force the deletion")]
    NotEmpty {
        /// The topic or queue.
        name: Name,
        /// How much it holds.
        rows: u64,
    },
    /// The lease is over, or was never granted; somebody else may hold the delivery.
    #[error("the lease is no longer valid; the delivery now: {now:?}")]
    LeaseLost {
        /// Where the delivery stands now; `None` if it is not there any more.
        now: Option<Standing>,
    },
    /// There is nothing under this name to replay, purge or forget, or nothing under this number to remove, hasten
    /// or take.
    #[error("there is no such dead letter or finished task")]
    NothingThere,
    /// Something about a request cannot be meant.
    #[error("`{field}`: {why}")]
    Invalid {
        /// Where.
        field: &'static str,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// Settings that contradict themselves.
    #[error("these settings are not valid: {0}")]
    BadSettings(String),
}

impl Refused {
    /// Whether the same request may be carried out later, once there is room, or a pause or a deletion is over.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Refused::TopicPaused(_) | Refused::BeingDeleted(_) | Refused::RateLimited { .. } | Refused::QueueFull(_)
        )
    }

    /// The word for it in metrics and on the wire. It never changes.
    pub fn code(&self) -> &'static str {
        match self {
            Refused::BodyTooLarge { .. } => "body-too-large",
            Refused::HeadersTooLarge { .. } => "headers-too-large",
            Refused::TopicPaused(_) => "topic-paused",
            Refused::BeingDeleted(_) => "being-deleted",
            Refused::RateLimited { .. } => "rate-limited",
            Refused::NoSuchTopic(_) => "no-such-topic",
            Refused::NoSuchQueue(_) => "no-such-queue",
            Refused::QueueFull(_) => "queue-full",
            Refused::NotEmpty { .. } => "not-empty",
            Refused::LeaseLost { .. } => "lease-lost",
            Refused::NothingThere => "nothing-there",
            Refused::Invalid { .. } => "invalid",
            Refused::BadSettings(_) => "bad-settings",
        }
    }
}
