//! Values of every kind, drawn from a seed.

use bytes::Bytes;
use punctual_center::{
    Account, Buckets, Busy, Consumer, Consumers, Error, Gauges, Grain, Happened, Inquiry, Loan, MICROS, Message,
    Outcome, Pulse, Refusals, Series, Slot, Spread, Timing, Work,
};
use punctual_chance::Chance;
use punctual_core::store::{Fence, Incarnation, Key, Position, ShardId};
use punctual_core::{
    Adjustment, Adopt, Among, Answer, Back, Backoff, Binding, Chosen, Command, Delivery, Drawn, Event, First, Holder,
    Holders, InLine, Lease, Leases, Line, Lined, Matching, Millis, Name, NumberedSweep, Pattern, PauseNote, Preview,
    QueueCounts, QueueSettings, QueueView, Rate, Refused, Reschedule, Retry, Revoke, RowId, Ruling, Schedule,
    ScheduleOutcome, Scheduled, Scope, Select, Selected, Shift, Standing, Subject, Sweep, SweepAction, SweepEnd,
    SweepProgress, Swept, Take, Task, TimeRange, Timestamp, TopicCounts, TopicSettings, TopicView, Total, What, When,
};

use super::field::Field;

/// A type whose values can be drawn.
pub(super) trait Example {
    fn draw(chance: &mut Chance) -> Self;
}

pub(super) fn draw<T: Example>(chance: &mut Chance) -> T {
    T::draw(chance)
}

/// An enum without fields: whatever some number stands for.
fn numbered<T>(chance: &mut Chance) -> T
where
    u32: Field<T>,
{
    loop {
        if let Ok(value) = Field::take(chance.below(10) as u32) {
            return value;
        }
    }
}

impl<T: Example> Example for Option<T> {
    fn draw(chance: &mut Chance) -> Option<T> {
        (chance.below(2) == 0).then(|| draw(chance))
    }
}

impl<T: Example> Example for Vec<T> {
    fn draw(chance: &mut Chance) -> Vec<T> {
        (0..chance.below(4)).map(|_| draw(chance)).collect()
    }
}

impl<T: Example> Example for Box<T> {
    fn draw(chance: &mut Chance) -> Box<T> {
        Box::new(draw(chance))
    }
}

impl<T: Example, U: Example> Example for (T, U) {
    fn draw(chance: &mut Chance) -> (T, U) {
        (draw(chance), draw(chance))
    }
}

/// Structs: every field is drawn.
macro_rules! drawn {
    ($($type:ident { $($field:ident),* })*) => {$(
        impl Example for $type {
            fn draw(chance: &mut Chance) -> $type {
                $type { $($field: draw(chance)),* }
            }
        }
    )*};
}

/// Types whose values are drawn in their own way.
macro_rules! drawn_by {
    ($($type:ty = |$chance:ident| $draw:expr;)*) => {$(
        impl Example for $type {
            fn draw($chance: &mut Chance) -> $type {
                $draw
            }
        }
    )*};
}

drawn_by! {
    () = |_chance| ();
    bool = |chance| chance.below(2) == 0;
    u64 = |chance| *chance.pick(&[0, 1, 127, 128, u64::MAX]);
    u32 = |chance| *chance.pick(&[0, 1, 300, u32::MAX]);
    u8 = |chance| chance.below(256) as u8;
    i64 = |chance| *chance.pick(&[0, -1, i64::MIN, i64::MAX]);
    usize = |chance| chance.below(1 << 40) as usize;
    &'static str = |chance| *chance.pick(&["lease", "max_lease", "note", "until"]);
    String = |chance| (*chance.pick(&["", "a text", "é\n\0", "*"])).to_owned();
    Bytes = |chance| draw::<String>(chance).into();
    Name = |chance| Name::stored(&chance.pick(&["orders", "a/b", "注文", "."]).repeat(1 + chance.index(40)));
    Millis = |chance| Millis(draw(chance));
    Timestamp = |chance| *chance.pick(&[Timestamp::ZERO, Timestamp::from_millis(7), Timestamp::LAST, Timestamp::NEVER]);
    ShardId = |chance| ShardId(chance.below(1 << 16) as u16);
    Fence = |chance| Fence(draw(chance));
    Key = |chance| Key::new(&draw::<Name>(chance), &draw::<Name>(chance), draw::<Option<Name>>(chance).as_deref().unwrap_or(""));
    Spread = |chance| Spread::of(draw::<Vec<(u64, u64)>>(chance));
    Buckets = |chance| {
        let counts = MICROS.iter().map(|_| draw(chance)).collect();
        Buckets { bounds: MICROS, counts, count: draw(chance), sum: draw(chance) }
    };
    [u64; punctual_core::Reason::ALL.len()] = |chance| std::array::from_fn(|_| draw(chance));
    Scope = |chance| draw::<Option<Vec<String>>>(chance).map_or(Scope::ALL, Scope::of);
    Grain = |chance| numbered(chance);
    punctual_core::Choice = |chance| numbered(chance);
    punctual_core::Certainty = |chance| numbered(chance);
    punctual_core::Ending = |chance| numbered(chance);
    punctual_core::Form = |chance| numbered(chance);
    punctual_core::Order = |chance| numbered(chance);
    punctual_core::Overflow = |chance| numbered(chance);
    punctual_core::Reason = |chance| numbered(chance);
    punctual_core::Stage = |chance| numbered(chance);
    punctual_core::Unit = |chance| numbered(chance);
}

