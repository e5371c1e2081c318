//! Beats on their way to the store and back, and nodes that are cut off from it: nothing gets there, or no answer comes back,
//! while others reach it and links work.

use punctual_center::Asking;
use punctual_core::Clock;
use punctual_core::store::{Beat, Fence, Roll, ShardId, Store};

use crate::clock::Moment;
use crate::node::ByStore;
use crate::say;
use crate::store::{Reach, Reached};
use crate::world::{Event, World};

/// After this a node does not wait any longer for the answer to a beat.
const PATIENCE: (Moment, Moment) = (1_000, 3_000);
/// How long a beat takes at most while commits are slow.
const SLOWEST: Moment = 10_000;
const MINUTE: Moment = 60_000;
const DAY: Moment = 24 * 60 * MINUTE;

/// A beat that is under way.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub node: usize,
    pub life: u64,
    asked_at: Moment,
    pub asking: Asking,
    /// What the node had when it asked: only of that the answer can tell that it is lost.
    pub owned: Vec<(ShardId, Fence)>,
}

impl World {
    /// A node shows that it is there.
    pub(crate) fn send_beat(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        if std::mem::replace(&mut node.membership.is_beating, true) {
            return;
        }
        let owned = node.seats().map(|(shard, seat)| (*shard, seat.fence)).collect();
        let asking = node.exchange.places.ask();
        node.administrator.known.ask();
        let asked = Asked { node: index, life: node.life, asked_at: self.moment, asking, owned };
        let (beat, takes) = (self.word_of(index), self.beat_takes());
        self.after(takes, Event::Beat(Box::new((asked, beat))));
    }

    /// How long it takes to the store, or back.
    pub(crate) fn beat_takes(&mut self) -> Moment {
        if self.profile.exact {
            return 0;
        }
        let hiccup = if self.rng.percent(5) { 400 } else { 0 };
        let most = 10 + hiccup + self.slowness.min(SLOWEST);
        self.rng.below(most)
    }

    /// A beat gets to the store, or not.
    pub(crate) fn beat(&mut self, asked: Asked, beat: &Beat) {
        let reach = self.reach(asked.node);
        let roll = if reach == Reach::None { None } else { self.store.beat(beat).ok() };
        let roll = roll.filter(|_| reach == Reach::Whole);
        let takes = match &roll {
            Some(_) => self.beat_takes(),
            None if self.profile.exact => 0,
            None => self.rng.between(PATIENCE.0, PATIENCE.1),
        };
        self.after(takes, Event::Heed(Box::new((asked, roll))));
    }

    /// The answer to a beat gets to its node, or it does not wait any longer.
    pub(crate) fn beat_ended(&mut self, asked: Asked, roll: Option<Roll>) {
        let index = asked.node;
        let node = &mut self.nodes[index];
        if !node.up || node.life != asked.life {
            return;
        }
        if !node.is_awake(self.moment) {
            let until = node.stalled_until;
            return self.after(until - self.moment, Event::Heed(Box::new((asked, roll))));
        }
        node.membership.is_beating = false;
        let Some(roll) = roll else { return };
        if let Some(by_store) = &mut node.by_store {
            by_store.heard(roll.micros, asked.asked_at, self.moment);
            by_store.bounds.heard(asked.asked_at, self.moment);
        }
        // When nothing happens any more but that time passes, nodes beat too seldom to be there by the roll.
        if !self.draining || !self.is_in_place() {
            self.heed(asked, roll);
        } else if self.profile.linked {
            self.look_after_changes(index, &roll);
        }
    }

    /// Whether all shards are where they belong, as far as anybody knows.
    pub(crate) fn is_in_place(&self) -> bool {
        let is_owned = |shard| self.nodes.iter().any(|node| node.seats().any(|(id, _)| id.0 == shard));
        (0..self.profile.shards).all(is_owned) && (!self.profile.linked || self.is_settled())
    }

    /// How a node reaches the store.
    pub(crate) fn reach(&self, index: usize) -> Reach {
        let (there, back) = self.cut_off[index];
        match self.moment {
            moment if moment < there => Reach::None,
            moment if moment < back => Reach::OneWay,
            _ => Reach::Whole,
        }
    }

    /// The store as a node reaches it.
    pub(crate) fn reached(&self, index: usize) -> Reached<'_> {
        Reached { store: &self.store, reach: self.reach(index) }
    }

    /// A node does not reach the store for a while, or its answers do not reach the node.
    pub(crate) fn cut_off(&mut self, index: usize) {
        let until = self.moment + self.rng.magnitude(10, 2 * MINUTE);
        let is_one_way = self.rng.percent(50);
        say!(self.trace, "* node {index} is cut off from the store until {until}, one way: {is_one_way}");
        self.census.count(if is_one_way { "nodes that the store's answers do not reach" } else { "nodes cut off" });
        let (there, back) = &mut self.cut_off[index];
        if is_one_way {
            *back = until;
        } else {
            *there = until;
        }
    }

    /// The store's clock is set, often for less long than steps forward are doubted.
    pub(crate) fn set_store_clock(&mut self) {
        let length = self.rng.magnitude(1, 3 * DAY) as i64;
        let by = if self.rng.percent(50) { length } else { -length };
        self.step_store_clock(by);
        if self.rng.percent(40) {
            let after = self.rng.magnitude(100, 2 * MINUTE);
            self.after(after, Event::StepStoreClock(-by));
        }
    }

    pub(crate) fn step_store_clock(&mut self, by: i64) {
        if self.draining {
            return;
        }
        self.shift_store_clock(by);
        self.census.count(if by < 0 { "store's clock set back" } else { "store's clock set forward" });
    }

    fn shift_store_clock(&mut self, by: i64) {
        say!(self.trace, "* the store's clock is set by {by} ms");
        self.truth.step(by);
        for by_store in self.nodes.iter_mut().filter_map(|node| node.by_store.as_mut()) {
            by_store.bounds.stepped(self.moment, by);
        }
    }

    /// In the end the store's clock is where it was latest: so no node is taken for one that is there because of a lease
    /// that ends far ahead.
    pub(crate) fn settle_store_clock(&mut self) {
        let by = self.truth.behind_latest();
        if by > 0 {
            self.shift_store_clock(by);
        }
        self.cut_off.fill((0, 0));
    }

    /// Looks whether a node goes by the store's time.
    pub(crate) fn check_time(&mut self, index: usize) {
        let node = &self.nodes[index];
        let Some(by_store) = &node.by_store else { return };
        let Some(ceiling) = by_store.ceiling(self.moment) else { return };
        let now = by_store.now(self.moment).unwrap_or_else(|| node.clock.read(self.moment));
        self.auditor.goes_by((index, &by_store.bounds), self.truth.now(), (now, ceiling), self.moment);
    }

    /// Machines whose clocks are days apart, and whose steady clocks run fast or slow by less than is allowed for.
    pub(crate) fn go_by_the_store(&mut self) {
        for node in &mut self.nodes {
            let off = self.rng.below(6 * DAY) as i64 - 3 * DAY as i64;
            node.clock.step(self.moment, off);
            let ppm = self.rng.below(800) as i64 - 400;
            node.by_store = Some(ByStore::new(ppm, self.sabotage));
            node.clock_width = self.profile.config.clock_width;
        }
    }
}
