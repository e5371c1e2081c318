//! Drawn requests become commands: one for the shard, one for the model, which differ in their leases.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::sample::Index;
use punctual_core::store::{Key, Table};
use punctual_core::{
    Adjustment, Adopt, Among, Answer, Back, Backoff, Binding, Choice, Chosen, Command, DEFAULT_MAX_LEASE, Ending, Form,
    Matching, Millis, Name, Order, Overflow, Pattern, QueueSettings, Reply, Reschedule, Reserve, Retry, Revoke, RowId,
    Schedule, Scope, Select, Selected, Shift, Sweep, SweepAction, Take, Task, TimeRange, Timestamp, TopicSettings,
    Unit, When,
};

use super::numbers::Known;
use super::plan::{self, Ask, BODY_LIMIT, Look, Moving, Reserving, Which};
use super::{Held, Pair, Room, name};

/// The instant that `Moving::To` counts from.
const FIXED: u64 = 1_700_000_000_000;

pub fn topic(index: u8) -> Name {
    name(["a", "b", "c"][usize::from(index)])
}

/// The scope of somebody who has nothing to do with a topic.
pub fn all_but(index: Option<u8>) -> Scope {
    let others = |without: u8| (0..3).filter(move |other| *other != without).map(|other| topic(other).to_string());
    index.map_or(Scope::ALL, |index| Scope::of(others(index)))
}

/// Two queues share their names with topics, two do not.
pub fn queue(index: u8) -> Name {
    name(["a", "b", "p", "q"][usize::from(index)])
}

pub fn key(index: u8) -> Name {
    name(["k0", "k1", "k2"][usize::from(index)])
}

fn pattern(index: u8) -> Pattern {
    match index {
        0 => Pattern::All,
        1 => Pattern::Words("x.*".into()),
        2 => Pattern::Words("#.y".into()),
        _ => Pattern::Words("x.y".into()),
    }
}

fn routing(index: u8) -> Option<Name> {
    [None, Some("x.y"), Some("x.z"), Some("y")][usize::from(index)].map(name)
}

fn steady(attempts: u32, wait: u64) -> Retry {
    let backoff = if wait.is_multiple_of(2) {
        Backoff::Fixed(Millis(wait))
    } else {
        Backoff::Exponential { first: Millis(wait), cap: Millis(10 * wait) }
    };
    Retry { attempts, backoff, jitter_percent: 0 }
}

/// The command that takes the jitter from a queue.
pub fn tame(queue: &Name) -> Command {
    let settings = QueueSettings { retry: steady(3, 20), ..QueueSettings::default() };
    Command::PutQueue { name: queue.clone(), settings: Box::new(settings) }
}

/// When the first of the leases ends that were given or made longer.
pub fn first_end(answers: &[(u64, Reply)]) -> Timestamp {
    let ends = answers.iter().flat_map(|(_, reply)| match reply {
        Ok(Answer::Reserved(deliveries)) => deliveries.iter().map(|delivery| delivery.until).collect(),
        Ok(Answer::Extended(until)) => vec![*until],
        _ => Vec::new(),
    });
    ends.min().unwrap_or(Timestamp::NEVER)
}

/// The leases that consumers got, as both sides know them.
pub fn leases(actual: &[(u64, Reply)], expected: &BTreeMap<u64, Reply>) -> Vec<Held> {
    let mut held = Vec::new();
    for (reply, answer) in actual {
        if let (Ok(Answer::Reserved(got)), Some(Ok(Answer::Reserved(meant)))) = (answer, expected.get(reply)) {
            let pairs = got.iter().zip(meant);
            held.extend(pairs.map(|(got, meant)| Held { by_shard: got.lease.clone(), by_model: meant.lease.clone() }));
        }
    }
    held
}

