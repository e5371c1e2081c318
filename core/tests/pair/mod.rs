//! A shard and the model side by side: both get the same commands at the same times, and every
//! answer is compared as soon as it is there.

mod compare;
mod numbers;
pub mod plan;
mod translate;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use punctual_core::store::{Batch, Claim, Fence, Incarnation, ShardId, Store};
use punctual_core::{
    Board, Clock, Command, Forward, Lease, Limits, Millis, Name, Output, Reply, Request, Reserve, Shard, ShardConfig,
    Timestamp,
};
use punctual_memory::MemoryStore;

use crate::model::{Consumer, Model};
use numbers::Numbers;
use plan::{Act, Ask, Plan, Room};

pub const SHARD: ShardId = ShardId(0);

/// How many steps may follow one another without coming to rest.
const RESTLESS: usize = 2_000;

pub fn name(text: &str) -> Name {
    Name::new(text).expect("tests use good names")
}

/// The store looks at the clock only for leases on shards, which are not the matter here.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::ZERO
    }
}

/// A lease as both sides know it.
#[derive(Clone, Debug)]
pub struct Held {
    pub by_shard: Lease,
    pub by_model: Lease,
}

/// The output of a step that is not durable yet.
struct Flight {
    step: u64,
    now: Timestamp,
    batch: Option<Batch>,
    leases: Vec<Held>,
    /// When the first of its leases ends.
    leases_end: Timestamp,
    forwards: Vec<Forward>,
    /// The model, if what was asked for ends with this step.
    after: Option<Box<Model>>,
}

pub struct Pair {
    room: Room,
    /// How many outputs may be on their way to the store.
    lag: usize,
    config: ShardConfig,
    store: Arc<MemoryStore>,
    shard: Shard<u64>,
    board: Board<u64>,
    model: Model,
    /// The model as of what is durable, if that is the end of something.
    durable: Option<Box<Model>>,
    in_flight: VecDeque<Flight>,
    now: Timestamp,
    replies: u64,
    /// How many requests were translated: each has a body and maybe an id that tell it from all others.
    asked: u64,
    /// All leases that consumers got to know.
    leases: Vec<Held>,
    /// The numbers of rows.
    numbers: Numbers,
    /// Dead letters that wait to be carried to their topics.
    forwards: VecDeque<Forward>,
    /// The model's number for each journey of the shard's.
    journeys: BTreeMap<u64, u64>,
    /// The ids that forwarded dead letters got.
    forwarded: Vec<(Name, Name)>,
    /// When the shard wants to be woken.
    wake: Timestamp,
}

impl Pair {
    pub fn new(plan: &Plan) -> Pair {
        let now = Timestamp::from_millis(1_700_000_000_000 + plan.start);
        let config = plan.room.config();
        let store = Arc::new(MemoryStore::new(Arc::new(Still)));
        let shard = open(&store, &config, now);
        let model = Model::new(now, &config);
        Pair {
            room: plan.room,
            lag: plan.lag,
            config,
            store,
            shard,
            board: Board::default(),
            durable: Some(Box::new(model.clone())),
            model,
            in_flight: VecDeque::new(),
            now,
            replies: 0,
            asked: 0,
            leases: Vec::new(),
            numbers: Numbers::default(),
            forwards: VecDeque::new(),
            journeys: BTreeMap::new(),
            forwarded: Vec::new(),
            wake: now,
        }
    }

