//! Between the wire's types and the core's: one exhaustive translation for each.

mod numbers;
mod settings;
mod standing;
mod sweeps;
mod tasks;
mod timeline;
mod views;

pub(crate) use numbers::{happened, timing, total};
pub(crate) use settings::{
    check_pause, pause_note, queue_from_wire, queue_to_wire, retry_to_wire, topic_from_wire, topic_to_wire,
    with_whole_pause,
};
pub(crate) use standing::{chosen_ending, ending_from_wire, in_words, standing, time, way_on};
pub(crate) use sweeps::{new_sweep, sweep_info};
pub(crate) use tasks::{new_task, reschedule, shift_of};
pub(crate) use timeline::{acted, passed, to_come, why};
pub use views::task_info;
pub(crate) use views::{list_state, table_of};

use punctual_core::{Millis, Timestamp};
use punctual_wire::{Span, Time};

/// The same length of time.
pub(crate) fn millis(span: Span) -> Millis {
    Millis(span.0)
}

/// The same instant.
pub(crate) fn timestamp(time: Time) -> Timestamp {
    Timestamp::from_millis(time.0)
}
