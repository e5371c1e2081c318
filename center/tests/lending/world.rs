//! Several nodes in one thread: real shards and boards, and links that take their time and break.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_center::{Lending, LinkId, Message};
use punctual_chance::Chance;
use punctual_core::store::{Claim, Fence, Incarnation, ShardId, Store};
use punctual_core::{
    Answer, Back, Board, Choice, Clock, Command, Delivery, Lease, Millis, Name, QueueSettings, Reply, Request, Reserve,
    Schedule, Shard, ShardConfig, Task, Ticket, Timestamp,
};
use punctual_memory::MemoryStore;

const SHARD: ShardId = ShardId(0);
/// How long a delivery is leased: what is lost on a link comes out again after this.
pub const LEASE: Millis = Millis(5_000);

/// Who waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Nobody,
    Consumer(usize),
    Guest(LinkId, u64),
}

struct SimulatedClock(AtomicU64);

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

struct Node {
    store: Arc<MemoryStore>,
    shard: Shard<Who>,
    board: Board<Who>,
    lending: Lending<Who>,
    inbox: Vec<Request<Who>>,
    is_to_look: bool,
    wake: Timestamp,
    /// What leaves when its commit is durable, and when that is.
    leaving: VecDeque<(Timestamp, Vec<(Who, Reply)>)>,
}

/// A consumer, and what became of it.
pub struct Consumer {
    node: usize,
    ticket: Ticket,
    until: Timestamp,
    has_left: bool,
    pub answer: Option<Vec<Delivery>>,
}

/// A link, dialled by one node to another.
struct Link {
    from: usize,
    to: usize,
    /// What each end calls it.
    here: LinkId,
    there: LinkId,
    /// What is on its way, each way, and when it arrives; the end of the link is the last.
    out: Way,
    back: Way,
    is_cut: bool,
}

type Way = VecDeque<(Timestamp, Option<Message>)>;

pub struct World {
    clock: Arc<SimulatedClock>,
    pub chance: Chance,
    /// How long a message takes at most.
    pub slowness: u64,
    /// How long a commit takes at most.
    pub commit: u64,
    nodes: Vec<Node>,
    links: Vec<Link>,
    next_link: u64,
    pub consumers: Vec<Consumer>,
    tasks: usize,
    /// All leases that consumers were ever given.
    given: BTreeSet<String>,
    pub done: BTreeSet<String>,
    /// Who was served, in order.
    pub order: Vec<usize>,
    /// How many deliveries came to nobody.
    pub surplus: usize,
    /// How many messages of each kind were said.
    pub said: BTreeMap<&'static str, usize>,
}

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

