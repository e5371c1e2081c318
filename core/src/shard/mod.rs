//! The shard: everything that decides what happens to a task, and nothing else.
//!
//! A shard is a pure state machine. Time, requests and rows come in; changes, answers and a
//! wake-up time go out. No clock, thread, file or socket is in here, so every race is a matter
//! of order in one place, and a simulation can run years of faults in seconds.

mod admin;
mod adopt;
mod ahead;
mod back;
mod broadcast;
mod catalogue;
mod closing;
mod counts;
mod course;
mod cramped;
mod demand;
mod desk;
mod destination;
mod directory;
mod draft;
mod draw;
mod ending;
mod enqueue;
mod entries;
mod fire;
mod flight;
mod forecast;
mod forward;
mod held;
mod job;
mod late;
mod lease;
mod marks;
mod mend;
mod meta;
mod needs;
mod note;
mod numbered;
mod open;
mod positions;
mod prepare;
mod ready;
mod replay;
mod retention;
mod schedule;
mod serve;
mod standing;
mod step;
mod stock;
mod stretch;
mod sweep;
mod sweeping;
mod timers;

pub use counts::{Counts, QueueCounts, QueueView, TopicCounts, TopicView, Total, counted_in};
pub use forward::Forward;
pub(crate) use forward::HEADER_PREFIX;
pub use mend::Mended;
pub use needs::{Fetched, Needs};
pub use note::Note;
pub use open::{OpenError, StoredSettings, noted_shards, settings_of};
pub use sweeping::uncounted;

use crate::adjustment::Subject;
use crate::answer::{Answer, Refused, Reply};
use crate::command::Command;
use crate::division::Eras;
use crate::event::Event;
use crate::name::Name;
use crate::settings::Rate;
use crate::store::{Batch, Key, ShardId, Tenure};
use crate::task::Limits;
use crate::time::{Millis, Timestamp};
use catalogue::Catalogue;
use cramped::Shortage;
use desk::Desk;
use directory::Directory;
use draft::Draft;
use draw::Buckets;
use flight::Flight;
use forecast::Forecast;
use job::Job;
use meta::Numbers;
use prepare::Agenda;
use retention::Retained;
use stock::Stock;
use sweeping::Sweeps;
use timers::Timers;

/// How a shard works.
#[derive(Clone, Debug)]
pub struct ShardConfig {
    /// Into how many shards the tasks are divided, of which this is one. It is noted when the shard
    /// is opened for the first time, and cannot change after that but by dividing the shard.
    pub shards: u16,
    /// Into how many they were divided before.
    pub eras: Eras,
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
    /// By how much the time at which a request was read, which is not less than the true one, may be ahead of the time of
    /// the step that follows, which is not more: as well as the node knows its clock. A request from before the clock was
    /// set back counts as read so much later than the step.
    pub clock_width: Millis,
    /// Decides the jitter of retries and the order in hash tables; differs from shard to shard.
    pub seed: u64,
}

impl Default for ShardConfig {
    fn default() -> ShardConfig {
        ShardConfig {
            shards: 1,
            eras: Eras::default(),
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
            clock_width: Millis(1),
            seed: 0,
        }
    }
}

/// A command, and what the caller needs to answer it.
#[derive(Debug)]
pub struct Request<R> {
    /// What to do.
    pub command: Command,
    /// Under which name somebody asks for it; nobody is named where no names are given. Events tell it.
    pub by: Option<Name>,
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
/// fails, the shard's memory is not to be trusted: drop it and open it again. If it was a read, those who asked for something
/// in the step can be told for sure ([`call_off`](Shard::call_off)).
#[derive(Debug)]
pub struct Shard<R> {
    config: ShardConfig,
    /// The shard's time: the last it has been told.
    now: Timestamp,
    /// What has left and is not durable yet.
    flight: Flight,
    numbers: Numbers,
    /// Rows of settings.
    catalogue: Catalogue,
    /// Topics and queues.
    directory: Directory,
    /// Rows that are in memory.
    desk: Desk,
    timers: Timers,
    /// What queues have to give, for the board.
    stock: Stock,
    forecast: Forecast,
    /// What is finished or dead, and for how long.
    retained: Retained,
    /// What waits for room in the store.
    shortage: Shortage,
    /// Of rates that several nodes keep.
    buckets: Buckets,
    jobs: Vec<Job<R>>,
    /// Those that go on by themselves, and the latest that did.
    sweeps: Sweeps,
    /// The step that is being prepared.
    agenda: Agenda<R>,
    /// What the step says so far.
    draft: Draft<R>,
}

impl<R> Shard<R> {
    /// The shard's id.
    pub fn id(&self) -> ShardId {
        self.flight.shard()
    }

