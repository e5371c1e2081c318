//! The shard: everything that decides what happens to a task, and nothing else.
//!
//! A shard is a pure state machine. Time, requests and rows come in; changes, answers and a
//! wake-up time go out. No clock, thread, file or socket is in here, so every race is a matter
//! of order in one place, and a simulation can run years of faults in seconds.

mod admin;
mod ahead;
mod back;
mod broadcast;
mod closing;
mod counts;
mod cramped;
mod demand;
mod desk;
mod destination;
mod directory;
mod ending;
mod enqueue;
mod entries;
mod fire;
mod forecast;
mod forward;
mod handed;
mod job;
mod late;
mod lease;
mod mend;
mod meta;
mod needs;
mod numbered;
mod open;
mod page;
mod positions;
mod prepare;
mod ready;
mod replay;
mod retention;
mod schedule;
mod serve;
mod standing;
mod step;
mod sweep;
mod timers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use punctual_wheel::Wheel;

pub use counts::{Counts, QueueCounts, QueueView, TopicCounts, TopicView, Total};
pub use forecast::Unit;
pub use forward::Forward;
pub(crate) use forward::HEADER_PREFIX;
pub use mend::Mended;
pub use needs::{Fetched, Needs};
pub use open::{OpenError, StoredSettings, settings_of};

use crate::answer::{Answer, Refused, Reply};
use crate::command::Command;
use crate::event::{Event, What};
use crate::name::Name;
use crate::settings::Rate;
use crate::store::{Batch, Fence, Key, Position, Room, ShardId};
use crate::task::Limits;
use crate::time::{Millis, Timestamp};
use desk::{Desk, Slot};
use directory::Directory;
use enqueue::Doomed;
use forecast::Forecast;
use handed::HandOvers;
use job::Job;
use late::Late;
use meta::Numbers;
use prepare::Pending;
use retention::Retention;
use timers::Timer;

/// How a shard works.
#[derive(Clone, Debug)]
pub struct ShardConfig {
    /// Into how many shards the tasks are divided, of which this is one. It is noted when the shard
    /// is opened for the first time, and cannot change after that.
    pub shards: u16,
    /// Limits on what is scheduled.
    pub limits: Limits,
    /// Whether topics and queues come to be by being used.
    pub create_on_use: bool,
    /// Whether finished tasks stay in the history until somebody says [`Command::Forget`], however long
    /// that takes: the periods of the topics are left to whoever says it.
    pub keeps_history: bool,
    /// How far ahead of their time rows are taken into memory.
    pub window: Millis,
    /// How many rows are read ahead at once.
    pub slice: usize,
    /// How many timers may be in memory before reading ahead pauses.
    pub timers: usize,
    /// How many timers may fire in one step.
    pub fires: usize,
    /// How many deliveries may be handed out in one step.
    pub hand_outs: usize,
    /// How many bytes of bodies one consumer gets at once, as they are written; a longer one comes alone.
    pub answer_bytes: usize,
    /// How many bytes of bodies are read in one step, more or less, for what is to be handed out.
    pub read_bytes: usize,
    /// How many bytes of rows may be kept in memory that need not be.
    pub cache: usize,
    /// Decides the jitter of retries and the order in hash tables; differs from shard to shard.
    pub seed: u64,
}

impl Default for ShardConfig {
    fn default() -> ShardConfig {
        ShardConfig {
            shards: 1,
            limits: Limits::default(),
            create_on_use: true,
            keeps_history: false,
            window: Millis::from_secs(60),
            slice: 1_024,
            timers: 1 << 18,
            fires: 1_024,
            hand_outs: 1_024,
            answer_bytes: 8 << 20,
            read_bytes: 16 << 20,
            cache: 64 << 20,
            seed: 0,
        }
    }
}

/// A command, and what the caller needs to answer it.
#[derive(Debug)]
pub struct Request<R> {
    /// What to do.
    pub command: Command,
    /// Comes back with the answer.
    pub reply: R,
    /// When it was read, rounded up to whole milliseconds: lengths of time that it names begin here.
    pub read_at: Timestamp,
}

