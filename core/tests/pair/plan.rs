//! What a test does, drawn at random: a list of acts on a few names, so that they meet one another.

use proptest::prelude::*;
use proptest::sample::Index;

/// The largest body that is taken.
pub const BODY_LIMIT: usize = 64;

/// How much room the shard has for its memory and its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Everything is in memory and happens in one step, and nothing is broadcast, replayed or expires.
    Plain,
    /// Everything happens in one step, and what waits is in memory.
    Ample,
    /// The same, and history stays until it is said that it may go.
    Archived,
    /// The same, and nothing that need not be is in memory.
    Forgetful,
    /// Nothing that need not be is in memory, and rows are read ahead of their time.
    NoCache,
    /// Everything takes several steps.
    Tiny { cache: usize },
}

/// A whole test.
#[derive(Clone, Debug)]
pub struct Plan {
    pub room: Room,
    /// How many outputs may be on their way to the store.
    pub lag: usize,
    /// When it begins.
    pub start: u64,
    pub acts: Vec<Act>,
}

#[derive(Clone, Debug)]
pub enum Act {
    /// Requests and consumers that come in one step, so long after the last one.
    Ask { after: u64, asks: Vec<Ask>, reserves: Vec<Reserving> },
    /// Work that takes several steps.
    Alone(Ask),
    /// Deletions that overlap, and what others ask for in the same step; sweeps among them.
    Together(Vec<Ask>),
    /// Time passes and nobody looks.
    Jump(u64),
    /// The clock is set back by so much.
    Back(u64),
    /// Time passes and the shard is woken for everything that happens.
    Walk(u64),
    /// Dead letters are carried to their topics.
    Carry(Carrying),
    /// Everything becomes durable.
    Commit,
    /// Everything is compared.
    Look,
    /// The shard moves to another owner.
    Reopen,
    /// The process dies with so many outputs on their way saved.
    Crash { keep: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrying {
    Deliver,
    Refuse,
    /// It arrives, and word of it is lost.
    Forget,
}

#[derive(Clone, Debug)]
pub struct Reserving {
    /// One bit for each queue.
    pub queues: u8,
    pub max: usize,
    pub lease: Option<u64>,
    pub wait: u64,
    pub consumer: u8,
    pub foremost: bool,
}

/// A task by its topic and its id.
#[derive(Clone, Copy, Debug)]
pub struct Which {
    pub topic: u8,
    pub id: u8,
}

/// A row that somebody has seen.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub index: Index,
    /// Only one that is still there.
    pub is_there: bool,
}

/// Which topics or queues are looked at.
#[derive(Clone, Debug)]
pub enum Look {
    Named(u8),
    After(Option<u8>, usize),
}

#[derive(Clone, Copy, Debug)]
pub enum Moving {
    /// To so long after a time that is the same throughout the test.
    To(u64),
    In(u64),
    By(i64),
}

#[derive(Clone, Debug)]
pub enum Ask {
    Schedule {
        which: Which,
        id_is_new: bool,
        when: Moving,
        key: Option<u8>,
        priority: Option<u32>,
        ttl: Option<u64>,
        attempts: Option<u32>,
        wait: u64,
        lease: Option<u64>,
        max_lease: Option<u64>,
        routing: u8,
        replace: bool,
        large: bool,
    },
    Cancel(Which),
    Reschedule {
        which: Which,
        shift: Option<Moving>,
        priority: Option<u32>,
        body: bool,
        large: bool,
    },
    Acknowledge(Index),
    Release {
        lease: Index,
        after: Option<u64>,
        priority: Option<u32>,
        note: bool,
    },
    /// An operator ends a lease, of this consumer or of any.
    Revoke {
        which: Which,
        queue: Option<u8>,
        holder: Option<u8>,
        after: Option<u64>,
    },
    Abandon(Index),
    Reject {
        lease: Index,
        note: bool,
        priority: Option<u32>,
    },
    Extend {
        lease: Index,
        by: Option<u64>,
    },
    /// A row by its number, maybe with a lease that is or was one of its.
    Remove {
        row: Known,
        lease: Option<Index>,
    },
    Hasten(Known),
    Take {
        row: Known,
        lease: Option<u64>,
        consumer: u8,
    },
    Replay {
        which: Which,
        queue: Option<u8>,
    },
    Restore(Which),
    Purge {
        which: Which,
        queue: Option<u8>,
    },
    /// The task as it finished, or as it did not.
    Forget {
        which: Which,
        as_finished: bool,
    },
    PutTopic {
        topic: u8,
        feeds: Vec<(u8, u8)>,
        own: bool,
        history: u64,
        ttl: Option<u64>,
        nth: Option<u8>,
    },
    PutQueue {
        queue: u8,
        lease: u64,
        /// So much more than the lease.
        max_lease: Option<u64>,
        attempts: u32,
        wait: u64,
        max_length: Option<(u64, bool)>,
        dead_letter: Option<u8>,
        dead_retention: Option<u64>,
        by_arrival: bool,
        /// As a change that all shards make: one of before, the latest again, or the next.
        nth: Option<u8>,
    },
    PauseTopic(u8, bool),
    PauseQueue(u8, Option<u64>),
    Topics(Look),
    Queues(Look),
    Total,
    First(u8),
    Forecast(u8),
    CancelKey {
        key: u8,
        topic: Option<u8>,
        /// For somebody who has nothing to do with this topic.
        without: Option<u8>,
        dry_run: bool,
    },
    ShiftKey {
        key: u8,
        topic: Option<u8>,
        without: Option<u8>,
        by: Moving,
        dry_run: bool,
    },
    /// Dead letters of the last so many milliseconds.
    SweepDead {
        topic: Option<u8>,
        without: Option<u8>,
        queue: Option<u8>,
        last: u64,
        purge: bool,
        dry_run: bool,
    },
    ReplayHistory {
        topic: u8,
        last: u64,
        cancelled: Option<bool>,
        dry_run: bool,
    },
    /// What a sweep would change of the tasks that come due, died or finished so many milliseconds around now.
    Preview {
        /// Live, scheduled, ready, dead or finished.
        among: u8,
        topic: Option<u8>,
        without: Option<u8>,
        key: Option<u8>,
        around: Option<u64>,
    },
    DeleteTopic(u8, bool),
    DeleteQueue(u8, bool),
}

const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

/// Times that meet one another.
fn short() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => Just(0u64),
        4 => 1u64..4,
        4 => (1u64..12).prop_map(|tens| tens * 10),
        2 => Just(1_000),
        1 => Just(60_000),
    ]
}

