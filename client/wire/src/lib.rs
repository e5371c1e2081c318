//! What goes over the wire between Punctual's HTTP door and its clients: the types of `/v1`.
//!
//! The door and the client share them, so they cannot drift apart; with the feature `openapi` they
//! are the schemas of the OpenAPI document too. Nothing here knows how tasks work or how requests travel.
//!
//! Whatever comes in refuses fields it does not know, so that a slip of the pen is told and not
//! passed over. Whatever goes out may gain fields, and clients skip those they do not know.
//!
//! ```
//! use punctual_wire::{NewTask, Span, read_json};
//!
//! let task: NewTask = read_json(br#"{"topic": "orders", "delay": "15m", "text": "close order 7"}"#)?;
//! assert_eq!(task.delay, Some(Span::from_secs(900)));
//!
//! let misread = read_json::<NewTask>(br#"{"topic": "orders", "delay": "soon"}"#).unwrap_err();
//! assert_eq!(misread.field, "delay");
//! # Ok::<_, punctual_wire::Misread>(())
//! ```

mod admin;
mod bytes;
mod event;
mod given;
mod lease;
mod list;
mod me;
mod misread;
#[cfg(feature = "openapi")]
mod name;
mod object;
mod patch;
mod problem;
mod rfc3339;
mod settings;
mod standing;
mod table;
mod task;
mod time;

pub use admin::{
    Deleted, Distribution, EndingChoice, Forecast, ForecastSlot, Happened, ListNames, PauseQueue, QueueInfo, QueueList,
    Selection, ShiftKey, Stats, StoreLink, StoreStats, Swept, Timing, TopicInfo, TopicList, Total, Unit,
};
pub use bytes::Base64;
pub use event::Event;
pub use lease::{
    Action, Actions, Deliveries, Delivery, Do, Reserve, Revoke, Revoked, Settled, SettledOutcome, Settlements,
};
pub use list::{Attempt, DeliveryInfo, First, List, ListState, Page, Past, TaskInfo, Undone};
pub use me::{Me, Role};
pub use misread::{Misread, read_from, read_json};
#[cfg(feature = "openapi")]
pub use name::Name;
pub use patch::merge;
pub use problem::{Answer, Problem};
pub use settings::{Backoff, Binding, Order, Overflow, QueueSettings, Rate, Retry, TopicSettings};
pub use standing::{Ending, Standing};
pub use table::{Kind, Setting, Settings};
pub use task::{
    Batch, BatchResults, CancelOutcome, Cancelled, NewTask, Replayed, Reschedule, Rescheduled, ScheduleOutcome,
    Scheduled, ScheduledRef,
};
pub use time::{BadSpan, BadTime, Shift, Span, Time};
