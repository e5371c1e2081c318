//! A whole delay center on one thread, with a clock that stands still until it is told to move.
#![allow(dead_code, reason = "each test file uses its own part of it")]
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::store::{
    Batch, Bodies, Change, Claim, Fence, Incarnation, Key, Look, Place, Position, ShardId, Store, Tally, Tenure,
};
use punctual_core::view::{Kept, Listing, TaskView, Wanted};
use punctual_core::{
    Answer, Board, Choice, Clock, Command, Delivery, Event, Forward, Lease, Millis, Name, Past, QueueSettings, Reply,
    Request, Reserve, Ruling, Schedule, Scheduled, Scope, Selected, Shard, ShardConfig, Sieve, Standing, Task,
    Timestamp, TopicSettings, view,
};
use punctual_memory::MemoryStore;

pub const SHARD: ShardId = ShardId(0);
/// When every test begins.
pub const START: u64 = 1_000_000;

pub struct Center {
    pub store: Arc<MemoryStore>,
    pub shard: Shard<u64>,
    pub board: Board<u64>,
    pub config: ShardConfig,
    clock: Arc<ManualClock>,
    next_reply: u64,
    answers: Vec<(u64, Reply)>,
    pub forwards: Vec<Forward>,
    pub events: Vec<Event>,
    /// Who asks.
    pub by: Option<Name>,
}

struct ManualClock(AtomicU64);

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(START + millis)
}

/// A task of topic `t` with this id, due so many milliseconds from now, whose body is its id.
pub fn task(id: &str, delay: u64) -> Task {
    Task::new(name("t"), id.to_owned()).id(name(id)).after(Millis(delay))
}

impl Center {
    pub fn new() -> Center {
        Center::with(ShardConfig::default())
    }

    pub fn with(config: ShardConfig) -> Center {
        let clock = Arc::new(ManualClock(AtomicU64::new(START)));
        let store = Arc::new(MemoryStore::new(clock.clone()));
        Center::on(store, clock, config)
    }

    /// Another owner, who takes the shard from this one: the same store and the same clock, and a memory of its own.
    pub fn depose(&self) -> Center {
        Center::on(Arc::clone(&self.store), Arc::clone(&self.clock), self.config.clone())
    }

    fn on(store: Arc<MemoryStore>, clock: Arc<ManualClock>, config: ShardConfig) -> Center {
        let shard = open(&store, &config, clock.now());
        let board = Board::default();
        let mut center = Center {
            store,
            shard,
            board,
            config,
            clock,
            next_reply: 0,
            answers: Vec::new(),
            forwards: Vec::new(),
            events: Vec::new(),
            by: None,
        };
        center.settle();
        center
    }

    /// Forgets all that is in memory and opens the shard again.
    pub fn restart(&mut self) {
        self.open_again();
        self.settle();
    }

    /// The same, and no step was taken yet.
    pub fn open_again(&mut self) {
        self.shard = open(&self.store, &self.config, self.clock.now());
        self.board = Board::default();
        self.board.expect(SHARD);
    }