fn long() -> impl Strategy<Value = u64> {
    prop_oneof![
        12 => short(),
        2 => Just(HOUR),
        1 => Just(DAY),
        1 => Just(3 * DAY + 7),
    ]
}

fn moving() -> impl Strategy<Value = Moving> {
    prop_oneof![
        3 => long().prop_map(Moving::In),
        1 => prop_oneof![Just(40 * DAY), Just(u64::MAX)].prop_map(Moving::In),
        2 => (0u64..400).prop_map(Moving::To),
        1 => (-200i64..200).prop_map(Moving::By),
    ]
}

fn which() -> impl Strategy<Value = Which> {
    (0u8..3, prop_oneof![12 => 0u8..6, 1 => 6u8..9]).prop_map(|(topic, id)| Which { topic, id })
}

fn known() -> impl Strategy<Value = Known> {
    (any::<Index>(), prop::bool::weighted(0.85)).prop_map(|(index, is_there)| Known { index, is_there })
}

fn maybe<T: std::fmt::Debug>(some: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop::option::weighted(0.4, some)
}

fn schedule() -> impl Strategy<Value = Ask> {
    let what = (which(), prop::bool::weighted(0.2), moving(), maybe(0u8..3), maybe(0u32..3));
    let rest = (
        prop::option::weighted(0.2, short()),
        prop::option::weighted(0.3, 0u32..3),
        short(),
        prop::option::weighted(0.3, short()),
        prop::option::weighted(0.2, short()),
        0u8..4,
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.03),
    );
    (what, rest).prop_map(
        |(
            (which, id_is_new, when, key, priority),
            (ttl, attempts, wait, lease, max_lease, routing, replace, large),
        )| {
            Ask::Schedule {
                which,
                id_is_new,
                when,
                key,
                priority,
                ttl,
                attempts,
                wait,
                lease,
                max_lease,
                routing,
                replace,
                large,
            }
        },
    )
}

fn put_topic() -> impl Strategy<Value = Ask> {
    let history = prop_oneof![Just(0u64), Just(10), Just(100), Just(DAY)];
    let feeds = prop::collection::vec((0u8..4, 0u8..4), 0..4);
    (0u8..3, feeds, prop::bool::weighted(0.3), history, prop::option::weighted(0.2, short()), nth())
        .prop_map(|(topic, feeds, own, history, ttl, nth)| Ask::PutTopic { topic, feeds, own, history, ttl, nth })
}