impl World {
    /// So many nodes, with links between all of them.
    pub fn new(nodes: usize, seed: u64) -> World {
        let clock = Arc::new(SimulatedClock(AtomicU64::new(1_000_000)));
        let mut world = World {
            chance: Chance::new(seed),
            slowness: 3,
            commit: 2,
            nodes: (0..nodes).map(|_| Node::new(&clock)).collect(),
            clock,
            links: Vec::new(),
            next_link: 0,
            consumers: Vec::new(),
            tasks: 0,
            given: BTreeSet::new(),
            done: BTreeSet::new(),
            order: Vec::new(),
            surplus: 0,
            said: BTreeMap::new(),
        };
        world.pass(1);
        world.link_all();
        world.pass(50);
        world
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Dials all links that are missing.
    pub fn link_all(&mut self) {
        let nodes = self.nodes.len();
        for (from, to) in (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))) {
            if from != to && !self.links.iter().any(|link| (link.from, link.to) == (from, to)) {
                let (here, there) = (LinkId(self.next_link), LinkId(self.next_link + 1));
                self.next_link += 2;
                let (out, back) = (Way::new(), Way::new());
                self.links.push(Link { from, to, here, there, out, back, is_cut: false });
                let now = self.now();
                let Node { lending, board, .. } = &mut self.nodes[from];
                lending.linked(here, board, now);
                self.follow(from);
            }
        }
    }

    /// Cuts a link. Some of what is on its way still arrives, and both ends hear of it in their own time.
    pub fn cut(&mut self, from: usize, to: usize) {
        let now = self.now();
        let Some(link) = self.links.iter_mut().find(|link| (link.from, link.to) == (from, to)) else { return };
        if std::mem::replace(&mut link.is_cut, true) {
            return;
        }
        for way in [&mut link.out, &mut link.back] {
            let arrives = self.chance.index(way.len() + 1);
            way.truncate(arrives);
            let last = way.back().map_or(now, |(at, _)| *at);
            way.push_back((last.plus(Millis(self.chance.between(1, 40))), None));
        }
    }

    pub fn schedule(&mut self, node: usize, queue: &str, delay: u64) {
        self.tasks += 1;
        let id = name(&format!("{node}-{}", self.tasks));
        let task = Task::new(name(queue), id.to_string()).after(Millis(delay));
        self.ask(node, Command::Schedule(Box::new(Schedule { task, id, id_is_new: true })));
    }

    pub fn put_queue(&mut self, node: usize, queue: &str, settings: QueueSettings) {
        self.ask(node, Command::PutQueue { name: name(queue), settings: Box::new(settings) });
    }

    fn ask(&mut self, node: usize, command: Command) {
        let read_at = self.now();
        self.nodes[node].inbox.push(Request { by: None, command, reply: Who::Nobody, read_at });
    }

    /// A consumer comes to a node; says its number.
    pub fn come(&mut self, node: usize, queues: &[&str], max: usize, wait: u64) -> usize {
        let (now, number) = (self.now(), self.consumers.len());
        let until = now.plus(Millis(wait));
        let queues = queues.iter().map(|queue| name(queue)).collect();
        let reserve = Reserve { queues, max, lease: Some(LEASE), until, consumer: name("c"), choice: Choice::InTurn };
        let Node { board, lending, is_to_look, .. } = &mut self.nodes[node];
        let posted = board.post(reserve, Who::Consumer(number));
        *is_to_look |= !posted.ask.is_empty();
        lending.look(board, now);
        self.consumers.push(Consumer { node, ticket: posted.ticket, until, has_left: false, answer: None });
        self.follow(node);
        number
    }

    /// A consumer leaves, if it still waits.
    pub fn leave(&mut self, number: usize) {
        let consumer = &mut self.consumers[number];
        if consumer.answer.is_some() || consumer.has_left {
            return;
        }
        consumer.has_left = true;
        let (at, ticket) = (consumer.node, consumer.ticket);
        let node = &mut self.nodes[at];
        node.board.withdraw(ticket);
        node.lending.withdrawn(ticket);
        self.follow(at);
    }

    /// How many tasks were scheduled.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    pub fn waiting(&self) -> usize {
        self.consumers.iter().filter(|consumer| consumer.answer.is_none() && !consumer.has_left).count()
    }

    /// The numbers of those who wait.
    pub fn who_waits(&self) -> Vec<usize> {
        let waits = |number: &usize| self.consumers[*number].answer.is_none() && !self.consumers[*number].has_left;
        (0..self.consumers.len()).filter(waits).collect()
    }

    /// Lets time pass, and everything happen that does meanwhile.
    pub fn pass(&mut self, millis: u64) {
        let end = self.now().plus(Millis(millis));
        self.settle();
        while self.now() < end {
            let next = self.next_moment().min(end);
            self.clock.0.store(next.as_millis(), Ordering::Relaxed);
            self.settle();
        }
    }

    /// When something happens next.
    fn next_moment(&self) -> Timestamp {
        let now = self.now();
        let of_node = |node: &Node| {
            let leaves = node.leaving.front().map_or(Timestamp::NEVER, |(when, _)| *when);
            node.wake.min(leaves).min(node.lending.wakes_at()).min(node.board.next_deadline_after(now))
        };
        let arrival = |way: &Way| way.front().map_or(Timestamp::NEVER, |(when, _)| *when);
        let nodes = self.nodes.iter().map(of_node);
        let links = self.links.iter().map(|link| arrival(&link.out).min(arrival(&link.back)));
        nodes.chain(links).min().unwrap().max(now.plus(Millis(1)))
    }

    fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 10_000, "the nodes do not come to rest");
            let busy = (0..self.nodes.len()).filter(|node| self.work(*node)).count();
            if !self.carry() && busy == 0 {
                return;
            }
        }
    }

    /// One step of a node, if there is reason for one, and what leaves it.
    fn work(&mut self, at: usize) -> bool {
        let now = self.now();
        let takes = self.chance.below(self.commit + 1);
        let node = &mut self.nodes[at];
        let mut is_busy = node.is_to_look || !node.inbox.is_empty() || node.wake <= now;
        if is_busy {
            node.is_to_look = false;
            node.step(now, takes);
        }
        node.lending.look(&mut node.board, now);
        let over = node.board.expire(now);
        let mut answers: Vec<(Who, Reply)> =
            over.into_iter().map(|who| (who, Ok(Answer::Reserved(Vec::new())))).collect();
        while node.leaving.front().is_some_and(|(when, _)| *when <= now) {
            answers.extend(node.leaving.pop_front().unwrap().1);
        }
        is_busy |= !answers.is_empty();
        for (who, reply) in answers {
            self.answer(at, who, reply);
        }
        self.follow(at) || is_busy
    }

    fn answer(&mut self, at: usize, who: Who, reply: Reply) {
        let now = self.now();
        match (who, reply) {
            (Who::Nobody, _) => {}
            (Who::Guest(on, id), Ok(Answer::Reserved(deliveries))) => {
                let Node { lending, board, .. } = &mut self.nodes[at];
                lending.answered(on, id, deliveries, board, now);
                self.follow(at);
            }
            (Who::Consumer(number), Ok(Answer::Reserved(deliveries))) => self.hand_over(number, deliveries),
            other => panic!("{other:?}"),
        }
    }

    fn hand_over(&mut self, number: usize, deliveries: Vec<Delivery>) {
        let now = self.now();
        if self.consumers[number].has_left {
            return self.give_back(deliveries);
        }
        let consumer = &mut self.consumers[number];
        assert!(consumer.answer.is_none(), "consumer {number} is answered once");
        assert!(!deliveries.is_empty() || consumer.until <= now, "consumer {number} is sent away too soon");
        if !deliveries.is_empty() {
            self.order.push(number);
        }
        for delivery in &deliveries {
            assert!(self.given.insert(format!("{:?}", delivery.lease)), "{} is given to one consumer", delivery.id);
            self.done.insert(delivery.id.to_string());
            self.ask(home(&delivery.id), Command::Acknowledge(delivery.lease.clone()));
        }
        self.consumers[number].answer = Some(deliveries);
    }

    fn give_back(&mut self, deliveries: Vec<Delivery>) {
        for Delivery { lease, id, .. } in deliveries {
            self.surplus += 1;
            let back = Back::Abandoned;
            let lease: Lease = lease;
            self.ask(home(&id), Command::Release { lease, back, priority: None, note: None });
        }
    }

    /// Does what follows from what a node has heard.
    fn follow(&mut self, at: usize) -> bool {
        let then = self.nodes[at].lending.take_consequences();
        if then.is_empty() {
            return false;
        }
        self.nodes[at].is_to_look |= !then.look.is_empty();
        for (on, message) in then.say {
            self.send(|link| link.here == on, |link| &mut link.out, message);
        }
        for (on, message) in then.reply {
            self.send(|link| link.there == on, |link| &mut link.back, message);
        }
        self.give_back(then.unwanted);
        for (who, deliveries) in then.served {
            let Who::Consumer(number) = who else { panic!("{who:?} is no consumer of this node") };
            self.hand_over(number, deliveries);
        }
        true
    }

    fn send(&mut self, is_meant: impl Fn(&Link) -> bool, way: impl Fn(&mut Link) -> &mut Way, message: Message) {
        let kind = match &message {
            Message::Want { .. } => "Want",
            Message::Unwant { .. } => "Unwant",
            Message::Lend { .. } => "Lend",
            Message::Recall { .. } => "Recall",
            Message::Stocked { .. } => "Stocked",
            _ => "Served",
        };
        *self.said.entry(kind).or_default() += 1;
        let soonest = self.now().plus(Millis(self.chance.below(self.slowness + 1)));
        if let Some(link) = self.links.iter_mut().find(|link| is_meant(link) && !link.is_cut) {
            let way = way(link);
            let at = way.back().map_or(soonest, |(at, _)| soonest.max(*at));
            way.push_back((at, Some(message)));
        }
    }

    /// Hands over what has arrived.
    fn carry(&mut self) -> bool {
        let now = self.now();
        let mut arrived = false;
        for index in 0..self.links.len() {
            for is_out in [true, false] {
                loop {
                    let link = &mut self.links[index];
                    let (from, to, here, there) = (link.from, link.to, link.here, link.there);
                    let way = if is_out { &mut link.out } else { &mut link.back };
                    let Some((_, message)) = way.pop_front_if(|(at, _)| *at <= now) else { break };
                    arrived = true;
                    let at = if is_out { to } else { from };
                    let Node { lending, board, .. } = &mut self.nodes[at];
                    match (message, is_out) {
                        (Some(message), true) => {
                            lending.asked(there, message, |id| Who::Guest(there, id), board, now);
                        }
                        (Some(message), false) => lending.told(here, message, board, now),
                        (None, true) => lending.left(there, board),
                        (None, false) => lending.unlinked(here, board, now),
                    }
                    self.follow(at);
                }
            }
        }
        self.links.retain(|link| !link.is_cut || !link.out.is_empty() || !link.back.is_empty());
        arrived
    }
}