impl Reserving {
    /// `polls` says that nothing else happens in the step, so that all that is ready can be read before.
    pub fn translate(&self, now: Timestamp, room: Room, polls: bool) -> Reserve {
        let mut queues: Vec<Name> = (0..4).filter(|index| self.queues & (1 << index) != 0).map(queue).collect();
        let mut max = self.max;
        let wait = if room.lets_consumers_wait() { self.wait } else { 0 };
        if !room.hands_out_in_order() {
            queues.truncate(1);
            max = if wait > 0 || !polls { 1 } else { max };
        }
        Reserve {
            queues,
            max,
            lease: self.lease.map(Millis),
            until: now.plus(Millis(wait)),
            consumer: name(&format!("consumer-{}", self.consumer)),
            choice: if self.foremost { Choice::Foremost } else { Choice::InTurn },
        }
    }
}

impl Pair {
    /// What to tell the shard and the model.
    pub fn commands(&mut self, asks: &[Ask]) -> Vec<(Command, Command)> {
        let before = self.asked;
        self.asked += asks.len() as u64;
        (before..).zip(asks).filter_map(|(number, ask)| self.command(ask, number)).collect()
    }

    fn command(&self, ask: &Ask, number: u64) -> Option<(Command, Command)> {
        let is_out_of_place = match self.room {
            Room::Plain => ask.is_intricate(),
            // What is pushed out of a full queue dies in the step that follows at once.
            Room::Forgetful => ask.looks(),
            _ => false,
        };
        if is_out_of_place {
            return None;
        }
        let with_lease = |lease: &Index, command: &dyn Fn(punctual_core::Lease) -> Command| {
            let held = (!self.leases.is_empty()).then(|| lease.get(&self.leases))?;
            Some((command(held.by_shard.clone()), command(held.by_model.clone())))
        };
        let command = match ask {
            Ask::Acknowledge(lease) => return with_lease(lease, &Command::Acknowledge),
            Ask::Release { lease, after, priority, note } => {
                let note = note.then(|| format!("not yet {number}"));
                let back = after.map_or(Back::Retry, |after| Back::After(Millis(after)));
                let command = |lease| Command::Release { lease, back, priority: *priority, note: note.clone() };
                return with_lease(lease, &command);
            }
            Ask::Abandon(lease) => {
                let back = Back::Abandoned;
                return with_lease(lease, &|lease| Command::Release { lease, back, priority: None, note: None });
            }
            Ask::Reject { lease, note, priority } => {
                let note = note.then(|| "no use".to_owned());
                let command = |lease| Command::Reject { lease, note: note.clone(), priority: *priority };
                return with_lease(lease, &command);
            }
            Ask::Extend { lease, by } => {
                return with_lease(lease, &|lease| Command::Extend { lease, by: by.map(Millis) });
            }
            Ask::Remove { row, lease } => {
                let known = self.known(row)?;
                let leases: Vec<&Held> = self.leases.iter().filter(|held| held.by_shard.key == known.key).collect();
                let held = lease.filter(|_| !leases.is_empty()).map(|lease| *lease.get(&leases));
                let for_shard = held.map(|held| held.by_shard.token);
                let for_model = held.map(|held| held.by_model.token);
                return Some((
                    Command::Remove { row: known.for_shard(), token: for_shard },
                    Command::Remove { row: known.for_model(), token: for_model },
                ));
            }
            Ask::Hasten(row) => {
                let known = self.known(row)?;
                return Some((Command::Hasten { row: known.for_shard() }, Command::Hasten { row: known.for_model() }));
            }
            Ask::Take { row, lease, consumer } => {
                let known = self.known(row)?;
                let take = |row: RowId| {
                    let consumer = name(&format!("consumer-{consumer}"));
                    Command::Take(Box::new(Take { row, consumer, lease: lease.map(Millis) }))
                };
                return Some((take(known.for_shard()), take(known.for_model())));
            }
            Ask::Schedule { .. } => Command::Schedule(Box::new(self.schedule(ask, number))),
            Ask::Cancel(which) => {
                let (topic, id) = self.task(*which);
                Command::Cancel { topic, id }
            }
            Ask::Reschedule { which, shift, priority, body, large } => {
                let (topic, id) = self.task(*which);
                let body = body.then(|| (form(number), content(number, *large)));
                let shift = shift.map(|moving| self.shift(moving));
                Command::Reschedule(Box::new(Reschedule { topic, id, shift, priority: *priority, body }))
            }
            Ask::Revoke { which, queue, holder, after } => Command::Revoke(Box::new(Revoke {
                selected: self.selected(*which, *queue),
                holder: holder.map(|index| name(&format!("consumer-{index}"))),
                back: after.map_or(Back::Retry, |after| Back::After(Millis(after))),
                note: None,
            })),
            Ask::Replay { which, queue } => Command::Replay(self.selected(*which, *queue)),
            Ask::Restore(which) => {
                let (topic, id) = self.task(*which);
                Command::Restore { topic, id }
            }
            Ask::Purge { which, queue } => Command::Purge(self.selected(*which, *queue)),
            Ask::Forget { which, as_finished } => {
                let (topic, id) = self.task(*which);
                let finished = self.model.find(&Key::task(&topic, &id)).map(|number| self.model.rows[&number].at);
                let finished_at = finished.filter(|_| *as_finished).unwrap_or(self.now);
                Command::Forget { topic, id, finished_at }
            }
            Ask::PutTopic { topic: index, feeds, own, history, ttl, nth } => {
                let binding = |(index, fit): &(u8, u8)| Binding { queue: queue(*index), pattern: pattern(*fit) };
                let settings = TopicSettings {
                    feeds: (!own).then(|| feeds.iter().map(binding).collect()),
                    history: Millis(*history),
                    ttl: ttl.map(Millis),
                    ..TopicSettings::default()
                };
                let (name, settings) = (topic(*index), Box::new(settings));
                match nth.filter(|_| settings.check().is_ok()) {
                    Some(nth) => self.adopt(nth, Adjustment::PutTopic { name, settings }),
                    None => Command::PutTopic { name, settings },
                }
            }
            Ask::PutQueue { .. } => self.put_queue(ask),
            Ask::PauseTopic(index, paused) => Command::PauseTopic { name: topic(*index), paused: *paused },
            Ask::PauseQueue(index, until) => {
                Command::PauseQueue { name: queue(*index), until: until.map(|until| self.now.plus(Millis(until))) }
            }
            Ask::Topics(which) => Command::Topics(chosen(which)),
            Ask::Queues(which) => Command::Queues(chosen(which)),
            Ask::Total => Command::Total,
            Ask::First(index) => Command::First { queue: queue(*index) },
            Ask::Forecast(unit) => {
                let unit = [Unit::Minute, Unit::Hour, Unit::Day, Unit::Week, Unit::Month][usize::from(*unit)];
                Command::Forecast { unit, slots: 5 }
            }
            Ask::DeleteTopic(index, force) => Command::DeleteTopic { name: topic(*index), force: *force },
            Ask::DeleteQueue(index, force) => Command::DeleteQueue { name: queue(*index), force: *force },
            Ask::CancelKey { .. } | Ask::ShiftKey { .. } | Ask::SweepDead { .. } | Ask::ReplayHistory { .. } => {
                Command::Sweep(Box::new(self.sweep(ask)))
            }
            Ask::Preview { .. } => Command::Preview(Box::new(self.sweep(ask))),
        };
        Some((command.clone(), command))
    }