fn nth() -> impl Strategy<Value = Option<u8>> {
    prop::option::weighted(0.4, prop_oneof![1 => Just(0u8), 1 => Just(1), 3 => Just(2)])
}

fn put_queue() -> impl Strategy<Value = Ask> {
    let max_lease = prop::option::weighted(0.3, short());
    let first = (0u8..4, prop_oneof![1 => Just(0u64), 9 => 1u64..300], max_lease, 0u32..4, short());
    let max_length = prop::option::weighted(0.4, (0u64..4, any::<bool>()));
    let dead_letter = prop::option::weighted(0.3, 0u8..3);
    let dead_retention = prop::option::weighted(0.3, short());
    (first, max_length, dead_letter, dead_retention, any::<bool>(), nth()).prop_map(
        |((queue, lease, max_lease, attempts, wait), max_length, dead_letter, dead_retention, by_arrival, nth)| {
            Ask::PutQueue {
                queue,
                lease,
                max_lease,
                attempts,
                wait,
                max_length,
                dead_letter,
                dead_retention,
                by_arrival,
                nth,
            }
        },
    )
}

/// Requests that are answered in one step.
fn ask() -> impl Strategy<Value = Ask> {
    let lease = || any::<Index>();
    let reschedule = (which(), maybe(moving()), maybe(0u32..3), prop::bool::weighted(0.3), prop::bool::weighted(0.05));
    prop_oneof![
        20 => schedule(),
        5 => which().prop_map(Ask::Cancel),
        5 => reschedule.prop_map(|(which, shift, priority, body, large)| {
            Ask::Reschedule { which, shift, priority, body, large }
        }),
        6 => lease().prop_map(Ask::Acknowledge),
        6 => (lease(), maybe(short()), maybe(0u32..3), any::<bool>()).prop_map(|(lease, after, priority, note)| {
            Ask::Release { lease, after, priority, note }
        }),
        4 => (which(), maybe(0u8..4), maybe(0u8..3), maybe(short())).prop_map(|(which, queue, holder, after)| {
            Ask::Revoke { which, queue, holder, after }
        }),
        2 => lease().prop_map(Ask::Abandon),
        3 => (lease(), any::<bool>(), maybe(0u32..3)).prop_map(|(lease, note, priority)| {
            Ask::Reject { lease, note, priority }
        }),
        2 => (lease(), maybe(short())).prop_map(|(lease, by)| Ask::Extend { lease, by }),
        5 => (known(), prop::option::weighted(0.6, lease())).prop_map(|(row, lease)| Ask::Remove { row, lease }),
        5 => known().prop_map(Ask::Hasten),
        5 => (known(), maybe(short()), 0u8..3).prop_map(|(row, lease, consumer)| Ask::Take { row, lease, consumer }),
        3 => (which(), maybe(0u8..4)).prop_map(|(which, queue)| Ask::Replay { which, queue }),
        3 => which().prop_map(Ask::Restore),
        1 => (which(), maybe(0u8..4)).prop_map(|(which, queue)| Ask::Purge { which, queue }),
        3 => (which(), prop::bool::weighted(0.8)).prop_map(|(which, as_finished)| Ask::Forget { which, as_finished }),
        2 => put_topic(),
        2 => put_queue(),
        1 => (0u8..3, any::<bool>()).prop_map(|(topic, paused)| Ask::PauseTopic(topic, paused)),
        1 => (0u8..4, maybe(short())).prop_map(|(queue, until)| Ask::PauseQueue(queue, until)),
        1 => look().prop_map(Ask::Topics),
        1 => look().prop_map(Ask::Queues),
        1 => Just(Ask::Total),
        1 => (0u8..4).prop_map(Ask::First),
        1 => (0u8..5).prop_map(Ask::Forecast),
    ]
}

fn look() -> impl Strategy<Value = Look> {
    prop_oneof![
        (0u8..4).prop_map(Look::Named),
        (maybe(0u8..4), 0usize..4).prop_map(|(after, limit)| Look::After(after, limit)),
    ]
}

