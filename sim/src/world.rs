//! The world: moments, messages, and what happens when. Everything is an event in one queue, and
//! between events nothing happens, so a quiet year costs as much as a quiet second.

use std::collections::BTreeMap;

use punctual_chance::Chance;
use punctual_core::store::{Fence, ShardId};
use punctual_core::{Answer, Name, Reply, Timestamp};

use crate::Sabotage;
use crate::auditor::{Auditor, Promise};
use crate::calls::Call;
use crate::census::Census;
use crate::clock::{EPOCH, Moment, TrueClock};
use crate::commits::Commit;
use crate::consumers::Consumers;
use crate::demand::{Demand, Purpose};
use crate::node::{Reads, SimulatedNode};
use crate::profile::{Kind, Profile};
use crate::record::Tag;
use crate::say;
use crate::store::FaultyStore;
use crate::trace::Trace;
use crate::workload::{QUIET, Workload, name};

/// Something that happens at a moment.
#[derive(Debug)]
pub(crate) enum Event {
    /// Somebody sends a request.
    Send(Demand),
    /// A request reaches its node.
    Arrive(Tag),
    /// An answer, or word that there will be none, reaches whoever asked.
    Answer(Tag, Option<Reply>),
    /// Whoever asked gives up.
    Timeout(Tag),
    /// A client does something.
    Act,
    /// The store does what a commit says.
    Effect(u64),
    /// The node hears about it.
    Done(u64),
    /// A node's clock that was wrong for a moment by so much is right again.
    EndBlip(usize, i64),
    /// Somebody notices that a node's clock is wrong, and sets it right.
    SetRight(usize),
    /// Something goes wrong.
    Fault,
    /// The store answers again.
    Heal,
    /// Commits are as fast as before.
    Hurry,
    /// Reads are as fast as before.
    ReadFast,
    /// A read of a shard under this fence ends, in this life of its node.
    Read(usize, u64, ShardId, Fence),
    /// A node starts.
    Start(usize),
    /// A node tries to get a shard, in this life.
    Claim(usize, u64, ShardId),
    /// A node looks after its ownership, in this life.
    Tend(usize, u64),
    /// Nothing goes wrong any more and everybody works well.
    Drain,
}

/// One run.
pub struct World {
    pub(crate) profile: Profile,
    pub(crate) rng: Chance,
    pub(crate) trace: Trace,
    pub(crate) moment: Moment,
    queue: BTreeMap<(Moment, u64), Event>,
    serial: u64,
    truth: TrueClock,
    pub(crate) store: FaultyStore,
    pub(crate) nodes: Vec<SimulatedNode>,
    pub(crate) commits: BTreeMap<u64, Commit>,
    pub(crate) calls: BTreeMap<Tag, Call>,
    pub(crate) next_tag: Tag,
    pub(crate) workload: Workload,
    pub(crate) consumers: Consumers,
    /// Watches everything.
    pub auditor: Auditor,
    /// How often what happened.
    pub census: Census,
    pub(crate) draining: bool,
    /// How much longer commits take than usual.
    pub(crate) slowness: Moment,
    /// How long reads take at most.
    pub(crate) read_slowness: Moment,
    acts_left: u64,
    pub(crate) faults_left: u64,
    pub(crate) sabotage: Option<Sabotage>,
    /// What is to become of the next commit.
    pub(crate) next_fate: Option<punctual_memory::Fate>,
    quiet: Name,
}

impl World {
    /// The world of a seed.
    pub fn new(seed: u64, traced: bool, sabotage: Option<Sabotage>) -> World {
        let mut rng = Chance::new(seed);
        let profile = Profile::draw(&mut rng);
        World::with(profile, rng, traced, sabotage)
    }