    /// The same, while the clock was set to this time.
    pub fn restart_at(&mut self, to: Timestamp) {
        self.clock.0.store(to.as_millis(), Ordering::Relaxed);
        self.restart();
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Lets time pass and everything happen that is due by then.
    pub fn pass(&mut self, millis: u64) {
        self.clock.0.fetch_add(millis, Ordering::Relaxed);
        self.settle();
    }

    /// Lets time pass without a step.
    pub fn tick(&mut self, millis: u64) {
        self.clock.0.fetch_add(millis, Ordering::Relaxed);
    }

    /// Sets the clock, which may be back.
    pub fn set_clock(&mut self, to: Timestamp) {
        self.clock.0.store(to.as_millis(), Ordering::Relaxed);
        self.settle();
    }

    /// Steps until there is nothing more to do at this time.
    pub fn settle(&mut self) {
        for _ in 0..10_000 {
            if self.step(Vec::new()) > self.shard.now() {
                return;
            }
        }
        panic!("the shard does not come to rest");
    }

    fn step(&mut self, requests: Vec<Request<u64>>) -> Timestamp {
        let output = self.shard.step(self.clock.now(), requests, &*self.store, &mut self.board).unwrap();
        for verdict in self.store.commit(output.batch.into_iter().collect()).unwrap() {
            verdict.unwrap();
        }
        self.shard.committed(output.step);
        self.answers.extend(output.answers);
        self.forwards.extend(output.forwards);
        self.events.extend(output.events);
        output.wake
    }

    pub fn ask(&mut self, command: Command) -> Reply {
        self.next_reply += 1;
        let reply = self.next_reply;
        self.step(vec![Request { by: self.by.clone(), command, reply, read_at: self.clock.now() }]);
        self.settle();
        self.answer(reply).expect("it is answered")
    }

    /// Takes one step with a command; its answer comes under the number given back.
    pub fn begin(&mut self, command: Command) -> u64 {
        self.begin_all(vec![command])[0]
    }

    /// Takes one step with these commands; their answers come under the numbers given back.
    pub fn begin_all(&mut self, commands: Vec<Command>) -> Vec<u64> {
        let first = self.next_reply + 1;
        self.next_reply += commands.len() as u64;
        let requests = (first..).zip(commands).map(|(reply, command)| Request {
            by: self.by.clone(),
            command,
            reply,
            read_at: self.clock.now(),
        });
        let requests: Vec<Request<u64>> = requests.collect();
        let replies = requests.iter().map(|request| request.reply).collect();
        self.step(requests);
        replies
    }

    /// Takes one step; says when the next one is due.
    pub fn begin_wake(&mut self) -> Timestamp {
        self.step(vec![])
    }

    /// Removes a task from the store behind the shard's back, as no version should.
    pub fn lose_row(&mut self, topic: &str, id: &str) {
        let key = Key::task(&name(topic), &name(id));
        let row = self.store.get(SHARD, std::slice::from_ref(&key), Bodies::Without).unwrap().remove(0).unwrap();
        let place = Place { table: row.table, key, position: row.position(), group: row.group };
        self.write(vec![Change::Remove { place }], vec![]);
    }

    /// Writes into the store behind the shard's back, and lets the shard be opened anew.
    pub fn write(&mut self, changes: Vec<Change>, tallies: Vec<(Tally, i64)>) {
        let Tenure { fence, serial } = claim(&self.store);
        let batch = Batch { shard: SHARD, fence, serial: serial + 1, changes, tallies };
        let verdicts = self.store.commit(vec![batch]).unwrap();
        assert!(verdicts.iter().all(Result::is_ok));
        self.restart();
    }

    /// The dead letters of a queue.
    pub fn dead_in(&self, queue: &str) -> Vec<TaskView> {
        let listing = Listing::Kept(Kept { queue: Some(name(queue)), ..Kept::dead() });
        let wanted = Wanted {
            listing: &listing,
            within: &Scope::ALL,
            limit: 1_000,
            bodies: Bodies::Without,
            sieve: &Sieve::ALL,
        };
        view::list(&*self.store, SHARD, wanted, Position::START, self.now()).unwrap().tasks
    }

    /// The answer to an earlier request, if it has come.
    pub fn answer(&mut self, reply: u64) -> Option<Reply> {
        let index = self.answers.iter().position(|(known, _)| *known == reply)?;
        Some(self.answers.remove(index).1)
    }

    pub fn try_schedule(&mut self, mut task: Task) -> Reply {
        let id = task.id.take().expect("tests name their tasks");
        self.ask(Command::Schedule(Box::new(Schedule { task, id, id_is_new: false })))
    }

    pub fn schedule(&mut self, task: Task) -> Scheduled {
        match self.try_schedule(task) {
            Ok(Answer::Scheduled(scheduled)) => scheduled,
            other => panic!("{other:?}"),
        }
    }

    pub fn cancel(&mut self, id: &str) -> Ruling<()> {
        match self.ask(Command::Cancel { topic: name("t"), id: name(id) }) {
            Ok(Answer::Cancelled(ruling)) => ruling,
            other => panic!("{other:?}"),
        }
    }

    /// Puts a consumer on the board; its answer comes under the number given back.
    pub fn wait_for(&mut self, queues: &[&str], max: usize, millis: u64, consumer: &str) -> u64 {
        let reply = self.post(queues, max, millis, consumer, Choice::InTurn);
        self.settle();
        reply
    }

    /// Takes one step, whether or not there is more to do.
    pub fn step_once(&mut self) {
        self.step(Vec::new());
    }

    /// The ids that these queues have to give now, the foremost of all first; they are taken.
    pub fn take_foremost(&mut self, queues: &[&str], max: usize) -> Vec<String> {
        let reply = self.post(queues, max, 0, "consumer", Choice::Foremost);
        self.settle();
        let deliveries = self.given(reply).expect("who does not wait is answered");
        deliveries.into_iter().map(|delivery| delivery.id.to_string()).collect()
    }

    /// Puts a consumer on the board and takes no step.
    pub fn post_only(&mut self, queues: &[&str], max: usize, millis: u64) -> u64 {
        self.post(queues, max, millis, "consumer", Choice::InTurn)
    }

    fn post(&mut self, queues: &[&str], max: usize, millis: u64, consumer: &str, choice: Choice) -> u64 {
        self.next_reply += 1;
        let reserve = Reserve {
            queues: queues.iter().map(|queue| name(queue)).collect(),
            max,
            lease: None,
            until: self.now().plus(Millis(millis)),
            consumer: name(consumer),
            choice,
        };
        self.board.post(reserve, self.next_reply);
        self.next_reply
    }

    /// What a consumer that came earlier was given; `None` if it still waits.
    pub fn given(&mut self, reply: u64) -> Option<Vec<Delivery>> {
        match self.answer(reply)? {
            Ok(Answer::Reserved(deliveries)) => Some(deliveries),
            other => panic!("{other:?}"),
        }
    }

    /// What queue `t` has to give now.
    pub fn take(&mut self, max: usize) -> Vec<Delivery> {
        self.take_from("t", max)
    }

    pub fn take_from(&mut self, queue: &str, max: usize) -> Vec<Delivery> {
        let reply = self.wait_for(&[queue], max, 0, "consumer");
        self.given(reply).expect("who does not wait is answered")
    }

    pub fn take_one(&mut self) -> Delivery {
        self.take(1).pop().expect("something is ready")
    }

    /// The ids that queue `t` has to give now, in order; they are taken.
    pub fn take_ids(&mut self) -> Vec<String> {
        self.take(100).into_iter().map(|delivery| delivery.id.to_string()).collect()
    }

    pub fn acknowledge(&mut self, lease: &Lease) -> Reply {
        self.ask(Command::Acknowledge(lease.clone()))
    }

    pub fn put_queue(&mut self, queue: &str, settings: QueueSettings) {
        self.ask(Command::PutQueue { name: name(queue), settings: Box::new(settings) }).unwrap();
    }

    pub fn put_topic(&mut self, topic: &str, settings: TopicSettings) {
        self.ask(Command::PutTopic { name: name(topic), settings: Box::new(settings) }).unwrap();
    }

    /// Where a task of topic `t` stands according to the store.
    pub fn standing(&self, id: &str) -> Option<Standing> {
        view::get(&*self.store, SHARD, &name("t"), &name(id), self.now()).unwrap().map(|task| task.delivery.standing)
    }

    fn view(&self, id: &str) -> TaskView {
        view::get(&*self.store, SHARD, &name("t"), &name(id), self.now()).unwrap().expect("it is there")
    }

    /// What happened to a task of topic `t` before, according to the store.
    pub fn past(&self, id: &str) -> Past {
        self.view(id).delivery.past
    }

    /// The delay that a task of topic `t` was last given.
    pub fn delay(&self, id: &str) -> Millis {
        self.view(id).delivery.delay
    }

    /// Hands a task of topic `t` out again.
    pub fn replay(&mut self, id: &str) {
        let selected = Selected { topic: name("t"), id: name(id), queue: None };
        assert_eq!(self.ask(Command::Replay(selected)), Ok(Answer::Replayed(Standing::Ready { since: self.now() })));
    }

    /// Ready, leased and dead of a queue.
    pub fn queue_counts(&self, queue: &str) -> (u64, u64, u64) {
        let counts = self.shard.counts();
        let queue = counts.queues.iter().find(|known| known.name == name(queue)).expect("the queue is there");
        (queue.ready, queue.leased, queue.dead)
    }
}

/// Claims the shard, whoever has it.
pub fn claim(store: &MemoryStore) -> Tenure {
    let who = Incarnation { node: name("node"), number: 1 };
    let take = |seen| store.claim(&who, &[(SHARD, seen)]).unwrap()[0];
    let claim = match take(Fence::default()) {
        Claim::Outrun(current) => take(current),
        granted => granted,
    };
    let Claim::Granted(tenure) = claim else { panic!("nobody else wants the shard: {claim:?}") };
    tenure
}

fn open(store: &MemoryStore, config: &ShardConfig, now: Timestamp) -> Shard<u64> {
    Shard::open(SHARD, claim(store), config.clone(), now, store).unwrap()
}