drawn! {
    Incarnation { node, number }
    Position { at, seq }
    Lease { key, token }
    Loan { queues, max, lease, consumer, choice }
    Schedule { task, id, id_is_new }
    Reschedule { topic, id, shift, priority, body }
    RowId { key, number }
    Take { row, consumer, lease }
    Revoke { selected, holder, back, note }
    Selected { topic, id, queue }
    Sweep { matching, within, action, dry_run }
    NumberedSweep { number, sweep }
    Select { among, topic, key, queue, time, ids }
    Preview { swept, more, samples }
    SweepProgress { number, swept, ended }
    SweepEnd { at, is_stopped }
    TimeRange { from, until }
    Task { topic, id, body, form, headers, routing_key, when, key, priority, ttl, retry, lease, max_lease, replace }
    Delivery {
        topic, id, queue, number, body, form, headers, routing_key, key, priority, attempt, scheduled_at, due, fired_at, lease,
        until, lease_time
    }
    TopicSettings { owner, feeds, history, paused, pause, rate, priority, ttl }
    QueueSettings {
        lease, max_lease, retry, max_length, overflow, dead_letter, dead_retention, paused_until, pause, rate, order
    }
    PauseNote { by, since, reason }
    Binding { queue, pattern }
    Retry { attempts, backoff, jitter_percent }
    Rate { per_second, burst }
    Scheduled { id, number, outcome }
    Swept { matched, changed, too_late, no_room }
    TopicView { settings, counts }
    TopicCounts { name, waiting, leased, dead, history }
    QueueView { settings, counts, oldest }
    QueueCounts { name, ready, urgent, leased, dead }
    Total { topics, queues, waiting, ready, urgent, leased, dead, dead_in_queues, history }
    First { priority, position }
    Drawn { tokens, wait }
    Line { queue, stage, from, limit }
    InLine { priority, position }
    Leases { from, ends, latest_first, limit }
    Lined { order, entries, unknown }
    Holders { holders, unknown }
    Holder { name, queue, leases, oldest, next_end }
    Adopt { number, adjustment, to_its_end }
    Event { at, task, number, queue, key, by, what }
    Work {
        started_at, lateness, offered, taken, commit_time, commit_changes, failed_commits, lost_commits, answers,
        waiting_consumers, waiting_requests, happened, busiest, refusals
    }
    Busy { topic, bustle }
    Refusals { code, count }
    Happened {
        scheduled, rescheduled, fired, leased, extended, released, failed, done, cancelled, dead, forwarded, replayed, purged
    }
    Timing { offered, taken }
    Consumers { node, longest, count }
    Consumer { name, queues, max }
    Pulse { started_at, happened, refused, lateness, topics }
    Series { known_since, slots }
    Slot { scheduled, fired, done, failed, died, cancelled, lateness, gauges }
    Gauges { waiting, ready, leased, dead }
}

/// Enums: one of the variants. That none is missing here is seen by the test, which waits for each of them.
macro_rules! drawn_variants {
    ($($type:ty, $path:ident { $($variant:ident $({ $($field:ident),* })? $(($one:tt))?,)* })*) => {$(
        impl Example for $type {
            fn draw(chance: &mut Chance) -> $type {
                let variants: &[fn(&mut Chance) -> $type] = &[
                    $(|_chance| $path::$variant { $($($field: draw(_chance)),*)? $($one: draw(_chance))? },)*
                ];
                chance.pick(variants)(chance)
            }
        }
    )*};
}