/// Requests that take several steps.
fn long_ask() -> impl Strategy<Value = Ask> {
    let dry = || prop::bool::weighted(0.2);
    let topic = || prop::option::weighted(0.3, 0u8..3);
    prop_oneof![
        3 => (0u8..3, topic(), topic(), dry()).prop_map(|(key, topic, without, dry_run)| {
            Ask::CancelKey { key, topic, without, dry_run }
        }),
        3 => (0u8..3, topic(), topic(), moving(), dry()).prop_map(|(key, topic, without, by, dry_run)| {
            Ask::ShiftKey { key, topic, without, by, dry_run }
        }),
        3 => (topic(), topic(), prop::option::weighted(0.3, 0u8..4), short(), any::<bool>(), dry()).prop_map(
            |(topic, without, queue, last, purge, dry_run)| {
                Ask::SweepDead { topic, without, queue, last, purge, dry_run }
            }
        ),
        3 => (0u8..5, topic(), topic(), topic(), maybe(short())).prop_map(|(among, topic, without, key, around)| {
            Ask::Preview { among, topic, without, key, around }
        }),
        2 => (0u8..3, short(), prop::option::of(any::<bool>()), dry()).prop_map(|(topic, last, cancelled, dry_run)| {
            Ask::ReplayHistory { topic, last, cancelled, dry_run }
        }),
        3 => deletion(),
    ]
}

fn deletion() -> impl Strategy<Value = Ask> {
    prop_oneof![
        1 => (0u8..3, any::<bool>()).prop_map(|(topic, force)| Ask::DeleteTopic(topic, force)),
        2 => (0u8..4, any::<bool>()).prop_map(|(queue, force)| Ask::DeleteQueue(queue, force)),
    ]
}

impl Ask {
    /// Whether it goes over many rows, after all else that happens in its step.
    pub fn is_sweep(&self) -> bool {
        let is_over_tasks = matches!(self, Ask::SweepDead { .. } | Ask::ReplayHistory { .. } | Ask::Preview { .. });
        is_over_tasks || matches!(self, Ask::CancelKey { .. } | Ask::ShiftKey { .. })
    }

    /// Whether what it deletes is a topic, not a queue; `None` if it deletes nothing.
    pub fn deletes_topic(&self) -> Option<bool> {
        match self {
            Ask::DeleteTopic(..) => Some(true),
            Ask::DeleteQueue(..) => Some(false),
            _ => None,
        }
    }

    /// Whether it asks for counts, which are right only when everything has come to rest.
    pub fn looks(&self) -> bool {
        matches!(self, Ask::Topics(_) | Ask::Queues(_) | Ask::Total | Ask::First(_) | Ask::Forecast(_))
    }
}

fn reserving() -> impl Strategy<Value = Reserving> {
    (1u8..16, 1usize..4, maybe(short()), short(), 0u8..3, any::<bool>()).prop_map(
        |(queues, max, lease, wait, consumer, foremost)| Reserving { queues, max, lease, wait, consumer, foremost },
    )
}

fn act(reopens: bool) -> impl Strategy<Value = Act> {
    let asks = prop::collection::vec(ask(), 1..4);
    let reserves = || prop::collection::vec(reserving(), 1..3);
    prop_oneof![
        24 => (prop_oneof![5 => Just(0u64), 2 => short()], asks).prop_map(|(after, asks)| {
            Act::Ask { after, asks, reserves: vec![] }
        }),
        9 => reserves().prop_map(|reserves| Act::Ask { after: 0, asks: vec![], reserves }),
        3 => (short(), ask(), reserves()).prop_map(|(after, ask, reserves)| {
            Act::Ask { after, asks: vec![ask], reserves }
        }),
        4 => long_ask().prop_map(Act::Alone),
        4 => prop::collection::vec(prop_oneof![3 => deletion(), 2 => long_ask(), 3 => ask()], 1..6)
            .prop_map(Act::Together),
        5 => prop_oneof![20 => long(), 1 => Just(40 * DAY)].prop_map(Act::Jump),
        5 => long().prop_map(|by| Act::Walk(by.min(HOUR))),
        2 => prop_oneof![20 => long(), 1 => Just(40 * DAY)].prop_map(Act::Back),
        3 => prop_oneof![4 => Just(Carrying::Deliver), 1 => Just(Carrying::Refuse), 1 => Just(Carrying::Forget)]
            .prop_map(Act::Carry),
        1 => Just(Act::Commit),
        2 => Just(Act::Look),
        4 => (0usize..4).prop_map(move |keep| match keep {
            _ if !reopens => Act::Commit,
            3 => Act::Reopen,
            keep => Act::Crash { keep },
        }),
    ]
}

/// A test in this much room, with so many outputs on their way at most, with or without restarts.
pub fn plan(
    rooms: impl Strategy<Value = Room>,
    lag: std::ops::RangeInclusive<usize>,
    reopens: bool,
) -> impl Strategy<Value = Plan> {
    (rooms, lag, 0..DAY, prop::collection::vec(act(reopens), 1..60)).prop_map(|(room, lag, start, acts)| Plan {
        room,
        lag,
        start,
        acts,
    })
}
