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
mod audit;
mod bytes;
mod consumers;
mod dead_groups;
mod event;
mod find;
mod given;
mod lease;
mod list;
mod me;
mod misread;
mod moving;
#[cfg(feature = "openapi")]
mod name;
mod nodes;
mod object;
mod patch;
mod problem;
mod pulse;
mod rfc3339;
mod series;
mod settings;
mod standing;
mod sweeps;
mod table;
mod task;
mod time;
mod timeline;

pub use admin::{
    Deleted, Distribution, EndingChoice, Forecast, ForecastQuery, ForecastSlot, Happened, ListNames, PauseNote,
    PauseQueue, PauseTopic, QueueInfo, QueueList, Selection, ShiftKey, Stats, StoreLink, StoreStats, Swept, Timing,
    TopicForecast, TopicInfo, TopicList, Total, Unit,
};
pub use audit::{ActInfo, ActList, ListActs};
pub use bytes::Base64;
pub use consumers::{ConsumerInfo, ConsumerList, HolderInfo, ListConsumers};
pub use dead_groups::{DeadGroup, DeadGroups, DeadGroupsQuery, DeadSample};
pub use event::Event;
pub use find::{Found, Hit};
pub use lease::{
    Action, Actions, Deliveries, Delivery, Do, Reserve, Revoke, Revoked, Settled, SettledOutcome, Settlements,
};
pub use list::{
    Attempt, DeliveryInfo, DeliveryState, First, List, ListDeliveries, ListState, Page, Past, TaskInfo, Undone,
};
pub use me::{Me, Role};
pub use misread::{Misread, read_from, read_json};
pub use moving::{MoveState, MoveStore, ShardMove, ShardMoveState, StoreMove};
#[cfg(feature = "openapi")]
pub use name::Name;
pub use nodes::{NodeInfo, NodeList, PinShard, ShardInfo, ShardList};
pub use patch::merge;
pub use problem::{Answer, Problem};
pub use pulse::{Pulse, PulseQuery, QueuePulse, TopicPulse};
pub use series::{Metric, Series, SeriesQuery, SeriesStep};
pub use settings::{Backoff, Binding, Order, Overflow, QueueSettings, Rate, Retry, TopicSettings};
pub use standing::{Ending, Standing};
pub use sweeps::{
    NewSweep, SelectState, SweepAct, SweepInfo, SweepList, SweepPreview, SweepSelect, SweepState, SweepUndo,
};
pub use table::{Kind, Setting, Settings};
pub use task::{
    Batch, BatchResults, CancelOutcome, Cancelled, Hastened, NewTask, Replayed, Reschedule, Rescheduled, Restored,
    ScheduleOutcome, Scheduled, ScheduledRef,
};
pub use time::{BadSpan, BadTime, Shift, Span, Time};
pub use timeline::{Passed, Prospect, Timeline, TimelineEntry, ToCome, Why};