    pub fn act(&mut self, act: &Act) {
        match act {
            Act::Ask { after, asks, reserves } => {
                let commands = self.commands(asks);
                let now = self.now.plus(Millis(*after));
                if *after > 0 && !self.room.fires_at_once() {
                    self.pass(Millis(*after));
                }
                if self.room.lets_consumers_wait() {
                    self.jump(now, commands, reserves);
                } else {
                    self.jump(now, commands, &[]);
                    self.jump(now, vec![], reserves);
                }
            }
            Act::Alone(ask) => {
                let commands = self.commands(std::slice::from_ref(ask));
                self.jump(self.now, commands, &[]);
            }
            Act::Together(asks) => {
                // Sweeps come after everything else that happens in their step; so do consumers, and what has waited
                // for the end of a queue's deletion.
                // What goes both with a topic and with a queue counts for one of them, whichever comes first to it.
                let kind = asks.iter().find_map(Ask::deletes_topic);
                let sweeps_come_last = self.model.consumers.is_empty() && kind != Some(false);
                let sweeps = asks.iter().filter(|ask| ask.is_sweep() && sweeps_come_last);
                let is_apart = |ask: &&Ask| ask.deletes_topic().is_none() || ask.deletes_topic() == kind;
                // What a topic keeps of what its queue's deletion ends depends on when that comes to it.
                let is_early = |ask: &&Ask| kind != Some(false) || !matches!(ask, Ask::PutTopic { .. });
                let others = asks.iter().filter(|ask| !ask.is_sweep() && !ask.looks());
                let others = others.filter(is_apart).filter(is_early);
                let asks: Vec<Ask> = others.chain(sweeps).cloned().collect();
                let commands = self.commands(&asks);
                self.jump(self.now, commands, &[]);
            }
            Act::Jump(by) => self.pass(Millis(*by)),
            Act::Back(by) => self.go_back(Millis(*by)),
            Act::Walk(by) => self.walk(self.now.plus(Millis(*by))),
            Act::Carry(how) => self.carry(*how),
            Act::Commit => self.commit_all(),
            Act::Look => self.look(),
            Act::Reopen => self.reopen(),
            Act::Crash { keep } => self.crash(*keep),
        }
        self.tame();
    }

    /// Queues that came to be by themselves have retries with jitter, of which the model knows nothing.
    fn tame(&mut self) {
        let tamed = wild_queues(&self.model)
            .into_iter()
            .map(|name| translate::tame(&name))
            .map(|command| (command.clone(), command));
        let tamed: Vec<_> = tamed.collect();
        if !tamed.is_empty() {
            self.jump(self.now, tamed, &[]);
        }
    }

    /// Moves to a time at once and asks for something there.
    fn jump(&mut self, now: Timestamp, commands: Vec<(Command, Command)>, reserves: &[plan::Reserving]) {
        let moved = self.now != now;
        self.now = now;
        self.model.now = now;
        // Hand-overs take a while, now and then.
        self.model.hand_over_at = now.plus(Millis(self.replies % 3));
        self.model.wake();
        let mut expected: BTreeMap<u64, Reply> = BTreeMap::new();
        let mut requests = Vec::new();
        for (command, for_model) in commands {
            self.replies += 1;
            let read_at = self.read_at();
            requests.push(Request { by: None, command, reply: self.replies, read_at });
            expected.insert(self.replies, self.model.handle(for_model, read_at));
        }
        let polls = requests.is_empty() && !moved;
        for reserving in reserves {
            self.replies += 1;
            let reserve: Reserve = reserving.translate(self.now, self.room, polls);
            self.board.post(reserve.clone(), self.replies);
            self.model.consumers.push(Consumer { reserve, reply: self.replies });
        }
        self.model.settle();
        expected.append(&mut std::mem::take(&mut self.model.answers).into_iter().collect());
        // What is not durable yet cannot be forgotten, so nothing is on its way for longer than it is kept.
        let lag = if std::mem::take(&mut self.model.forgot) { 0 } else { self.lag };
        let briefest = self.model.briefest_keeping();
        // Nor for longer than a lease lasts, which has not begun before it is handed over.
        let is_old = |flight: &Flight| flight.now.plus(briefest) <= now || flight.leases_end <= now;
        self.commit_down_to(if self.in_flight.iter().any(is_old) { 0 } else { lag });

        let mut actual: BTreeMap<u64, Reply> = BTreeMap::new();
        let mut forwards = Vec::new();
        let mut events = Vec::new();
        let mut steps = 0;
        // Where a deletion is cut short it goes on by itself: then any step is the end of something.
        let goes_on = !requests.is_empty()
            && requests.iter().all(|request| matches!(request.command, Command::DeleteTopic { .. }));
        loop {
            let requests = std::mem::take(&mut requests);
            let output = self.step(requests);
            let leases = translate::leases(&output.answers, &expected);
            let leases_end = translate::first_end(&output.answers);
            actual.extend(output.answers);
            forwards.extend(output.forwards.iter().cloned());
            events.extend(output.events);
            self.in_flight.push_back(Flight {
                step: output.step,
                now: self.now,
                batch: output.batch,
                leases,
                leases_end,
                forwards: output.forwards,
                after: goes_on.then(|| Box::new(self.model.clone())),
            });
            self.wake = output.wake;
            steps += 1;
            assert!(steps < RESTLESS, "the shard does not come to rest");
            if output.wake > self.now {
                break;
            }
            self.commit_down_to(lag);
        }
        self.compare_answers(expected, actual);
        self.compare_forwards(forwards);
        self.compare_events(events);
        assert!(
            self.wake <= self.model.next_event(),
            "the shard wakes at {}, something happens at {}",
            self.wake,
            self.model.next_event()
        );
        let last = self.in_flight.back_mut().expect("a step was made");
        last.after = Some(Box::new(self.model.clone()));
        self.commit_down_to(self.lag);
    }

