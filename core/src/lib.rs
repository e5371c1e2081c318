//! The heart of Punctual: everything that decides what happens to a task, without I/O.
//!
//! - [`Task`], [`Command`], [`Reply`] and their parts are the vocabulary.
//! - [`Shard`] is the state machine that carries commands out.
//! - [`Board`] is where consumers wait.
//! - [`Event`] is what happened, for those who watch.
//! - [`store`] is the contract under all of it, with the suite that every store must pass.
//!
//! Nothing in here reads a clock, draws randomness, starts a thread or touches a file: the linter
//! holds it to that.
//!
//! ```
//! use std::time::Duration;
//!
//! use punctual_core::{Name, Pattern, Task, Timestamp};
//!
//! let task = Task::new(Name::new("orders")?, "close order 7").id(Name::new("order-7")?).after(Duration::from_secs(900));
//! assert_eq!(task.check(), Ok(()));
//!
//! // The time is always an argument.
//! let now = Timestamp::from_millis(1_000_000);
//! assert_eq!(task.when.due(now, now), Timestamp::from_millis(1_900_000));
//!
//! // `*` stands for one word, `#` for any number of them.
//! assert!(Pattern::Words("order.#.late".into()).fits("order.eu.7.late"));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//! A whole life of a task is in the example of `punctual-node`, which runs shards on threads.

mod adjustment;
mod answer;
mod attempt;
mod board;
mod certainty;
mod command;
pub mod course;
mod dead_groups;
pub mod division;
mod event;
mod line;
mod listing;
mod look_ahead;
mod name;
mod pattern;
mod pause;
mod rate;
mod routing;
pub mod scope;
mod settings;
pub mod shard;
mod sieve;
mod state;
pub mod store;
mod stored;
mod sweep;
mod task;
mod time;
mod trust;
mod unit;
pub mod view;
mod written;

pub use adjustment::{Adjustment, Adopt, Subject};
pub use answer::{
    Answer, Delivery, Drawn, First, Lease, Refused, Reply, Ruling, ScheduleOutcome, Scheduled, Standing, Swept, Told,
};
pub use attempt::{Attempt, AttemptLog, NOTE_BYTES, Undone};
pub use board::{Board, Candidate, Choice, Elsewhere, Posted, Reserve, Ticket};
pub use certainty::Certainty;
pub use command::{Back, Chosen, Command, Reschedule, Revoke, RowId, Schedule, Selected, Shift, Take};
pub use dead_groups::{Group, Groups, InCommon, Trait};
pub use event::{Event, What};
pub use line::{Holder, Holders, InLine, Leases, Line, Lined, Stage};
pub use look_ahead::Ahead;
pub use name::{BadName, Name};
pub use pattern::Pattern;
pub use pause::{PauseNote, REASON_BYTES};
pub use rate::TokenBucket;
pub use routing::{shard_of, shard_of_key};
pub use scope::Scope;
pub use settings::{
    Backoff, Binding, DEFAULT_MAX_LEASE, DEFAULT_PRIORITY, Order, Overflow, QueueSettings, Rate, Retry, TopicSettings,
    URGENT_PRIORITY,
};
pub use shard::{
    Counts, Fetched, Forward, Mended, Needs, OpenError, Output, QueueCounts, QueueView, Request, Shard, ShardConfig,
    TopicCounts, TopicView, Total,
};
pub use sieve::Sieve;
pub use state::{Death, Ending, Part, Past, Phase, Reason, State, SweepMark};
pub use sweep::{
    Among, Matching, NumberedSweep, Preview, Select, Sweep, SweepAction, SweepEnd, SweepProgress, TimeRange,
};
pub use task::{Form, Headers, Limits, Task, When};
pub use time::{Clock, Millis, Timestamp};
pub use trust::{ClockStep, StepFate, Trust};
pub use unit::Unit;
