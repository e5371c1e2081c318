//! Sweeps: changes to many tasks at once, that go on by themselves.

use serde::{Deserialize, Serialize};

use crate::given::given;
use crate::list::TaskInfo;
use crate::object::objects;
use crate::standing::Ending;
use crate::time::{Shift, Span, Time};

/// What to do to which tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct NewSweep {
    /// Which tasks.
    pub select: SweepSelect,
    /// What to do to them.
    #[serde(rename = "do")]
    pub act: SweepAct,
    /// `move`: the new due time. Exactly one of `at`, `delay`, and `by`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub at: Option<Time>,
    /// `move`: the new due time, from now.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub delay: Option<Span>,
    /// `move`: move the due time by this much, in either direction.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub by: Option<Shift>,
    /// `spread`: the first new due time. Default: now.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub start: Option<Time>,
    /// `spread`: the length of time over which the new due times lie evenly.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub over: Option<Span>,
    /// Only count, without changing anything.
    #[serde(default)]
    pub dry_run: bool,
}

impl NewSweep {
    /// One that does this to these tasks; `move` and `spread` need to be told where to.
    pub fn new(act: SweepAct, select: SweepSelect) -> NewSweep {
        NewSweep { select, act, at: None, delay: None, by: None, start: None, over: None, dry_run: false }
    }
}

/// Which tasks a sweep goes over: those that fit every filter. There must be one, or `all`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct SweepSelect {
    /// Their topic.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::Name>))]
    pub topic: Option<String>,
    /// The queue in which they are ready, or died. A task that was broadcast is in none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::Name>))]
    pub queue: Option<String>,
    /// Their key.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::Name>))]
    pub key: Option<String>,
    /// Their state. Default: `live` to cancel, move or spread, `scheduled` to hasten, `dead` to replay or purge.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub state: Option<SelectState>,
    /// Only those that come due (again), died, or finished at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub from: Option<Time>,
    /// Only those before this time.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub until: Option<Time>,
    /// Dead letters: only those with this reason: `rejected`, `out-of-attempts`, `expired`, `pushed-out`, `unrouted` or `lost`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub reason: Option<String>,
    /// Dead letters: only those whose notes are like this, as their group says; empty: only those without a note.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub note: Option<String>,
    /// Dead letters: only those whose notes begin with this.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub note_prefix: Option<String>,
    /// Finished tasks: only those with this ending.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub ending: Option<Ending>,
    /// Only those with these ids. Needs a topic.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<crate::Name>>, max_items = 10000))]
    pub ids: Option<Vec<String>>,
    /// All of them. Required if there is no filter but the state.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// A state by which a sweep selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SelectState {
    /// Not finished; for those with a consumer it is too late.
    Live,
    /// Waiting for their time.
    Scheduled,
    /// Waiting for a consumer.
    Ready,
    /// Dead letters.
    Dead,
    /// Finished.
    Finished,
}

/// What a sweep does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SweepAct {
    /// Cancel tasks.
    Cancel,
    /// Move their due times.
    Move,
    /// Move their due times to lie evenly over a length of time.
    Spread,
    /// Hand out dead letters or finished tasks again.
    Replay,
    /// Remove dead letters.
    Purge,
    /// Make tasks that wait for their time due now.
    Hasten,
}

/// What a sweep would do.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SweepPreview {
    /// How many match.
    pub matched: u64,
    /// How many would be changed.
    pub changed: u64,
    /// For how many it would be too late.
    pub too_late: u64,
    /// How many would be left as they are because their queue is full.
    pub no_room: u64,
    /// There are more: a shard stopped counting at a million.
    #[serde(default)]
    pub more: bool,
    /// Some of those that would be changed, without bodies.
    pub samples: Vec<TaskInfo>,
    /// Whether it could be undone.
    pub undo: SweepUndo,
}

/// Whether a sweep can be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SweepUndo {
    /// Whether it can. What somebody has changed since, or a consumer got, is left alone.
    pub possible: bool,
    /// Until when this holds, if that is known: the history does not keep cancelled tasks for longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// Why not, or why not for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The topics whose tasks do not come back, because their history does not keep them: the first 100 by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
}

/// A sweep and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SweepInfo {
    /// What it is known by. Later sweeps have greater ones.
    pub id: String,
    /// What it does, or what the sweep did that it undoes.
    #[serde(rename = "do")]
    pub act: SweepAct,
    /// Which tasks, without their ids.
    pub select: SweepSelect,
    /// How many ids were named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<u64>,
    /// `move`: the new due time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// `move`: by how much the due time moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Shift>,
    /// `spread`: the first new due time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Time>,
    /// `spread`: over how long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Span>,
    /// The token of who began it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// When it began.
    pub begun_at: Time,
    /// When it was done or stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    /// How far it is.
    pub state: SweepState,
    /// How many matched so far. Of an undo that is done: how many the sweep had changed.
    pub matched: u64,
    /// How many were changed so far.
    pub changed: u64,
    /// For how many it was too late.
    pub too_late: u64,
    /// How many were left as they are because their queue is full.
    pub no_room: u64,
    /// The sweep that this one undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<String>,
    /// The sweep that undid this one, or does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<String>,
    /// Whether it can be undone.
    pub undo: SweepUndo,
}

/// How far a sweep is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SweepState {
    /// It goes on.
    Running,
    /// It is about to end, because somebody stopped it.
    Stopping,
    /// It has gone over everything.
    Done,
    /// Somebody stopped it before that. What it changed stays changed.
    Stopped,
}

impl SweepState {
    /// Whether nothing more comes of it.
    pub fn is_over(self) -> bool {
        matches!(self, SweepState::Done | SweepState::Stopped)
    }
}

/// The sweeps that run, and the latest that did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SweepList {
    /// The newest first.
    pub sweeps: Vec<SweepInfo>,
}

objects!(NewSweep, SweepSelect);
