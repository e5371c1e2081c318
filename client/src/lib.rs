//! The Rust client of Punctual: schedule tasks, cancel and move them with a certain answer, and work on what is due.
//!
//! - [`Client`] has a method for everything the HTTP interface does. It is cheap to clone and safe to share.
//! - [`Task`] puts a task together.
//! - [`Batcher`] schedules tasks of many concurrent callers in few requests.
//! - [`Worker`] takes what is due, calls handlers, and tells the server what became of it.
//!
//! What a lost answer could make happen twice is not repeated behind the caller's back; what is repeated, and
//! why that is safe, is said at [`Client`].
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use punctual_client::{Client, Job, Ruling, Task, Worker};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new("http://127.0.0.1:7400")?;
//! client.schedule(Task::new("order-unpaid").id("order-7").after(Duration::from_secs(15 * 60)).text("7")).await?;
//! if let Ruling::TooLate(standing) = client.cancel("order-unpaid", "order-7").await? {
//!     println!("it is with a consumer, or finished: {standing:?}");
//! }
//!
//! let worker = Worker::builder(client).handle("order-unpaid", |job: Job| async move {
//!     println!("close order {}", job.id);
//!     Ok(())
//! });
//! worker.build()?.run(std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```

mod address;
mod admin;
mod backoff;
mod batcher;
mod client;
mod delivery;
mod error;
mod events;
mod leases;
mod live;
mod looking;
mod pool;
mod server;
mod servers;
mod stream;
mod sweeps;
mod task;
mod tasks;
mod transport;
mod trust;
mod worker;

pub use punctual_wire as wire;
pub use punctual_wire::{
    Action, Backoff, Base64, Binding, CancelOutcome, Delivery, Do, Ending, Event, Forecast, List, ListState, NewTask,
    Order, Overflow, Page, PauseNote, PauseQueue, PauseTopic, Problem, QueueInfo, QueueSettings, Rate, Reschedule,
    Reserve, Retry, ScheduleOutcome, Scheduled, Selection, Settled, SettledOutcome, Shift, ShiftKey, Span, Standing,
    Stats, Swept, TaskInfo, Time, TopicInfo, TopicSettings, Unit,
};

pub use batcher::Batcher;
pub use client::{Client, ClientBuilder};
pub use delivery::DeliveryBody;
pub use error::{Error, Tried};
pub use events::{EventFilter, Events, Happening};
pub use live::Pulses;
pub use task::{Due, Task};
pub use tasks::Ruling;
pub use worker::{Failure, Job, Summary, Worker, WorkerBuilder};
