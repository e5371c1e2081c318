//! The commands a shard takes. Each is answered with a [`Reply`](crate::Reply) that says exactly what happened.

use bytes::Bytes;

use crate::answer::Lease;
use crate::name::Name;
use crate::scope::Scope;
use crate::settings::{QueueSettings, TopicSettings};
use crate::shard::Unit;
use crate::state::Ending;
use crate::store::Key;
use crate::task::{Form, Task};
use crate::time::{Millis, Timestamp};

/// A command to one shard.
#[derive(Clone, Debug)]
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
            Command::Cancel { topic, id } | Command::Forget { topic, id, .. } => About::Task(topic, id),
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
            | Command::PutTopic { .. }
            | Command::PutQueue { .. }
            | Command::PauseTopic { .. }
            | Command::PauseQueue { .. }
            | Command::DeleteTopic { .. }
            | Command::DeleteQueue { .. }
            | Command::Topics(_)
            | Command::Queues(_)
            | Command::Total
            | Command::First { .. }
            | Command::Forecast { .. } => return None,
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
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The task.
    pub task: Task,
    /// Its id, the given or the made-up one.
    pub id: Name,
    /// The id was just made up and cannot exist: there is no need to look for it.
    pub id_is_new: bool,
}

/// What to change about a task.
#[derive(Clone, Debug)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug)]
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

/// A change to all that match.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// What matches.
    pub matching: Matching,
    /// Only of these topics.
    pub within: Scope,
    /// What happens to it.
    pub action: SweepAction,
    /// Only count.
    pub dry_run: bool,
}

/// What a sweep goes over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matching {
    /// The tasks with this key that are not finished, maybe of one topic only.
    Key {
        /// The key.
        key: Name,
        /// Only of this topic.
        topic: Option<Name>,
    },
    /// Dead letters.
    Dead {
        /// Only of this topic.
        topic: Option<Name>,
        /// Only of this queue.
        queue: Option<Name>,
        /// That died in this time.
        died: TimeRange,
    },
    /// Finished tasks.
    History {
        /// Of this topic.
        topic: Name,
        /// That finished in this time.
        finished: TimeRange,
        /// Only those that finished so; `None` means however they did.
        ending: Option<Ending>,
    },
}

/// From one instant to before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// The first instant.
    pub from: Timestamp,
    /// The instant to stop before.
    pub until: Timestamp,
}

impl TimeRange {
    /// All of time.
    pub const ALL: TimeRange = TimeRange { from: Timestamp::ZERO, until: Timestamp::NEVER };
}

/// What happens to all that a sweep goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepAction {
    /// Tasks of a key are cancelled.
    Cancel,
    /// The due times of tasks of a key move.
    Shift(Shift),
    /// Dead letters or finished tasks are handed out again.
    Replay,
    /// Dead letters are removed.
    Purge,
}
