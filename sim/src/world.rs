//! The world: moments, messages, and what happens when. Everything is an event in one queue, and
//! between events nothing happens, so a quiet year costs as much as a quiet second.

use std::collections::{BTreeMap, BTreeSet};

use punctual_center::LinkId;
use punctual_chance::Chance;
use punctual_core::store::{Beat, Incarnation, Roll, ShardId, Tenure};
use punctual_core::{Answer, Name, Reply, Timestamp};

use crate::Sabotage;
use crate::auditor::{Auditor, Promise};
use crate::beats::Asked;
use crate::calls::Call;
use crate::census::Census;
use crate::clock::{EPOCH, Moment, TrueClock};
use crate::commits::{Commit, Course};
use crate::consumers::Consumers;
use crate::demand::{Demand, Purpose};
use crate::links::{Network, Side};
use crate::node::{Reads, SimulatedNode};
use crate::profile::{Kind, Profile};
use crate::record::Tag;
use crate::say;
use crate::store::{FaultyStore, Reached};
use crate::trace::Trace;
use crate::workload::{QUIET, Workload, name};

/// Something that happens at a moment.
#[derive(Debug)]
pub(crate) enum Event {
    /// Somebody sends a request.
    Send(Demand),
    /// Somebody sends several at once.
    SendTogether(Vec<Demand>),
    /// A request reaches its node.
    Arrive(Tag),
    /// An answer, or word that there will be none, reaches whoever asked.
    Answer(Tag, Option<Reply>),
    /// Word that nothing was done reaches whoever asked.
    Deny(Tag, String),
    /// Whoever asked gives up.
    Timeout(Tag),
    /// A client does something.
    Act,
    /// An attempt of a commit reaches the store, and its answer the node, or not.
    Effect(u64, bool),
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
    /// The store's copy, which was behind, takes over.
    FailOver,
    /// A read of a shard that was held so ends, in this life of its node.
    Read(usize, u64, ShardId, Tenure),
    /// A node starts.
    Start(usize),
    /// A node is to show that it is there, in this life.
    Tend(usize, u64),
    /// Its word gets to the store.
    Beat(Box<(Asked, Beat)>),
    /// It hears who is there, or does not wait any longer.
    Heed(Box<(Asked, Option<Roll>)>),
    /// The store's clock is set.
    StepStoreClock(i64),
    /// It tries to get the shards that it may have.
    Claim(usize, u64),
    /// It opens a shard that it has got.
    Open(usize, u64, ShardId, Tenure),
    /// A node dials another one, in this life.
    Dial(usize, u64, Incarnation),
    /// An end of a link hears something.
    Hear(LinkId, Side),
    /// The way from a node to another is whole again, if nobody has cut it since.
    WriteOn(usize, usize),
    /// Links over a way that is cut break.
    GiveUpLinks(usize, usize),
    /// The way from a node to another is as fast as before.
    SpeedUp(usize, usize),
    /// A node looks after what it could not pass on, in this life.
    LookAfter(usize, u64),
    /// A node's administrator does what is next, in this life.
    Administer(usize, u64),
    /// An operator takes back what was said about who is to have which shard.
    Reassign,
    /// Nothing goes wrong any more and everybody works well.
    Drain,
    /// By now the shards are divided evenly.
    CheckBalance,
}

/// How long nodes may take to find each other and to divide the shards when nothing goes wrong any more: commits that
/// are under way may be slow until their end.
pub(crate) const SETTLES: Moment = 400_000;