    fn shift(&self, moving: Moving) -> Shift {
        match moving {
            Moving::To(millis) => Shift::To(Timestamp::from_millis(FIXED + millis)),
            // What lies at the end of time stays in the store.
            Moving::In(millis) if self.room == Room::Plain => Shift::In(Millis(millis.min(1 << 40))),
            Moving::In(millis) => Shift::In(Millis(millis)),
            Moving::By(millis) => Shift::By(millis),
        }
    }

    /// A row that both sides have spoken of.
    fn known(&self, row: &plan::Known) -> Option<Known> {
        let is_there = |known: &&Known| self.model.find(&known.key) == Some(known.by_model);
        let is_plain = |known: &&Known| {
            let found = self.model.rows.get(&known.by_model);
            self.room != Room::Plain || found.is_none_or(|found| found.table == Table::Live)
        };
        let fitting = self.numbers.all().filter(is_plain).filter(|known| !row.is_there || is_there(known));
        let fitting: Vec<&Known> = fitting.collect();
        (!fitting.is_empty()).then(|| (*row.index.get(&fitting)).clone())
    }

    /// High ids mean forwarded dead letters, if there are any.
    fn task(&self, which: Which) -> (Name, Name) {
        match usize::from(which.id).checked_sub(6) {
            Some(index) if index < self.forwarded.len() => self.forwarded[index].clone(),
            _ => (topic(which.topic), name(&format!("{}", which.id % 6))),
        }
    }

