//! The course of a task, and what people did to it.

use punctual_core::course::{Happening, Passed, Prospect, ToCome};
use punctual_core::{Ending, Name, Undone};
use punctual_node::{Act, Cause};
use punctual_wire as wire;

use super::standing::{ending_to_wire, time};

pub(crate) fn passed(passed: Passed) -> wire::TimelineEntry {
    let Passed { at, is_exact, queue, what } = passed;
    let entry = entry(time(at), kind(&what));
    let entry = wire::TimelineEntry { exact: is_exact, queue: queue.map(text), ..entry };
    match what {
        Happening::Scheduled { due } => wire::TimelineEntry { until: Some(time(due)), ..entry },
        Happening::Leased { holder, attempt, until } => {
            wire::TimelineEntry { who: Some(text(holder)), attempt: Some(attempt), until: Some(time(until)), ..entry }
        }
        Happening::Undone(undone) => wire::TimelineEntry {
            who: Some(text(undone.holder)),
            attempt: Some(undone.number),
            note: undone.note,
            ..entry
        },
        Happening::Died(death) => {
            wire::TimelineEntry { reason: Some(death.reason.as_str().into()), note: death.note, ..entry }
        }
        Happening::Due | Happening::Ready | Happening::Finished(_) => entry,
    }
}

/// What somebody did to the task.
pub(crate) fn acted(act: &Act) -> wire::TimelineEntry {
    wire::TimelineEntry {
        act: Some(act.what.clone()),
        who: Some(act.person.as_ref().unwrap_or(&act.by).clone()),
        queue: act.queue.as_ref().map(ToString::to_string),
        note: act.detail.clone(),
        ..entry(time(act.at), wire::Passed::Act)
    }
}

fn entry(at: wire::Time, what: wire::Passed) -> wire::TimelineEntry {
    wire::TimelineEntry {
        at,
        exact: true,
        what,
        act: None,
        who: None,
        queue: None,
        attempt: None,
        until: None,
        reason: None,
        note: None,
    }
}

fn kind(what: &Happening) -> wire::Passed {
    match what {
        Happening::Scheduled { .. } => wire::Passed::Scheduled,
        Happening::Due => wire::Passed::Due,
        Happening::Ready => wire::Passed::Ready,
        Happening::Leased { .. } => wire::Passed::Leased,
        Happening::Died(_) => wire::Passed::Dead,
        Happening::Undone(attempt) => match attempt.undone {
            Undone::Failed => wire::Passed::Failed,
            Undone::Lapsed => wire::Passed::Lapsed,
            Undone::Released => wire::Passed::Released,
            Undone::Rejected => wire::Passed::Rejected,
            Undone::Revoked => wire::Passed::Revoked,
            Undone::Abandoned => wire::Passed::Abandoned,
        },
        Happening::Finished(ending) => match ending {
            Ending::Done => wire::Passed::Done,
            Ending::Cancelled => wire::Passed::Cancelled,
            Ending::Forwarded => wire::Passed::Forwarded,
            Ending::Purged => wire::Passed::Purged,
        },
    }
}

pub(crate) fn to_come(to_come: ToCome) -> wire::ToCome {
    let ToCome { queue, what } = to_come;
    let (kind, attempt, after) = match what {
        Prospect::Due(_) => (wire::Prospect::Due, None, None),
        Prospect::Retry { attempt, .. } => (wire::Prospect::Retry, Some(attempt), None),
        Prospect::LeaseEnds { attempt, .. } => (wire::Prospect::LeaseEnds, Some(attempt), None),
        Prospect::Expires(_) => (wire::Prospect::Expires, None, None),
        Prospect::Removed(_) => (wire::Prospect::Removed, None, None),
        Prospect::RetryIfFailed { attempt, after } => {
            (wire::Prospect::RetryIfFailed, Some(attempt), Some(wire::Span(after.0)))
        }
        Prospect::DeadIfFailed { attempt } => (wire::Prospect::DeadIfFailed, Some(attempt), None),
    };
    wire::ToCome { what: kind, at: what.at().map(time), queue: queue.map(text), attempt, after }
}

pub(crate) fn why(cause: Cause) -> wire::Why {
    match cause {
        Cause::NotDue(at) => wire::Why::NotDue { at: time(at) },
        Cause::Retry { at, attempt } => wire::Why::Retry { at: time(at), attempt },
        Cause::Held { queue, holder, until, attempt } => {
            wire::Why::Held { queue: text(queue), holder: text(holder), until: time(until), attempt }
        }
        Cause::Paused { queue, until, note } => {
            let (by, since, reason) =
                note.map_or((None, None, None), |note| (Some(note.by), Some(time(note.since)), note.reason));
            wire::Why::Paused { queue: text(queue), by, since, reason, until: until.map(time) }
        }
        Cause::NobodyWaits(queue) => wire::Why::NobodyWaits { queue: text(queue) },
        Cause::Behind { queue, ahead, is_more } => wire::Why::Behind { queue: text(queue), ahead, more: is_more },
        Cause::Rate { queue, per_second } => wire::Why::Rate { queue: text(queue), per_second },
        Cause::Next(queue) => wire::Why::Next { queue: text(queue) },
        Cause::Spread(open) => wire::Why::Spread { open: open.into_iter().map(text).collect() },
        Cause::Unrouted => wire::Why::Unrouted,
        Cause::Dead { reason, at } => wire::Why::Dead { reason: reason.as_str().into(), at: time(at) },
        Cause::Finished { ending: how, at } => wire::Why::Finished { ending: ending_to_wire(how), at: time(at) },
    }
}

fn text(name: Name) -> String {
    name.to_string()
}