    /// A step of the shard, with what it hands over reaching its consumer when the model thinks so.
    fn step(&mut self, requests: Vec<Request<u64>>) -> Output<u64> {
        let mut needs = self.shard.prepare(self.now, requests, &self.board);
        while !needs.is_empty() {
            needs = self
                .shard
                .supply(needs.read(&*self.store, SHARD, self.shard.tenure()).expect("the memory store works"));
        }
        self.shard.apply(self.model.hand_over_at);
        self.shard.serve(&mut self.board, self.now);
        self.shard.finish()
    }

    /// When the next request was read: some have waited for their step, and some were read a fraction of a
    /// millisecond ago, which is rounded up.
    fn read_at(&self) -> Timestamp {
        match self.replies % 3 {
            0 => self.now,
            1 => self.now.plus(Millis(1)),
            _ => self.now.minus(Millis(2)),
        }
    }

    /// Lets time pass at once, but not while somebody waits who may be told that there is nothing in a step
    /// in which not everything has fired yet.
    fn pass(&mut self, length: Millis) {
        let until = self.now.plus(length);
        let last_deadline = self.model.consumers.iter().map(|consumer| consumer.reserve.until).max();
        if let Some(deadline) = last_deadline.filter(|_| !self.room.fires_at_once()) {
            self.walk(deadline.min(until));
        }
        self.jump(until, vec![], &[]);
        self.tame();
    }

    /// The clock was wrong, and is set back.
    fn go_back(&mut self, by: Millis) {
        let now = self.now.minus(by);
        if now < self.now {
            self.model.go_back(now);
            self.jump(now, vec![], &[]);
        }
    }

    /// Moves to a time from event to event, as a node does.
    fn walk(&mut self, until: Timestamp) {
        for times in 0.. {
            assert!(times < 20_000, "the shard wakes all the time, at {} again", self.wake);
            let deadlines = self.model.consumers.iter().map(|consumer| consumer.reserve.until);
            let next = deadlines.chain([self.model.next_event(), self.wake, until]).min().expect("there are several");
            self.jump(next.max(self.now), vec![], &[]);
            self.tame();
            if self.now >= until {
                return;
            }
        }
    }

    /// Carries dead letters to their topics, or says that they were refused.
    fn carry(&mut self, how: plan::Carrying) {
        for Forward { key, journey, task, id } in std::mem::take(&mut self.forwards) {
            if how != plan::Carrying::Refuse {
                let schedule = punctual_core::Schedule { task, id, id_is_new: false };
                let command = Command::Schedule(Box::new(schedule));
                self.jump(self.now, vec![(command.clone(), command)], &[]);
                self.tame();
            }
            if how != plan::Carrying::Forget {
                let refused = (how == plan::Carrying::Refuse).then(|| "no".to_owned());
                let word = |journey| Command::Forwarded { key: key.clone(), journey, refused: refused.clone() };
                let for_model = self.journeys[&journey];
                self.jump(self.now, vec![(word(journey), word(for_model))], &[]);
            }
        }
    }

    fn commit_all(&mut self) {
        self.commit_down_to(0);
    }