    fn selected(&self, which: Which, index: Option<u8>) -> Selected {
        let (topic, id) = self.task(which);
        Selected { topic, id, queue: index.map(queue) }
    }

    fn schedule(&self, ask: &Ask, number: u64) -> Schedule {
        let Ask::Schedule {
            which,
            id_is_new,
            when,
            key: group,
            priority,
            ttl,
            attempts,
            wait,
            lease,
            max_lease,
            routing: fit,
            replace,
            large,
        } = ask
        else {
            unreachable!("only tasks are scheduled")
        };
        let (topic, id) = self.task(*which);
        let id = if *id_is_new { name(&format!("new-{number}")) } else { id };
        let mut task = Task::new(topic, content(number, *large)).form(form(number));
        task.headers = if number.is_multiple_of(3) { vec![("number".into(), number.to_string())] } else { vec![] };
        task.routing_key = routing(*fit);
        task.when = match self.shift(*when) {
            Shift::To(at) => When::At(at),
            Shift::In(delay) => When::After(delay),
            Shift::By(by) => When::At(self.now.shifted(by)),
        };
        task.key = group.map(key);
        task.priority = *priority;
        task.ttl = ttl.map(Millis).filter(|_| self.room != Room::Plain);
        task.lease = lease.map(Millis);
        task.max_lease = max_lease.map(Millis);
        task.retry = attempts.map(|attempts| steady(attempts, *wait));
        task.replace = *replace;
        Schedule { task, id, id_is_new: *id_is_new }
    }

    fn put_queue(&self, ask: &Ask) -> Command {
        let Ask::PutQueue {
            queue: index,
            lease,
            max_lease,
            attempts,
            wait,
            max_length,
            dead_letter,
            dead_retention,
            by_arrival,
            nth,
        } = ask
        else {
            unreachable!("only queues are put")
        };
        let max_length = max_length.filter(|_| self.room.lets_queues_be_full());
        let settings = QueueSettings {
            lease: Millis(*lease),
            max_lease: max_lease.map_or(DEFAULT_MAX_LEASE, |more| Millis(lease + more)),
            retry: steady(*attempts, *wait),
            max_length: max_length.map(|(max, _)| max),
            overflow: if max_length.is_some_and(|(_, drop)| drop) { Overflow::DropOldest } else { Overflow::Refuse },
            dead_letter: dead_letter.map(topic),
            dead_retention: dead_retention.map(Millis),
            order: if *by_arrival { Order::Arrival } else { Order::Due },
            ..QueueSettings::default()
        };
        let (name, settings) = (queue(*index), Box::new(settings));
        match nth.filter(|_| settings.check().is_ok()) {
            Some(nth) => self.adopt(nth, Adjustment::PutQueue { name, settings }),
            None => Command::PutQueue { name, settings },
        }
    }