    /// How the shard is held, and how far it is known to be durable: what reads for it are made under.
    pub fn tenure(&self) -> Tenure {
        self.flight.tenure()
    }

    /// The shard's time: the last it has been told.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The step is durable, and so are all before it.
    pub fn committed(&mut self, step: u64) {
        self.flight.committed(step);
        self.desk.committed(step, self.timers.horizon());
    }

    /// Carries out one request and answers it, unless the answer takes several steps.
    fn handle(&mut self, request: Request<R>) {
        let Request { command, reply, read_at, .. } = request;
        // It was read before this step began, whatever a clock said that has been set back since.
        let from = read_at.min(self.now.plus(self.config.clock_width));
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
            Command::Restore { topic, id } => self.restore(&Key::task(&topic, &id)),
            Command::Purge(selected) => self.purge_one(&selected.key()),
            Command::Forget { topic, id, finished_at } => self.forget_finished(&Key::task(&topic, &id), finished_at),
            Command::Sweep(sweep) => return self.start_sweep(*sweep, reply, from),
            Command::Preview(sweep) => return self.start_preview(*sweep, reply),
            Command::BeginSweep(sweep) => self.begin_sweep(*sweep),
            Command::StopSweep { number } => self.stop_sweep(number),
            Command::Sweeps => Ok(Answer::Sweeps(self.sweeps.progress())),
            Command::PutTopic { name, settings } => self.put_topic(&name, *settings),
            Command::PutQueue { name, settings } => self.put_queue(&name, *settings),
            Command::PauseTopic { name, paused } => self.pause_topic(&name, paused),
            Command::PauseQueue { name, until } => self.pause_queue(&name, until),
            Command::DeleteTopic { name, force } => return self.delete(&Subject::Topic(name), force, reply),
            Command::DeleteQueue { name, force } => return self.delete(&Subject::Queue(name), force, reply),
            Command::Adopt(adopt) => return self.adopt(*adopt, reply),
            Command::Forwarded { key, journey, refused } => self.forwarded(&key, journey, refused),
            Command::Topics(chosen) => Ok(Answer::Topics(self.look_at_counts(|shard| shard.view_topics(&chosen)))),
            Command::Queues(chosen) => Ok(Answer::Queues(self.look_at_counts(|shard| shard.view_queues(&chosen)))),
            Command::Total => Ok(Answer::Total(self.look_at_counts(Shard::total))),
            Command::Draw { from, tokens } => Ok(Answer::Drawn(self.draw(&from, tokens))),
            Command::First { queue } => Ok(Answer::First(self.first_in(&queue))),
            // It is answered when all is counted that it should show.
            Command::Forecast { .. } if self.forecast.is_behind(self.now) => {
                return self.agenda.requests.push(Request { command, by: None, reply, read_at });
            }
            Command::Forecast { unit, slots } => {
                let view = |shard: &Shard<R>| shard.forecast.view(shard.now, unit, slots);
                Ok(Answer::Forecast(self.look_at_counts(view)))
            }
            Command::Line(line) => Ok(Answer::Line(self.look_at_counts(|shard| shard.line(&line)))),
            Command::Leases(leases) => Ok(Answer::Line(self.look_at_counts(|shard| shard.leases(&leases)))),
            Command::Holders { queue, within } => {
                Ok(Answer::Holders(self.look_at_counts(|shard| shard.holders(queue.as_ref(), &within))))
            }
        };
        self.draft.answer(reply, answer);
    }
}
