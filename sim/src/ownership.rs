//! Which node has which shard: starting, beating, claiming, opening, and letting go.

use punctual_core::store::{Claim, Fence, Refusal, Roll, ShardId, Store, StoreError, Tenure};
use punctual_core::{Millis, OpenError, Shard};

use crate::Sabotage;
use crate::auditor::Grant;
use crate::beats::Asked;
use crate::clock::Moment;
use crate::say;
use crate::store::Reach;
use crate::world::{Event, World};

/// For how long the word of a node counts.
pub(crate) const LEASE: Millis = Millis(8_000);
/// How long it waits from beat to beat.
const PAUSE: (Moment, Moment) = (1_000, 4_000);
/// How long it waits at the end of a run, when it beats only to hear the store's time.
const LULL: Moment = 600_000;

impl World {
    pub(crate) fn start(&mut self, index: usize) {
        let number = self.rng.draw();
        let node = &mut self.nodes[index];
        if node.up {
            return;
        }
        if !self.may_start(index) {
            let pause = self.rng.magnitude(10, 10_000);
            return self.after(pause, Event::Start(index));
        }
        let node = &mut self.nodes[index];
        node.start(self.moment, number, self.profile.shards);
        say!(self.trace, "* node {index} starts, its clock shows {}", node.clock.read(self.moment));
        self.tend_within(index, 0);
    }

    /// Lets a node beat so soon, unless it is about to anyway.
    pub(crate) fn tend_within(&mut self, index: usize, delay: Moment) {
        let (node, at) = (&mut self.nodes[index], self.moment + delay);
        if node.up && node.membership.tend_at.is_none_or(|planned| planned > at) {
            node.membership.tend_at = Some(at);
            let life = node.life;
            self.after(delay, Event::Tend(index, life));
        }
    }

    /// A node shows that it is there, and hears who else is. Nodes that have others beside them do so all the time, and
    /// who stands alone does when it needs a shard: its fence says enough.
    pub(crate) fn tend(&mut self, index: usize, life: u64) {
        let node = &mut self.nodes[index];
        if !node.up || node.life != life || node.membership.tend_at != Some(self.moment) {
            return;
        }
        node.membership.tend_at = None;
        if node.is_awake(self.moment) {
            self.send_beat(index);
            self.leave_if_done(index);
        }
        let goes_on = !self.draining && (self.nodes.len() > 1 || self.profile.one_clock);
        let is_over = self.is_in_place() && (!self.profile.linked || self.is_tidy());
        if goes_on || !is_over {
            let pause = self.rng.between(PAUSE.0, PAUSE.1);
            self.tend_within(index, pause);
        } else if self.profile.one_clock {
            self.tend_within(index, LULL);
        }
    }

    /// A node hears who is there: it drops what it has lost, and goes for what it may have.
    pub(crate) fn heed(&mut self, asked: Asked, roll: Roll) {
        let Asked { node: index, asking, owned, .. } = asked;
        if !self.mind_level(index, &roll) {
            return;
        }
        let node = &mut self.nodes[index];
        let who = node.membership.who.clone();
        if !node.membership.heed(roll.clone(), self.moment) {
            self.census.count("beats that did not count");
        }
        if self.profile.linked {
            let others = roll.there().filter(|present| present.who != who);
            let peers = others.map(|present| present.who.clone()).collect();
            self.keep_links(index, peers);
            for held in &roll.shards {
                self.told_place(index, asking, held);
            }
            self.look_after_changes(index, &roll);
        }
        for (shard, fence) in owned {
            let current = roll.fence(shard);
            let is_held = self.nodes[index].seat(shard).is_some_and(|seat| seat.fence == fence);
            if current != fence && is_held {
                self.census.count("deposed owners that heard it by a beat");
                if self.profile.linked {
                    self.correct_place(index, shard, current, roll.held(shard).and_then(|held| held.by.as_ref()));
                }
                self.drop_shard(index, shard, Some(&Refusal::Fenced { current }.into()));
            }
        }
        let latency = if self.profile.exact { 0 } else { self.rng.below(30) };
        let life = self.nodes[index].life;
        self.after(latency, Event::Claim(index, life));
    }

    /// A node claims what it may have by the roll of its latest beat.
    pub(crate) fn claim(&mut self, index: usize, life: u64) {
        let node = &mut self.nodes[index];
        if !node.up || node.life != life {
            return;
        }
        if !node.is_awake(self.moment) {
            let until = node.stalled_until;
            return self.after(until - self.moment, Event::Claim(index, life));
        }
        let Some(roll) = node.membership.roll_to_claim_by(self.moment) else { return };
        if self.profile.planned {
            let wanted = self.plan(index, &roll);
            return self.claim_these(index, wanted, Some(&roll));
        }
        let clock = node.clock.read(self.moment);
        let mut wanted: Vec<_> = (0..self.profile.shards).map(ShardId).collect();
        wanted.retain(|shard| node.seat(*shard).is_none() && !node.membership.opening.contains(shard));
        wanted.retain(|shard| node.membership.may_claim(*shard, &roll, clock));
        // Who has others beside it leaves them something, as far as it goes.
        let shares = self.nodes.len() > 1 && !self.draining;
        wanted.retain(|_| !shares || self.rng.percent(60));
        let wanted: Vec<_> = wanted.into_iter().map(|shard| (shard, roll.fence(shard))).collect();
        self.claim_these(index, wanted, Some(&roll));
    }