/// One run.
pub struct World {
    pub(crate) profile: Profile,
    pub(crate) rng: Chance,
    pub(crate) trace: Trace,
    pub(crate) moment: Moment,
    queue: BTreeMap<(Moment, u64), Event>,
    serial: u64,
    pub(crate) truth: TrueClock,
    /// Until when nothing gets from each node to the store, and nothing back.
    pub(crate) cut_off: Vec<(Moment, Moment)>,
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
    /// Links between nodes.
    pub(crate) network: Network,
    pub(crate) draining: bool,
    /// Since when nothing goes wrong any more.
    pub(crate) drains_since: Moment,
    /// Whether it is still to be looked whether the shards are divided evenly.
    pub(crate) awaits_balance: bool,
    /// How much longer commits take than usual.
    pub(crate) slowness: Moment,
    /// How long reads take at most.
    pub(crate) read_slowness: Moment,
    acts_left: u64,
    pub(crate) faults_left: u64,
    pub(crate) sabotage: Option<Sabotage>,
    /// What is to become of the next commit.
    pub(crate) next_fate: Option<punctual_memory::Fate>,
    /// How the next commit gets to the store.
    pub(crate) next_course: Course,
    /// Whether the store has a copy that is behind and about to take over.
    pub(crate) is_behind: bool,
    pub(crate) failovers: u64,
    /// By shard, the highest level at which something was written there; and how that was when the copy fell behind.
    pub(crate) levels: BTreeMap<ShardId, u32>,
    pub(crate) held_levels: BTreeMap<ShardId, u32>,
    /// Nodes in their lives that had something confirmed of a shard which is lost, and have not noticed.
    pub(crate) unnoticed: BTreeSet<(usize, u64, ShardId)>,
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
            store: FaultyStore::new(truth.clone(), profile.looks, sabotage),
            nodes: (0..profile.nodes).map(|index| SimulatedNode::new(index, node_name(&profile, index))).collect(),
            cut_off: vec![(0, 0); profile.nodes],
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
            network: Network::default(),
            draining: false,
            drains_since: Moment::MAX,
            awaits_balance: false,
            slowness: 0,
            read_slowness: 0,
            next_fate: None,
            next_course: Course::Straight,
            is_behind: false,
            failovers: 0,
            levels: BTreeMap::new(),
            held_levels: BTreeMap::new(),
            unnoticed: BTreeSet::new(),
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
        self.census.add("pages that stopped early", self.store.stops());
    }

    fn begin(&mut self) {
        if self.profile.one_clock {
            self.go_by_the_store();
        }
        if self.profile.linked {
            self.auditor.shares_rates = true;
            let shares = self.sabotage != Some(Sabotage::OwnRates);
            self.nodes.iter_mut().for_each(|node| node.shares_rates = shares);
        }
        self.choose_versions();
        // Before the nodes start: what a process believes of its clock is settled when it does.
        match self.sabotage {
            Some(Sabotage::EarlyClock { by }) => self.nodes.iter_mut().for_each(|node| node.early = by),
            Some(Sabotage::NoDoubt) => self.nodes.iter_mut().for_each(|node| node.doubt = 0),
            Some(Sabotage::LatchedTime) => self.nodes.iter_mut().for_each(|node| node.latched = true),
            Some(Sabotage::Interrupts) => self.nodes.iter_mut().for_each(|node| node.interrupts = true),
            Some(Sabotage::LateTimers { by }) => self.nodes.iter_mut().for_each(|node| node.late = by),
            sabotage => self.nodes.iter_mut().for_each(|node| node.membership.sabotage = sabotage),
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
            Event::SendTogether(demands) => self.send_together(demands),
            Event::Arrive(tag) => self.arrive(tag),
            Event::Answer(tag, reply) => self.answer(tag, reply),
            Event::Deny(tag, why) => self.deny_client(tag, &why),
            Event::Timeout(tag) => self.time_out(tag),
            Event::Act => self.act(),
            Event::Effect(commit, is_heard) => self.effect(commit, is_heard),
            Event::Done(commit) => self.done(commit),
            Event::EndBlip(node, by) => self.end_blip(node, by),
            Event::SetRight(node) => self.notice_clock(node),
            Event::Fault => self.fault(),
            Event::Heal => self.store.heal(),
            Event::Hurry => self.slowness = 0,
            Event::ReadFast => self.read_slowness = 0,
            Event::FailOver => self.fail_over(),
            Event::Read(node, life, shard, tenure) => self.read_ended(node, life, shard, tenure),
            Event::Start(node) => self.start(node),
            Event::Tend(node, life) => self.tend(node, life),
            Event::Beat(beat) => self.beat(beat.0, &beat.1),
            Event::Heed(heard) => self.beat_ended(heard.0, heard.1),
            Event::StepStoreClock(by) => self.step_store_clock(by),
            Event::Claim(node, life) => self.claim(node, life),
            Event::Open(node, life, shard, tenure) => self.open(node, life, shard, tenure),
            Event::Dial(node, life, to) => self.dial(node, life, to),
            Event::Hear(link, side) => self.hear_link(link, side),
            Event::WriteOn(from, to) => self.write_on(from, to),
            Event::GiveUpLinks(from, to) => self.give_up_links(from, to),
            Event::SpeedUp(from, to) => self.speed_up(from, to),
            Event::LookAfter(node, life) => self.look_after(node, life),
            Event::Administer(node, life) => self.administer(node, life),
            Event::Reassign => self.reassign(),
            Event::Drain => self.drain(),
            Event::CheckBalance => self.check_balance(),
        }
    }

    fn act(&mut self) {
        if self.draining || self.acts_left == 0 {
            return;
        }
        self.acts_left -= 1;
        if self.profile.linked && self.rng.percent(15) {
            let demands = self.workload.together(self.moment);
            self.after(0, Event::SendTogether(demands));
        }
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
            self.check_time(index);
            let reach = self.reach(index);
            let mut reads = Reads {
                store: Reached { store: &self.store, reach },
                slowness: self.read_slowness,
                rng: &mut self.rng,
            };
            let worked = self.nodes[index].work(self.moment, self.profile.depth, &mut reads, &self.quiet);
            self.census.add("steps", worked.steps);
            if let Some(shard) = worked.circles {
                let what = format!("shard {} makes step after step and no time passes", shard.0);
                self.auditor.accuse(Promise::KeepsWorking, "", what);
            }
            self.see_to_lending(index, None);
            self.draw(index);
            for tag in worked.empty {
                if self.answer_guest(index, tag, Vec::new()) {
                    continue;
                }
                self.after(0, Event::Answer(tag, Some(Ok(Answer::Reserved(Vec::new())))));
            }
            self.census.add("slow reads", worked.reads.len() as u64);
            for (shard, tenure, takes) in worked.reads {
                self.after(takes, Event::Read(index, life, shard, tenure));
            }
            self.lose(index, worked.lost);
            for (shard, tenure, why) in worked.dropped {
                self.census.count("shards dropped after a failed read");
                self.count_refusal(&why, "deposed owners refused at a read");
                self.drop_shard_under(index, shard, tenure, Some(&why));
            }
            for (shard, waiting) in worked.turned_away {
                self.turn_away(index, shard, waiting);
            }
            self.finish_hand_overs(index);
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
        self.mend_ways();
        self.settle_store_clock();
        self.drains_since = self.moment;
        if self.profile.linked {
            self.reassign();
            self.awaits_balance = true;
            self.after(SETTLES, Event::CheckBalance);
        }
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
            && !self.awaits_balance
            && !self.auditor.rows().any(|(_, row)| row.is_open() && row.at <= end)
            && (!self.profile.linked || self.is_tidy())
    }

    /// Whether nothing has gone wrong for long enough.
    pub(crate) fn is_at_peace(&self) -> bool {
        self.draining && self.moment >= self.drains_since + SETTLES
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

fn node_name(profile: &Profile, index: usize) -> Name {
    let index = if profile.twins && index == 1 { 0 } else { index };
    name(format!("node-{index}"))
}
