//! The commands a shard takes. Each is answered with a [`Reply`](crate::Reply) that says exactly what happened.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::adjustment::{Adopt, Subject};
use crate::answer::{Answer, Lease};
use crate::line::{Leases, Line};
use crate::name::Name;
use crate::scope::Scope;
use crate::settings::{QueueSettings, TopicSettings};
use crate::store::Key;
use crate::sweep::{NumberedSweep, Sweep};
use crate::task::{Form, Task};
use crate::time::{Millis, Timestamp};
use crate::unit::Unit;

/// A command to one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Take a task.
    Schedule(Box<Schedule>),
    /// Take a task back, if it is not too late.
    Cancel {
        /// Its topic.
        topic: Name,
        /// Its id.
        id: Name,
    },
    /// Change a task, if it is not too late.
    Reschedule(Box<Reschedule>),
    /// The work is done.
    Acknowledge(Lease),
    /// The work is not done and somebody else may try.
    Release {
        /// The right to say so.
        lease: Lease,
        /// When.
        back: Back,
        /// From now on with this priority.
        priority: Option<u32>,
        /// What went wrong.
        note: Option<String>,
    },
    /// The work cannot be done.
    Reject {
        /// The right to say so.
        lease: Lease,
        /// Why not.
        note: Option<String>,
        /// From now on with this priority, should it be replayed.
        priority: Option<u32>,
    },
    /// The work takes longer.
    Extend {
        /// The right to say so.
        lease: Lease,
        /// So long from now; `None` means as long as the task or its queue gives. Either way not longer than these allow.
        by: Option<Millis>,
    },
    /// An operator ends a lease, whoever holds it.
    Revoke(Box<Revoke>),
    /// End one row: done if it is held under this token, cancelled if it is free, purged if it is a dead letter.
    /// Whoever else holds it keeps it.
    Remove {
        /// The row.
        row: RowId,
        /// The token of the lease under which the caller holds it, or held it.
        token: Option<u64>,
    },
    /// Make one row available now: a dead letter is replayed, what waits for its time is due.
    Hasten {
        /// The row.
        row: RowId,
    },
    /// Hand one row to a consumer, whatever it waits for, also from a queue that is paused.
    Take(Box<Take>),
    /// Hand a dead letter or a finished task out again.
    Replay(Selected),
    /// Take back the cancellation of a task: it waits for its old due time again.
    Restore {
        /// Its topic.
        topic: Name,
        /// Its id.
        id: Name,
    },
    /// Remove a dead letter.
    Purge(Selected),
    /// Remove a finished task from the history before its time is over, as when it is kept elsewhere.
    Forget {
        /// Its topic.
        topic: Name,
        /// Its id.
        id: Name,
        /// When it finished. What has been handed out again since is not meant any more.
        finished_at: Timestamp,
    },
    /// Change all tasks that match, some in each step.
    Sweep(Box<Sweep>),
    /// Count what a sweep would change, and show some of it.
    Preview(Box<Sweep>),
    /// Begin a sweep that goes on by itself, also after a crash, unless it has begun already.
    BeginSweep(Box<NumberedSweep>),
    /// End a sweep that has begun; what it has changed stays changed.
    StopSweep {
        /// Its number.
        number: u64,
    },
    /// Look at the sweeps that have begun: how far they are, and how the latest ones ended.
    Sweeps,
    /// Create a topic or change its settings.
    PutTopic {
        /// Its name.
        name: Name,
        /// What it is to do.
        settings: Box<TopicSettings>,
    },
    /// Create a queue or change its settings.
    PutQueue {
        /// Its name.
        name: Name,
        /// What it is to do.
        settings: Box<QueueSettings>,
    },
    /// Refuse tasks for a topic, or take them again.
    PauseTopic {
        /// Its name.
        name: Name,
        /// Whether tasks are refused.
        paused: bool,
    },
    /// Stop handing out from a queue, or go on.
    PauseQueue {
        /// Its name.
        name: Name,
        /// Until when; `None` means go on.
        until: Option<Timestamp>,
    },
    /// Remove a topic.
    DeleteTopic {
        /// Its name.
        name: Name,
        /// Also with all that it holds.
        force: bool,
    },
    /// Remove a queue.
    DeleteQueue {
        /// Its name.
        name: Name,
        /// Also with all that it holds.
        force: bool,
    },
    /// Make a change of settings that all shards make, unless it was made already.
    Adopt(Box<Adopt>),
    /// A dead letter that was to go on to another topic has arrived there, or was refused.
    Forwarded {
        /// The dead letter's row.
        key: Key,
        /// The number of its journey: it may have set out on another one since.
        journey: u64,
        /// Why it was refused.
        refused: Option<String>,
    },
    /// Look at topics: their settings and how much they hold.
    Topics(Chosen),
    /// Look at queues: their settings and how much they hold.
    Queues(Chosen),
    /// How much there is in all topics and queues together.
    Total,
    /// Draw tokens from the bucket of a topic or queue with a rate, of which this shard is the home.
    Draw {
        /// The topic or queue.
        from: Subject,
        /// At most so many.
        tokens: u32,
    },
    /// Which delivery a queue hands out next.
    First {
        /// Its name.
        queue: Name,
    },
    /// How much comes due when.
    Forecast {
        /// In slots of this length.
        unit: Unit,
        /// For so many slots.
        slots: usize,
    },
    /// Say what stands in a queue, in its order.
    Line(Box<Line>),
    /// Say what is with consumers, by the ends of their leases: [`Answer::Line`].
    Leases(Box<Leases>),
    /// Say who holds deliveries.
    Holders {
        /// Of this queue; else of all.
        queue: Option<Name>,
        /// Only of these.
        within: Scope,
    },
}