    /// Claims these shards, by a roll or because they were handed over.
    pub(crate) fn claim_these(&mut self, index: usize, wanted: Vec<(ShardId, Fence)>, roll: Option<&Roll>) {
        let before: Vec<_> = wanted.iter().map(|(shard, _)| self.store.memory().tenure(*shard).fence).collect();
        let who = self.nodes[index].membership.who.clone();
        // Without an answer nothing is known, and it will be by the next beat.
        let reach = self.reach(index);
        if reach == Reach::None {
            return;
        }
        let Ok(answers) = self.store.claim(&who, &wanted) else { return };
        let is_lost = reach == Reach::OneWay || self.rng.percent(self.profile.lost_answers);
        let is_heard = self.draining || !is_lost;
        for (((shard, seen), in_force), answer) in wanted.into_iter().zip(before).zip(answers) {
            match answer {
                Claim::Outrun(_) => self.census.count("claims that were outrun"),
                Claim::Granted(tenure) => {
                    self.auditor.granted(&Grant { who: &who, shard, seen, in_force, tenure, roll });
                    self.unnoticed.retain(|(node, _, lost)| *node == index || *lost != shard);
                    if is_heard {
                        self.granted(index, shard, tenure);
                    } else {
                        self.census.count("claims whose answer was lost");
                    }
                }
            }
        }
    }

    /// A node has got a shard, and opens it; reading may take its time.
    fn granted(&mut self, index: usize, shard: ShardId, tenure: Tenure) {
        if self.nodes[index].membership.has_more_than(shard, tenure.serial) {
            self.notice_loss(index, shard);
        }
        if self.profile.linked {
            let who = self.nodes[index].membership.who.clone();
            self.correct_place(index, shard, tenure.fence, Some(&who));
        }
        let node = &mut self.nodes[index];
        node.membership.confirm(shard, tenure.serial);
        node.membership.opening.insert(shard);
        let life = node.life;
        match self.read_slowness {
            0 => self.open(index, life, shard, tenure),
            slowness => {
                let takes = self.rng.below(slowness + 1);
                self.after(takes, Event::Open(index, life, shard, tenure));
            }
        }
    }

    pub(crate) fn open(&mut self, index: usize, life: u64, shard: ShardId, tenure: Tenure) {
        let node = &mut self.nodes[index];
        if !node.up || node.life != life {
            return;
        }
        if !node.is_awake(self.moment) {
            let until = node.stalled_until;
            return self.after(until - self.moment, Event::Open(index, life, shard, tenure));
        }
        node.membership.opening.remove(&shard);
        if !self.may_open(index) {
            return self.drop_shard_under(index, shard, tenure, None);
        }
        let node = &mut self.nodes[index];
        let mut config = self.profile.config.clone();
        config.seed ^= u64::from(shard.0);
        config.shards = self.profile.shards;
        if self.sabotage == Some(Sabotage::GreedyShards) {
            config.window = Millis::from_hours(100 * 365 * 24);
            (config.timers, config.slice, config.cache) = (1 << 20, 1 << 20, 1 << 30);
        }
        let now = node.now(self.moment);
        match Shard::open(shard, tenure, config, now, &self.reached(index)) {
            Ok(opened) => {
                let fence = tenure.fence.0;
                say!(self.trace, "* node {index} opens shard {} under fence {fence} at {now}", shard.0);
                self.census.count("shards opened");
                self.nodes[index].take_seat(opened);
                self.auditor.reopened(shard);
                self.check_readable(index, shard);
                self.shard_came(index, shard);
            }
            Err(OpenError::Store(why)) => self.drop_shard_under(index, shard, tenure, Some(&why)),
            Err(error @ (OpenError::Shards { .. } | OpenError::Growing)) => panic!("{error}"),
        }
    }

    /// A read has come to its end; a node that stands still notices later.
    pub(crate) fn read_ended(&mut self, index: usize, life: u64, shard: ShardId, tenure: Tenure) {
        let node = &mut self.nodes[index];
        if !node.up || node.life != life {
            return;
        }
        if !node.is_awake(self.moment) {
            let until = node.stalled_until;
            return self.after(until - self.moment, Event::Read(index, life, shard, tenure));
        }
        node.read_ended(shard, tenure.fence);
    }

    /// A shard's memory is not to be trusted any more, for this reason, or is given up.
    pub(crate) fn drop_shard(&mut self, index: usize, shard: ShardId, why: Option<&StoreError>) {
        let Some(seat) = self.nodes[index].seat(shard) else { return };
        let tenure = seat.shard.tenure();
        let (lost, unbegun) = self.nodes[index].drop_seat(shard);
        self.lose(index, lost);
        self.drop_shard_under(index, shard, tenure, why);
        self.turn_away(index, shard, unbegun);
    }

    /// The same for a shard whose memory is gone already, or never was.
    pub(crate) fn drop_shard_under(&mut self, index: usize, shard: ShardId, tenure: Tenure, why: Option<&StoreError>) {
        self.shard_left(index, shard);
        let life = self.nodes[index].life;
        let mut lost = Vec::new();
        for commit in self.commits.values_mut().filter(|commit| commit.node == index && commit.life == life) {
            // What is on its way may still take effect, but nobody hears of it.
            lost.extend(commit.abandon(shard));
        }
        say!(self.trace, "* node {index} drops shard {}: {why:?}", shard.0);
        self.lose(index, lost);
        if why.is_some_and(|why| self.nodes[index].membership.tells_of_loss(tenure.fence, why)) {
            self.notice_loss(index, shard);
        }
        let delay = self.rng.below(1_000);
        self.tend_within(index, delay);
    }
}