    /// A change of settings as all shards make it: with a number of before, the latest one or the next.
    fn adopt(&self, nth: u8, adjustment: Adjustment) -> Command {
        let number = (self.model.adopted + u64::from(nth)).saturating_sub(1);
        Command::Adopt(Box::new(Adopt { number, adjustment, to_its_end: false }))
    }

    fn sweep(&self, ask: &Ask) -> Sweep {
        let last = |millis: u64| TimeRange { from: self.now.minus(Millis(millis)), until: Timestamp::NEVER };
        match ask {
            Ask::CancelKey { key: group, topic: of, without, dry_run } => Sweep {
                within: all_but(*without),
                matching: Matching::Key { key: key(*group), topic: of.map(topic) },
                action: SweepAction::Cancel,
                dry_run: *dry_run,
            },
            Ask::ShiftKey { key: group, topic: of, without, by, dry_run } => Sweep {
                within: all_but(*without),
                matching: Matching::Key { key: key(*group), topic: of.map(topic) },
                action: SweepAction::Shift(self.shift(*by)),
                dry_run: *dry_run,
            },
            Ask::SweepDead { topic: of, without, queue: within, last: millis, purge, dry_run } => Sweep {
                within: all_but(*without),
                matching: Matching::Dead { topic: of.map(topic), queue: within.map(queue), died: last(*millis) },
                action: if *purge { SweepAction::Purge } else { SweepAction::Replay },
                dry_run: *dry_run,
            },
            Ask::ReplayHistory { topic: of, last: millis, cancelled, dry_run } => Sweep {
                within: Scope::ALL,
                matching: Matching::History {
                    topic: topic(*of),
                    finished: last(*millis),
                    ending: cancelled.map(|is| if is { Ending::Cancelled } else { Ending::Done }),
                },
                action: SweepAction::Replay,
                dry_run: *dry_run,
            },
            Ask::Preview { among, topic: of, without, key: group, around: millis } => {
                let (among, action) = match among {
                    0 => (Among::Live, SweepAction::Cancel),
                    1 => (Among::Scheduled, SweepAction::Cancel),
                    2 => (Among::Ready, SweepAction::Cancel),
                    3 => (Among::Dead { reason: None, note: None, note_prefix: None }, SweepAction::Replay),
                    _ => (Among::History { ending: None }, SweepAction::Replay),
                };
                let around = |millis| TimeRange { until: self.now.plus(Millis(millis)), ..last(millis) };
                let time = millis.map_or(TimeRange::ALL, around);
                let (topic, key) = (of.map(topic), group.map(key));
                let matching = Matching::Tasks(Box::new(Select { among, topic, key, queue: None, time, ids: None }));
                Sweep { within: all_but(*without), matching, action, dry_run: true }
            }
            _ => unreachable!("only sweeps sweep"),
        }
    }
}

impl Ask {
    /// Whether what it leads to may have to be read before it can be handed out: the bodies of
    /// tasks that were broadcast, dead and finished ones, and what is behind one that has expired.
    fn is_intricate(&self) -> bool {
        let replays = matches!(self, Ask::Replay { .. } | Ask::SweepDead { .. } | Ask::ReplayHistory { .. });
        replays || matches!(self, Ask::Restore(_) | Ask::PutTopic { .. })
    }
}

fn chosen(look: &Look) -> Chosen {
    match look {
        Look::Named(index) => Chosen::Named(vec![queue(*index)]),
        Look::After(after, limit) => Chosen::After { name: after.map(queue), limit: *limit },
    }
}

fn form(number: u64) -> Form {
    [Form::Bytes, Form::Text, Form::Json][number as usize % 3]
}

/// A body that tells its request from all others.
fn content(number: u64, large: bool) -> Bytes {
    let mut text = format!("body {number}");
    if large {
        text.push_str(&"!".repeat(BODY_LIMIT));
    }
    text.into()
}