impl Command {
    /// The topic and the id of the task that it is about, whose shard carries it out; `None` if it is for all shards.
    pub fn task(&self) -> Option<(&str, &str)> {
        Some(match self.about()? {
            About::Task(topic, id) => (topic, id),
            About::Selected(selected) => (&selected.topic, &selected.id),
            About::Row(key) => (key.topic(), key.id()),
        })
    }

    /// The row that it is about; `None` for those that are about many or about settings.
    pub fn row(&self) -> Option<Key> {
        Some(match self.about()? {
            About::Task(topic, id) => Key::task(topic, id),
            About::Selected(selected) => selected.key(),
            About::Row(key) => key.clone(),
        })
    }

    /// Whether this is an answer to it, and not to another one.
    pub fn is_answered_by(&self, answer: &Answer) -> bool {
        match self {
            Command::Schedule(_) => matches!(answer, Answer::Scheduled(_)),
            Command::Cancel { .. } => matches!(answer, Answer::Cancelled(_)),
            Command::Reschedule(_) => matches!(answer, Answer::Rescheduled(_)),
            Command::Acknowledge(_) => matches!(answer, Answer::Acknowledged),
            Command::Release { .. } | Command::Revoke(_) => matches!(answer, Answer::Released(_)),
            Command::Reject { .. } => matches!(answer, Answer::Rejected),
            Command::Extend { .. } => matches!(answer, Answer::Extended(_)),
            Command::Remove { .. } => matches!(answer, Answer::Removed(_)),
            Command::Hasten { .. } => matches!(answer, Answer::Hastened(_)),
            Command::Take(_) => matches!(answer, Answer::Reserved(_)),
            Command::Replay(_) | Command::Restore { .. } => matches!(answer, Answer::Replayed(_)),
            Command::Purge(_) | Command::Forget { .. } => matches!(answer, Answer::Purged),
            Command::Sweep(_) => matches!(answer, Answer::Swept(_)),
            Command::Preview(_) => matches!(answer, Answer::Preview(_)),
            Command::BeginSweep(_) | Command::StopSweep { .. } => matches!(answer, Answer::Noted),
            Command::Sweeps => matches!(answer, Answer::Sweeps(_)),
            Command::PutTopic { .. } | Command::PauseTopic { .. } => matches!(answer, Answer::Topic(_)),
            Command::PutQueue { .. } | Command::PauseQueue { .. } => matches!(answer, Answer::Queue(_)),
            Command::DeleteTopic { .. } | Command::DeleteQueue { .. } => matches!(answer, Answer::Deleted(_)),
            Command::Adopt(_) => matches!(answer, Answer::Noted | Answer::Deleted(_)),
            Command::Forwarded { .. } => matches!(answer, Answer::Noted),
            Command::Topics(_) => matches!(answer, Answer::Topics(_)),
            Command::Queues(_) => matches!(answer, Answer::Queues(_)),
            Command::Total => matches!(answer, Answer::Total(_)),
            Command::Draw { .. } => matches!(answer, Answer::Drawn(_)),
            Command::First { .. } => matches!(answer, Answer::First(_)),
            Command::Forecast { .. } => matches!(answer, Answer::Forecast(_)),
            Command::Line(_) | Command::Leases(_) => matches!(answer, Answer::Line(_)),
            Command::Holders { .. } => matches!(answer, Answer::Holders(_)),
        }
    }

    /// How many bytes it brings for the store to keep, more or less.
    pub fn bytes(&self) -> usize {
        match self {
            Command::Schedule(schedule) => {
                let headers = schedule.task.headers.iter().map(|(name, value)| name.len() + value.len());
                schedule.task.body.len() + headers.sum::<usize>()
            }
            Command::Reschedule(change) => change.body.as_ref().map_or(0, |(_, body)| body.len()),
            _ => 0,
        }
    }

