//! Which node has which shard: starting, beating, claiming, opening, and letting go.

use punctual_core::store::{Beat, Claim, Refusal, Roll, ShardId, Store, StoreError, Tenure};
use punctual_core::{Millis, OpenError, Shard};

use crate::Sabotage;
use crate::auditor::Grant;
use crate::clock::Moment;
use crate::say;
use crate::world::{Event, World};

/// For how long the word of a node counts.
pub(crate) const LEASE: Millis = Millis(8_000);
/// How long it waits from beat to beat.
const PAUSE: (Moment, Moment) = (1_000, 4_000);

impl World {
    pub(crate) fn start(&mut self, index: usize) {
        let number = self.rng.draw();
        let node = &mut self.nodes[index];
        if node.up {
            return;
        }
        node.start(self.moment, number);
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
            let beat = Beat { who: node.membership.who.clone(), address: String::new(), lease: LEASE };
            if let Ok(roll) = self.store.beat(&beat) {
                self.heed(index, roll);
            }
        }
        let is_owned = |shard| self.nodes.iter().any(|node| node.seats().any(|(id, _)| id.0 == shard));
        let all_owned = (0..self.profile.shards).all(is_owned);
        if !all_owned || (self.nodes.len() > 1 && !self.draining) {
            let pause = self.rng.between(PAUSE.0, PAUSE.1);
            self.tend_within(index, pause);
        }
    }

    /// A node hears who is there: it drops what it has lost, and goes for what it may have.
    fn heed(&mut self, index: usize, roll: Roll) {
        let node = &mut self.nodes[index];
        let owned: Vec<_> = node.seats().map(|(shard, seat)| (*shard, seat.fence)).collect();
        let in_force: Vec<_> = owned.iter().map(|(shard, _)| roll.fence(*shard)).collect();
        if !node.membership.heed(roll, self.moment) {
            self.census.count("beats that did not count");
        }
        for ((shard, fence), current) in owned.into_iter().zip(in_force) {
            if current != fence {
                self.census.count("deposed owners that heard it by a beat");
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
        let clock = node.clock.read(self.moment);
        let mut wanted: Vec<_> = (0..self.profile.shards).map(ShardId).collect();
        wanted.retain(|shard| node.seat(*shard).is_none() && !node.membership.opening.contains(shard));
        wanted.retain(|shard| node.membership.may_claim(*shard, &roll, clock));
        // Who has others beside it leaves them something, as far as it goes.
        let shares = self.nodes.len() > 1 && !self.draining;
        wanted.retain(|_| !shares || self.rng.percent(60));
        let wanted: Vec<_> = wanted.into_iter().map(|shard| (shard, roll.fence(shard))).collect();
        let before: Vec<_> = wanted.iter().map(|(shard, _)| self.store.memory().tenure(*shard).fence).collect();
        let who = self.nodes[index].membership.who.clone();
        // Without an answer nothing is known, and it will be by the next beat.
        let Ok(answers) = self.store.claim(&who, &wanted) else { return };
        let is_heard = self.draining || !self.rng.percent(self.profile.lost_answers);
        for (((shard, seen), in_force), answer) in wanted.into_iter().zip(before).zip(answers) {
            match answer {
                Claim::Outrun(_) => self.census.count("claims that were outrun"),
                Claim::Granted(tenure) => {
                    self.auditor.granted(&Grant { who: &who, shard, seen, in_force, tenure, roll: &roll });
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
        let mut config = self.profile.config.clone();
        config.seed ^= u64::from(shard.0);
        config.shards = self.profile.shards;
        if self.sabotage == Some(Sabotage::GreedyShards) {
            config.window = Millis::from_hours(100 * 365 * 24);
            (config.timers, config.slice, config.cache) = (1 << 20, 1 << 20, 1 << 30);
        }
        let now = node.now(self.moment);
        match Shard::open(shard, tenure, config, now, &self.store) {
            Ok(opened) => {
                let fence = tenure.fence.0;
                say!(self.trace, "* node {index} opens shard {} under fence {fence} at {now}", shard.0);
                self.census.count("shards opened");
                self.nodes[index].take_seat(opened);
                self.auditor.reopened(shard);
            }
            Err(OpenError::Store(why)) => self.drop_shard_under(index, shard, tenure, Some(&why)),
            Err(error @ OpenError::Shards { .. }) => panic!("{error}"),
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
        let lost = self.nodes[index].drop_seat(shard);
        self.lose(lost);
        self.drop_shard_under(index, shard, tenure, why);
    }

    /// The same for a shard whose memory is gone already, or never was.
    pub(crate) fn drop_shard_under(&mut self, index: usize, shard: ShardId, tenure: Tenure, why: Option<&StoreError>) {
        let life = self.nodes[index].life;
        let mut lost = Vec::new();
        for commit in self.commits.values_mut().filter(|commit| commit.node == index && commit.life == life) {
            // What is on its way may still take effect, but nobody hears of it.
            lost.extend(commit.abandon(shard));
        }
        say!(self.trace, "* node {index} drops shard {}: {why:?}", shard.0);
        self.lose(lost);
        if why.is_some_and(|why| self.nodes[index].membership.tells_of_loss(tenure.fence, why)) {
            self.notice_loss(index, shard);
        }
        let delay = self.rng.below(1_000);
        self.tend_within(index, delay);
    }
}