    /// A world of this profile.
    pub fn with(profile: Profile, mut rng: Chance, traced: bool, sabotage: Option<Sabotage>) -> World {
        let truth = TrueClock::default();
        let workload = Workload::new(&profile, &mut rng);
        let consumers = Consumers::new(&profile, &workload.queues(), &mut rng);
        let mut trace = Trace::new(traced);
        say!(trace, "* {profile:?}");
        World {
            store: FaultyStore::new(truth.clone()),
            nodes: (0..profile.nodes).map(SimulatedNode::new).collect(),
            acts_left: profile.acts,
            faults_left: profile.faults.0,
            workload,
            consumers,
            profile,
            rng,
            trace,
            truth,
            sabotage,
            moment: 0,
            queue: BTreeMap::new(),
            serial: 0,
            commits: BTreeMap::new(),
            calls: BTreeMap::new(),
            next_tag: 0,
            auditor: Auditor::default(),
            census: Census::default(),
            draining: false,
            slowness: 0,
            read_slowness: 0,
            next_fate: None,
            quiet: name(QUIET),
        }
    }

    /// Runs to the end, and lets the auditor compare everything.
    pub fn run(&mut self) {
        self.begin();
        let mut limit = Moment::MAX;
        while self.auditor.violation().is_none() {
            let wakes = self.nodes.iter().filter_map(|node| node.wakes_at(self.profile.depth, self.moment));
            let next = wakes.chain(self.queue.first_key_value().map(|((moment, _), _)| *moment)).min();
            let Some(next) = next.filter(|next| *next <= limit) else { break };
            self.advance(next);
            while let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= self.moment) {
                let event = entry.remove();
                self.census.count("events");
                self.happen(event);
            }
            self.work();
            if self.draining {
                limit = limit.min(self.moment + self.profile.drain);
                if self.commits.is_empty() && self.is_drained() {
                    break;
                }
            }
        }
        if self.auditor.violation().is_none() {
            self.close();
        }
    }

    fn begin(&mut self) {
        // Before the nodes start: what a process believes of its clock is settled when it does.
        match self.sabotage {
            Some(Sabotage::ForgetCommit { after }) => self.store.forget_after(after),
            Some(Sabotage::ForgetTallies) => self.store.forget_tallies(),
            Some(Sabotage::EarlyClock { by }) => self.nodes.iter_mut().for_each(|node| node.early = by),
            Some(Sabotage::NoDoubt) => self.nodes.iter_mut().for_each(|node| node.doubt = 0),
            Some(Sabotage::LatchedTime) => self.nodes.iter_mut().for_each(|node| node.latched = true),
            Some(Sabotage::Interrupts) => self.nodes.iter_mut().for_each(|node| node.interrupts = true),
            Some(Sabotage::LateTimers { by }) => self.nodes.iter_mut().for_each(|node| node.late = by),
            _ => {}
        }
        for node in 0..self.nodes.len() {
            self.happen(Event::Start(node));
        }
        let mut demands = self.workload.settings();
        demands.extend(self.workload.hoard(self.profile.hoard).into_iter().map(|demand| demand.after(2_000)));
        if self.profile.flood > 0 {
            demands.extend(self.workload.flood(self.profile.flood, 2_000).into_iter().map(|mut demand| {
                demand.after += 2_000;
                demand
            }));
        }
        demands.extend(self.consumers.begin());
        self.demand(demands);
        self.after(3_000, Event::Act);
        if self.faults_left > 0 {
            self.after(3_000, Event::Fault);
        }
        self.after(self.profile.length, Event::Drain);
    }

    pub(crate) fn advance(&mut self, moment: Moment) {
        self.moment = self.moment.max(moment);
        self.truth.set(self.moment);
        self.trace.at(self.moment);
    }

    /// Lets something happen so much later.
    pub(crate) fn after(&mut self, delay: Moment, event: Event) {
        self.serial += 1;
        self.queue.insert((self.moment.saturating_add(delay), self.serial), event);
    }

    pub(crate) fn demand(&mut self, demands: Vec<Demand>) {
        for mut demand in demands {
            let after = std::mem::take(&mut demand.after);
            self.after(after, Event::Send(demand));
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Send(demand) => self.send(demand, None),
            Event::Arrive(tag) => self.arrive(tag),
            Event::Answer(tag, reply) => self.answer(tag, reply),
            Event::Timeout(tag) => {
                if self.calls.contains_key(&tag) {
                    self.census.count("answers never seen");
                    self.answer(tag, None);
                }
            }
            Event::Act => self.act(),
            Event::Effect(commit) => self.effect(commit),
            Event::Done(commit) => self.done(commit),
            Event::EndBlip(node, by) => self.end_blip(node, by),
            Event::SetRight(node) => self.notice_clock(node),
            Event::Fault => self.fault(),
            Event::Heal => self.store.heal(),
            Event::Hurry => self.slowness = 0,
            Event::ReadFast => self.read_slowness = 0,
            Event::Read(node, life, shard, fence) => self.read_ended(node, life, shard, fence),
            Event::Start(node) => self.start(node),
            Event::Claim(node, life, shard) => self.claim(node, life, shard),
            Event::Tend(node, life) => self.tend(node, life),
            Event::Drain => self.drain(),
        }
    }

    fn act(&mut self) {
        if self.draining || self.acts_left == 0 {
            return;
        }
        self.acts_left -= 1;
        let demands = self.workload.act(self.moment);
        self.demand(demands);
        let gap = 2 * self.profile.length / self.profile.acts;
        // Clients often do several things at one moment.
        let gap = if self.rng.percent(20) { 0 } else { self.rng.below(gap + 1) };
        self.after(gap, Event::Act);
    }

    /// Lets all nodes work that are awake, and their outputs be committed.
    fn work(&mut self) {
        for index in 0..self.nodes.len() {
            let node = &mut self.nodes[index];
            if !node.is_awake(self.moment) {
                continue;
            }
            let life = node.life;
            let mut reads = Reads { store: &self.store, slowness: self.read_slowness, rng: &mut self.rng };
            let worked = node.work(self.moment, self.profile.depth, &mut reads, &self.quiet);
            self.census.add("steps", worked.steps);
            self.census.add("panics of shards that had another owner", worked.confused);
            if let Some(shard) = worked.circles {
                let what = format!("shard {} makes step after step and no time passes", shard.0);
                self.auditor.accuse(Promise::KeepsWorking, "", what);
            }
            for tag in worked.empty {
                self.after(0, Event::Answer(tag, Some(Ok(Answer::Reserved(Vec::new())))));
            }
            self.census.add("slow reads", worked.reads.len() as u64);
            for (shard, fence, takes) in worked.reads {
                self.after(takes, Event::Read(index, life, shard, fence));
            }
            self.lose(worked.lost);
            for shard in worked.dropped {
                self.census.count("shards dropped after a failed read");
                self.dropped(index, shard);
            }
            self.begin_commit(index);
            if self.rng.below(2_000) < worked.steps {
                self.weigh(index);
            }
        }
    }

    fn drain(&mut self) {
        say!(self.trace, "* nothing goes wrong any more");
        self.draining = true;
        self.slowness = 0;
        self.read_slowness = 0;
        self.profile.lost_answers = 0;
        self.store.heal();
        self.consumers.behave();
        for index in 0..self.nodes.len() {
            self.nodes[index].stalled_until = 0;
            self.set_clock_right(index);
            self.start(index);
        }
        let demands = self.workload.settings();
        self.demand(demands);
    }

    /// Whether everything that is due before the end of the run has come to its end.
    fn is_drained(&self) -> bool {
        let only_consumers_wait = self.calls.values().all(|call| matches!(call.demand.purpose, Purpose::Consumer(_)));
        let end = self.drained_at();
        let open: usize = self.nodes.iter().map(|node| node.seats().count()).sum();
        only_consumers_wait
            && open == usize::from(self.profile.shards)
            && !self.auditor.rows().any(|(_, row)| row.is_open() && row.at <= end)
    }

    pub(crate) fn drained_at(&self) -> Timestamp {
        Timestamp::from_millis((EPOCH + self.profile.length).saturating_add(self.profile.drain / 2))
    }

    /// The kind of run.
    pub fn kind(&self) -> Kind {
        self.profile.kind
    }

    /// How much time has passed.
    pub fn now(&self) -> Moment {
        self.moment
    }

    /// The whole trace.
    pub fn into_trace(self) -> String {
        self.trace.into_text()
    }
}