    fn about(&self) -> Option<About<'_>> {
        Some(match self {
            Command::Schedule(schedule) => About::Task(&schedule.task.topic, &schedule.id),
            Command::Reschedule(change) => About::Task(&change.topic, &change.id),
            Command::Cancel { topic, id } | Command::Restore { topic, id } | Command::Forget { topic, id, .. } => {
                About::Task(topic, id)
            }
            Command::Revoke(revoke) => About::Selected(&revoke.selected),
            Command::Replay(selected) | Command::Purge(selected) => About::Selected(selected),
            Command::Acknowledge(lease)
            | Command::Release { lease, .. }
            | Command::Reject { lease, .. }
            | Command::Extend { lease, .. } => About::Row(&lease.key),
            Command::Remove { row, .. } | Command::Hasten { row } => About::Row(&row.key),
            Command::Take(take) => About::Row(&take.row.key),
            Command::Forwarded { key, .. } => About::Row(key),
            Command::Sweep(_)
            | Command::Preview(_)
            | Command::BeginSweep(_)
            | Command::StopSweep { .. }
            | Command::Sweeps
            | Command::PutTopic { .. }
            | Command::PutQueue { .. }
            | Command::PauseTopic { .. }
            | Command::PauseQueue { .. }
            | Command::DeleteTopic { .. }
            | Command::DeleteQueue { .. }
            | Command::Adopt(_)
            | Command::Topics(_)
            | Command::Queues(_)
            | Command::Total
            | Command::Draw { .. }
            | Command::First { .. }
            | Command::Forecast { .. }
            | Command::Line(_)
            | Command::Leases(_)
            | Command::Holders { .. } => return None,
        })
    }
}

/// How a command says which task or row it is about.
enum About<'a> {
    Task(&'a Name, &'a Name),
    Selected(&'a Selected),
    Row(&'a Key),
}

/// Which topics or queues are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// Those of these names, in their order; others are passed over.
    Named(Vec<Name>),
    /// Those whose names come after this one, in the order of their names, so many at most.
    After {
        /// Without, from the first one on.
        name: Option<Name>,
        /// How many.
        limit: usize,
    },
}

/// A task and the id it goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The task.
    pub task: Task,
    /// Its id, the given or the made-up one.
    pub id: Name,
    /// The id was just made up and cannot exist: there is no need to look for it.
    pub id_is_new: bool,
}

/// What to change about a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reschedule {
    /// Its topic.
    pub topic: Name,
    /// Its id.
    pub id: Name,
    /// Its due time.
    pub shift: Option<Shift>,
    /// Its priority.
    pub priority: Option<u32>,
    /// Its body, and how that was handed in.
    pub body: Option<(Form, Bytes)>,
}

/// How a due time moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shift {
    /// To an instant.
    To(Timestamp),
    /// To so long from now.
    In(Millis),
    /// By so many milliseconds, in either direction.
    By(i64),
}

impl Shift {
    /// The new due time, asked for at `from`; what would lie in the past is due now.
    pub fn apply(self, due: Timestamp, now: Timestamp, from: Timestamp) -> Timestamp {
        let moved = match self {
            Shift::To(at) => at.min(Timestamp::LAST),
            Shift::In(Millis::ZERO) => now,
            Shift::In(delay) => from.plus(delay),
            Shift::By(millis) => due.shifted(millis),
        };
        moved.max(now)
    }
}

/// When a released delivery is available again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Back {
    /// The attempt failed: the retry policy says when, and whether at all.
    Retry,
    /// After this time; the attempt does not count as a failure.
    After(Millis),
    /// At once, to where it stood: its consumer is gone and has said nothing about it. It counts neither as
    /// a failure nor as given back.
    Abandoned,
}

/// One row, told from all others that have, had or will have its key: a task, or one of several deliveries of
/// one that was broadcast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowId {
    /// Its key.
    pub key: Key,
    /// Its number.
    pub number: u64,
}

/// Who wants which row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    /// The row.
    pub row: RowId,
    /// Under this name.
    pub consumer: Name,
    /// To work on it for so long; `None` means as long as the task or its queue gives.
    pub lease: Option<Millis>,
}

/// Whose lease an operator ends, and what becomes of the delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoke {
    /// The delivery.
    pub selected: Selected,
    /// Only if it is with this consumer: whoever asks twice might else meet the next one.
    pub holder: Option<Name>,
    /// When it is available again.
    pub back: Back,
    /// Why.
    pub note: Option<String>,
}

/// One task, or its delivery in one of several queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// Its topic.
    pub topic: Name,
    /// Its id.
    pub id: Name,
    /// The queue, for one delivery of a task that was broadcast.
    pub queue: Option<Name>,
}

impl Selected {
    /// The row that is meant.
    pub fn key(&self) -> Key {
        Key::new(&self.topic, &self.id, self.queue.as_deref().unwrap_or(""))
    }
}