/// The node that has a task.
fn home(id: &Name) -> usize {
    id.split('-').next().unwrap().parse().unwrap()
}

impl Node {
    fn new(clock: &Arc<SimulatedClock>) -> Node {
        let store = Arc::new(MemoryStore::new(Arc::clone(clock) as Arc<dyn Clock>));
        let who = Incarnation { node: name("n"), number: 1 };
        let Claim::Granted(tenure) = store.claim(&who, &[(SHARD, Fence::default())]).unwrap()[0] else {
            panic!("the store is new")
        };
        let shard = Shard::open(SHARD, tenure, ShardConfig::default(), clock.now(), &*store).unwrap();
        let mut board = Board::default();
        board.expect(SHARD);
        Node {
            store,
            shard,
            board,
            lending: Lending::default(),
            inbox: Vec::new(),
            is_to_look: true,
            wake: Timestamp::ZERO,
            leaving: VecDeque::new(),
        }
    }

    fn step(&mut self, now: Timestamp, takes: u64) {
        let requests = std::mem::take(&mut self.inbox);
        let output = self.shard.step(now, requests, &*self.store, &mut self.board).unwrap();
        let verdicts = self.store.commit(output.batch.into_iter().collect()).unwrap();
        assert!(verdicts.iter().all(Result::is_ok));
        self.shard.committed(output.step);
        self.wake = output.wake;
        let last = self.leaving.back().map_or(now, |(when, _)| *when);
        self.leaving.push_back((now.plus(Millis(takes)).max(last), output.answers));
    }
}