/// What comes out of a step. Nothing of it may be seen by anybody before the batch, and all
/// batches before it, are durable.
#[derive(Debug)]
pub struct Output<R> {
    /// The number of the step.
    pub step: u64,
    /// What to commit; `None` if nothing changed and nothing is said that depends on owning the shard.
    pub batch: Option<Batch>,
    /// Answers to requests and to waiting consumers.
    pub answers: Vec<(R, Reply)>,
    /// Dead letters to schedule in another topic. Each is told to the shard with
    /// [`Command::Forwarded`] afterwards, or comes out again.
    pub forwards: Vec<Forward>,
    /// Topics whose entrance is limited to another rate from now on.
    pub rates: Vec<(Name, Option<Rate>)>,
    /// What happened, in order.
    pub events: Vec<Event>,
    /// Topics that are gone from this shard.
    pub gone: Vec<Name>,
    /// Queues that are gone from this shard.
    pub gone_queues: Vec<Name>,
    /// Deliveries that became available to consumers: in which queue, and since when they should have been. What
    /// was available when the shard was opened should be since then.
    pub offers: Vec<(Name, Timestamp)>,
    /// Deliveries that were handed out: from which queue, and since when they were available.
    pub takes: Vec<(Name, Timestamp)>,
    /// Counts that turned out to be wrong since the last step, or when the shard was opened, and are right now.
    pub mended: Vec<Mended>,
    /// When the next step is due, if no request comes before; not later than now if there is more to do.
    pub wake: Timestamp,
}

/// One shard.
///
/// **Calling order**: [`Shard::open`], then steps. A step is
/// 1. [`prepare`](Shard::prepare) with the time, the requests and the board: says what to read;
/// 2. as long as something is to be read, [`supply`](Shard::supply) it;
/// 3. [`apply`](Shard::apply), told when what it hands over will reach its consumer: everything happens, at one instant;
/// 4. [`serve`](Shard::serve): waiting consumers get what is ready;
/// 5. [`finish`](Shard::finish): gives the output.
///
/// [`step`](Shard::step) does all five. When an output's batch is durable, tell
/// [`committed`](Shard::committed), and before it [`handed_over`](Shard::handed_over) if deliveries leave later than
/// `apply` was told; further steps need not wait for that. If a read or a commit
/// fails, the shard's memory is not to be trusted: drop it and open it again.
#[derive(Debug)]
pub struct Shard<R> {
    id: ShardId,
    fence: Fence,
    config: ShardConfig,
    now: Timestamp,
    /// From when leases that are given in this step count.
    hand_over_at: Timestamp,
    handed: HandOvers,
    opened_at: Timestamp,
    /// Something may be overdue that was not read yet.
    is_catching_up: bool,
    step: u64,
    /// Steps whose batches are not durable yet, with their times.
    in_flight: VecDeque<(u64, Timestamp)>,
    numbers: Numbers,
    directory: Directory,
    desk: Desk,
    /// Rows to wake. Together with `late` it holds every live row that stands before the horizon and has not fired.
    wheel: Wheel<Timer>,
    /// Rows to wake whose time has come.
    late: Late,
    horizon: Position,
    /// No row that is only in the store stands between the horizon and here.
    next_far: Timestamp,
    /// Ready deliveries that may become too old, by when.
    expiries: BTreeSet<(Timestamp, Position)>,
    /// Deliveries to be given up for which the store has to be asked first.
    doomed: Vec<Doomed>,
    /// Queues with deliveries ready, paused or not.
    stocked: BTreeSet<Name>,
    /// What of that the board has yet to be told.
    restocked: BTreeSet<Name>,
    /// Queues whose rate the board has yet to be told.
    limited: BTreeMap<Name, Option<Rate>>,
    /// Queues that were deleted, which the board has yet to be told.
    forgotten: BTreeSet<Name>,
    /// Queues that are paused until a time.
    pauses: BTreeSet<(Timestamp, Name)>,
    forecast: Forecast,
    /// How far minutes are counted according to the store.
    noted_horizon: Position,
    history: Retention,
    dead: Retention,
    room: Room,
    /// Rows whose time has come and that wait for room.
    held_up: Vec<(directory::TopicIndex, Position)>,
    /// When the next delivery that is too old is given up, while there is no room.
    next_expiry: Timestamp,
    jobs: Vec<Job<R>>,
    /// Counts that turned out to be wrong, and how many of them were told.
    mended: Vec<Mended>,
    told_mended: usize,
    pending: Pending<R>,
    /// Requests that can be answered in the next step only.
    postponed: Vec<Request<R>>,
    answers: Vec<(R, Reply)>,
    forwards: Vec<Forward>,
    rates: Vec<(Name, Option<Rate>)>,
    events: Vec<Event>,
    gone: Vec<Name>,
    gone_queues: Vec<Name>,
    /// While a timer fires: when it should have.
    firing: Option<Timestamp>,
    offers: Vec<(Name, Timestamp)>,
    takes: Vec<(Name, Timestamp)>,
    /// Settings that changed in this step: how they stand now, `None` if they are gone.
    settings: BTreeMap<Key, Option<Bytes>>,
    /// The numbers of the rows under which settings are stored.
    stored_settings: BTreeMap<Key, u64>,
    /// Topics and queues to take out of the directory at the end of this step.
    closed: BTreeSet<Closed>,
    /// When a queue's rate lets the next delivery out.
    rate_wake: Timestamp,
    /// Queues that have more for those who wait than the last step could give: it was not in memory, or it would have
    /// been too much for one step. The next step follows at once.
    giving: BTreeSet<Name>,
    /// How many rows were cleared away in this step on the way to what is handed out.
    cleared_for_consumers: usize,
}