drawn_variants! {
    Message, Message {
        Ask { id, shard, round, command, by }, Handed { shard, fence }, Want { queues }, Unwant { queues }, Lend { id, loan },
        Recall { id }, Watch { is_on }, Answered { id, outcome }, NotHere { id, shard, fence, owner },
        Stocked { queues, is_stocked }, Served { id, deliveries, empty }, Happened(0), Missed(0),
        Inquire { id, inquiry }, Accounted { id, account }, Farewell, Leaving,
    }
    Inquiry, Inquiry { Work { within, most }, Topics(0), Queues(0), Consumers { queue, within, most }, Pulse { topics }, Series { of, grain, from, slots }, }
    Account, Account { Work(0), Topics(0), Queues(0), Consumers(0), Pulse(0), Series(0), }
    Outcome, Result { Ok(0), Err(0), }
    Error, Error { Refused(0), Overloaded, Full(0), Unavailable { why, certainty }, Stopping, }
    Refused, Refused {
        BodyTooLarge { bytes, limit }, HeadersTooLarge { entries, bytes }, TopicPaused(0), BeingDeleted(0),
        RateLimited { topic, retry_after }, NoSuchTopic(0), NoSuchQueue(0), QueueFull(0), NotEmpty { name, rows },
        LeaseLost { now }, NothingThere, Invalid { field, why }, BadSettings(0),
    }
    Command, Command {
        Schedule(0), Cancel { topic, id }, Reschedule(0), Acknowledge(0), Release { lease, back, priority, note },
        Reject { lease, note, priority }, Extend { lease, by }, Revoke(0), Remove { row, token }, Hasten { row }, Take(0),
        Replay(0), Purge(0), Forget { topic, id, finished_at }, Sweep(0), PutTopic { name, settings },
        PutQueue { name, settings }, PauseTopic { name, paused }, PauseQueue { name, until }, DeleteTopic { name, force },
        DeleteQueue { name, force }, Forwarded { key, journey, refused }, Topics(0), Queues(0), Total, First { queue },
        Forecast { unit, slots }, Adopt(0), Draw { from, tokens }, Restore { topic, id }, Preview(0),
        BeginSweep(0), StopSweep { number }, Sweeps, Line(0), Leases(0), Holders { queue, within },
    }
    Answer, Answer {
        Scheduled(0), Cancelled(0), Rescheduled(0), Reserved(0), Acknowledged, Released(0), Rejected, Extended(0), Removed(0),
        Hastened(0), Replayed(0), Purged, Swept(0), Topic(0), Queue(0), Deleted(0), Noted, Topics(0), Queues(0), Total(0),
        First(0), Forecast(0), Drawn(0), Preview(0), Sweeps(0), Line(0), Holders(0),
    }
    ScheduleOutcome, ScheduleOutcome { Created { due }, Replaced { due }, Existed(0), }
    Ruling<()>, Ruling { Done(0), TooLate(0), Unknown, }
    Ruling<Timestamp>, Ruling { Done(0), TooLate(0), Unknown, }
    Standing, Standing {
        Scheduled { at }, Ready { since }, Leased { queue, holder, until }, Spread { open, finished },
        Finished { ending, at }, Dead { reason, at },
    }
    Adjustment, Adjustment { PutTopic { name, settings }, PutQueue { name, settings }, Delete { subject, force }, }
    Subject, Subject { Topic(0), Queue(0), }
    Shift, Shift { To(0), In(0), By(0), }
    Back, Back { Retry, After(0), Abandoned, }
    Matching, Matching {
        Key { key, topic }, Dead { topic, queue, died }, History { topic, finished, ending }, Tasks(0), Changed { by },
    }
    Among, Among { Live, Scheduled, Ready, Dead { reason, note, note_prefix }, History { ending }, }
    SweepAction, SweepAction { Cancel, Shift(0), Replay, Purge, Spread(0), Hasten, Undo, }
    Chosen, Chosen { Named(0), After { name, limit }, }
    When, When { At(0), After(0), }
    Backoff, Backoff { Fixed(0), Exponential { first, cap }, }
    Pattern, Pattern { All, Words(0), }
    What, What {
        Scheduled { due }, Replaced { due }, Rescheduled { due }, Fired, Leased { holder, attempt, until }, Extended { until },
        Released { at }, Failed { again }, Done, Cancelled, Died(0), Forwarded, Replayed, Purged,
    }
}
