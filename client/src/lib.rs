//! The Rust client of Punctual: schedule tasks, cancel and move them with a certain answer, and work on what is due.
//!
//! - [`Client`] has a method for everything the HTTP interface does. It is cheap to clone and safe to share.
//! - [`Task`] puts a task together.
//! - [`Batcher`] schedules tasks of many concurrent callers in few requests.
//! - [`Worker`] takes what is due, calls handlers, and tells the server what became of it.
//!
//! What a lost answer could make happen twice is not repeated behind the caller's back; what is repeated, and
//! why that is safe, is said at [`Client`].

mod address;
mod admin;
mod backoff;
mod batcher;
mod client;
mod delivery;
mod error;
mod events;
mod leases;
mod pool;
mod task;
mod tasks;
mod transport;
mod trust;
mod worker;

pub use punctual_wire as wire;
pub use punctual_wire::{
    Action, Backoff, Base64, Binding, CancelOutcome, Delivery, Do, Ending, Event, Forecast, List, ListState, NewTask,
    Order, Overflow, Page, PauseQueue, Problem, QueueInfo, QueueSettings, Rate, Reschedule, Reserve, Retry,
    ScheduleOutcome, Scheduled, Selection, Settled, SettledOutcome, Shift, ShiftKey, Span, Standing, Stats, Swept,
    TaskInfo, Time, TopicInfo, TopicSettings, Unit,
};

pub use batcher::Batcher;
pub use client::{Client, ClientBuilder};
pub use delivery::DeliveryBody;
pub use error::Error;
pub use events::{EventFilter, Events, Happening};
pub use task::{Due, Task};
pub use tasks::Ruling;
pub use worker::{Failure, Job, Summary, Worker, WorkerBuilder};