    fn commit_down_to(&mut self, lag: usize) {
        while self.in_flight.len() > lag {
            let flight = self.in_flight.pop_front().expect("there is one");
            if let Some(batch) = flight.batch {
                let answers = self.store.commit(vec![batch]).expect("the memory store works");
                assert!(answers.iter().all(Result::is_ok), "nobody else owns the shard");
            }
            self.shard.committed(flight.step);
            self.leases.extend(flight.leases);
            let known = self.forwarded.clone();
            let arriving = flight.forwards.iter().map(|forward| (forward.task.topic.clone(), forward.id.clone()));
            self.forwarded.extend(arriving.filter(|forward| !known.contains(forward)));
            self.forwards.extend(flight.forwards);
            self.durable = flight.after;
        }
    }

    /// The shard is given up in order and opened again; consumers stay where they wait.
    fn reopen(&mut self) {
        self.commit_all();
        self.board.forget_shard(SHARD);
        self.shard = open(&self.store, &self.config, self.now);
        self.board.expect(SHARD);
        self.model.reopen(self.now);
        self.jump(self.now, vec![], &[]);
    }

    /// The process dies: all that was not durable is lost, and nobody had seen it.
    fn crash(&mut self, keep: usize) {
        self.commit_down_to(keep);
        let is_end = |model: &Model| wild_queues(model).is_empty();
        while !self.durable.as_deref().is_some_and(is_end) {
            self.commit_down_to(self.in_flight.len() - 1);
        }
        self.in_flight.clear();
        self.model = *self.durable.clone().expect("something ended");
        self.numbers.forget_after(self.model.last_number());
        self.board = Board::default();
        self.model.consumers.clear();
        self.model.served.clear();
        self.forwards.clear();
        self.shard = open(&self.store, &self.config, self.now);
        self.board.expect(SHARD);
        self.model.reopen(self.now);
        self.jump(self.now, vec![], &[]);
    }
}

fn wild_queues(model: &Model) -> Vec<Name> {
    let wild = model.queues.iter().filter(|(_, settings)| settings.retry.jitter_percent != 0);
    wild.map(|(name, _)| name.clone()).collect()
}

fn open(store: &MemoryStore, config: &ShardConfig, now: Timestamp) -> Shard<u64> {
    let who = Incarnation { node: name("node"), number: 1 };
    let take = |seen| store.claim(&who, &[(SHARD, seen)]).expect("the memory store works")[0];
    let claim = match take(Fence::default()) {
        Claim::Outrun(current) => take(current),
        granted => granted,
    };
    let Claim::Granted(tenure) = claim else { panic!("nobody else wants the shard") };
    Shard::open(SHARD, tenure, config.clone(), now, store).expect("the memory store works")
}

impl Room {
    fn config(self) -> ShardConfig {
        let limits = Limits { body_bytes: plan::BODY_LIMIT };
        let ample = ShardConfig { limits, window: Millis(1 << 52), ..ShardConfig::default() };
        match self {
            Room::Plain | Room::Ample => ample,
            Room::Archived => ShardConfig { keeps_history: true, ..ample },
            Room::Forgetful => ShardConfig { cache: 0, ..ample },
            Room::NoCache => ShardConfig { window: Millis(50), cache: 0, ..ample },
            Room::Tiny { cache } => ShardConfig { window: Millis(50), slice: 3, timers: 8, fires: 4, cache, ..ample },
        }
    }

    /// Whether everything that is due fires in the first step, before its requests.
    fn fires_at_once(self) -> bool {
        matches!(self, Room::Plain | Room::Ample | Room::Archived | Room::Forgetful)
    }

    /// Whether consumers may wait while time passes. With limits on how much fires in one step a
    /// consumer that waits gets the first of those that happen to fire first, which the model cannot know.
    fn lets_consumers_wait(self) -> bool {
        !matches!(self, Room::Tiny { .. })
    }

    /// Whether consumers always get what is first, also out of several queues. When something has to be
    /// read before it can be handed out to somebody who waits, others are served meanwhile, and the
    /// model cannot know. So consumers may choose only where nobody waits, or all is at hand.
    fn hands_out_in_order(self) -> bool {
        matches!(self, Room::Plain | Room::Tiny { .. })
    }

    /// Whether queues may have a length limit: what is pushed out depends on the exact order in which tasks fire.
    fn lets_queues_be_full(self) -> bool {
        self.fires_at_once()
    }
}