/// A topic or queue that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Closed {
    Topic(directory::TopicIndex),
    Queue(directory::QueueIndex),
}

impl<R> Shard<R> {
    /// The shard's id.
    pub fn id(&self) -> ShardId {
        self.id
    }

    /// The shard's time: the last it has been told.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The step is durable, and so are all before it.
    pub fn committed(&mut self, step: u64) {
        while self.in_flight.front().is_some_and(|(first, _)| *first <= step) {
            self.in_flight.pop_front();
        }
        self.handed.committed(step);
        self.desk.committed(step, self.horizon);
    }

    /// Notes what happens to a row. It is called before the row leaves its ready set, or when its state
    /// says which queue it is in.
    fn note(&mut self, slot: Slot, what: What) {
        let row = &self.desk[slot];
        let queue = match row.ready_in {
            Some(index) => Some(&self.directory.queue(index).name),
            None => row.state.queue.as_ref(),
        };
        let (queue, task, key) = (queue.cloned(), row.key.clone(), row.group.clone());
        self.events.push(Event { at: self.now, task, queue, key, what });
    }

    /// Carries out one request and notes its answer, unless the answer takes several steps.
    fn handle(&mut self, request: Request<R>) {
        let Request { command, reply, read_at } = request;
        // It was read before this step began, whatever a clock said that has been set back since.
        let from = read_at.min(self.now.plus(Millis(1)));
        self.clear_up_before(&command);
        let answer: Result<Answer, Refused> = match command {
            Command::Schedule(schedule) => self.schedule(*schedule, from).map(Answer::Scheduled),
            Command::Cancel { topic, id } => Ok(Answer::Cancelled(self.cancel(&Key::task(&topic, &id)))),
            Command::Reschedule(reschedule) => self.reschedule(*reschedule, from).map(Answer::Rescheduled),
            Command::Acknowledge(lease) => self.acknowledge(&lease),
            Command::Release { lease, back, priority, note } => self.release(&lease, back, priority, note, from),
            Command::Reject { lease, note, priority } => self.reject(&lease, note, priority),
            Command::Extend { lease, by } => self.extend(&lease, by),
            Command::Revoke(revoke) => self.revoke(*revoke, from),
            Command::Remove { row, token } => self.remove(&row, token),
            Command::Hasten { row } => self.hasten(&row),
            Command::Take(take) => self.take(&take),
            Command::Replay(selected) => self.replay_one(&selected.key()),
            Command::Purge(selected) => self.purge_one(&selected.key()),
            Command::Forget { topic, id, finished_at } => self.forget_finished(&Key::task(&topic, &id), finished_at),
            Command::Sweep(sweep) => return self.start_sweep(*sweep, reply, from),
            Command::PutTopic { name, settings } => self.put_topic(&name, *settings),
            Command::PutQueue { name, settings } => self.put_queue(&name, *settings),
            Command::PauseTopic { name, paused } => self.pause_topic(&name, paused),
            Command::PauseQueue { name, until } => self.pause_queue(&name, until),
            Command::DeleteTopic { name, force } => return self.delete_topic(&name, force, reply),
            Command::DeleteQueue { name, force } => return self.delete_queue(&name, force, reply),
            Command::Forwarded { key, journey, refused } => self.forwarded(&key, journey, refused),
            Command::Topics(chosen) => Ok(Answer::Topics(self.look_at_counts(|shard| shard.view_topics(&chosen)))),
            Command::Queues(chosen) => Ok(Answer::Queues(self.look_at_counts(|shard| shard.view_queues(&chosen)))),
            Command::Total => Ok(Answer::Total(self.look_at_counts(Shard::total))),
            Command::First { queue } => Ok(Answer::First(self.first_in(&queue))),
            // It is answered when all is counted that it should show.
            Command::Forecast { .. } if self.forecast.is_behind(self.now) => {
                return self.postponed.push(Request { command, reply, read_at });
            }
            Command::Forecast { unit, slots } => {
                let view = |shard: &Shard<R>| shard.forecast.view(shard.now, unit, slots);
                Ok(Answer::Forecast(self.look_at_counts(view)))
            }
        };
        self.answers.push((reply, answer));
    }
}
