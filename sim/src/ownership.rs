//! Which node has which shard: starting, claiming, renewing, and letting go.

use punctual_core::store::{Claim, Fence, ShardId, Store, StoreError};
use punctual_core::{Millis, Shard};

use crate::Sabotage;
use crate::say;
use crate::world::{Event, World};

/// For how long a node that stands alone owns its shards.
const FOR_EVER: Millis = Millis(u64::MAX / 4);
/// For how long a node owns a shard if there are others.
const LEASE: Millis = Millis(8_000);

impl World {
    pub(crate) fn start(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        if node.up {
            return;
        }
        node.start(self.moment);
        let life = node.life;
        say!(self.trace, "* node {index} starts, its clock shows {}", node.clock.read(self.moment));
        if self.nodes.len() > 1 {
            return self.tend(index, life);
        }
        for shard in (0..self.profile.shards).map(ShardId) {
            self.claim(index, life, shard);
        }
    }

    /// Tries to get and open a shard.
    pub(crate) fn claim(&mut self, index: usize, life: u64, shard: ShardId) {
        let node = &mut self.nodes[index];
        if !node.up || node.life != life || node.seat(shard).is_some() {
            return;
        }
        if !node.is_awake(self.moment) {
            let until = node.stalled_until;
            return self.after(until - self.moment, Event::Claim(index, life, shard));
        }
        let alone = self.profile.nodes == 1 || self.draining;
        let lease = if alone { FOR_EVER } else { LEASE };
        let opened = match self.store.claim(shard, &node.name, lease) {
            Ok(Claim::Granted(fence)) => {
                let now = node.now(self.moment);
                let mut config = self.profile.config.clone();
                config.seed ^= u64::from(shard.0);
                config.shards = self.profile.shards;
                if self.sabotage == Some(Sabotage::GreedyShards) {
                    config.window = Millis::from_hours(100 * 365 * 24);
                    (config.timers, config.slice, config.cache) = (1 << 20, 1 << 20, 1 << 30);
                }
                Shard::open(shard, fence, config, now, &self.store).map(|shard| Some((shard, fence)))
            }
            Ok(Claim::Held { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        };
        match opened {
            Ok(Some((opened, fence))) => {
                say!(self.trace, "* node {index} opens shard {} under fence {} at {}", shard.0, fence.0, opened.now());
                self.census.count("shards opened");
                node.take_seat(opened, fence);
                self.auditor.reopened(shard);
            }
            Ok(None) if self.nodes.len() > 1 => {}
            Ok(None) | Err(_) => {
                let delay = self.rng.between(50, 2_000);
                self.after(delay, Event::Claim(index, life, shard));
            }
        }
    }

    /// A read has come to its end; a node that stands still notices later.
    pub(crate) fn read_ended(&mut self, index: usize, life: u64, shard: ShardId, fence: Fence) {
        let node = &mut self.nodes[index];
        if !node.up || node.life != life {
            return;
        }
        if !node.is_awake(self.moment) {
            let until = node.stalled_until;
            return self.after(until - self.moment, Event::Read(index, life, shard, fence));
        }
        node.read_ended(shard, fence);
    }

    /// Renews what the node owns and takes what it can get.
    pub(crate) fn tend(&mut self, index: usize, life: u64) {
        let node = &self.nodes[index];
        if !node.up || node.life != life {
            return;
        }
        let settled = self.draining
            && (0..self.profile.shards)
                .all(|shard| self.nodes.iter().any(|node| node.seats().any(|(id, _)| id.0 == shard)));
        if node.is_awake(self.moment) {
            let lease = if self.draining { FOR_EVER } else { LEASE };
            let owned: Vec<_> = node.seats().map(|(shard, seat)| (*shard, seat.fence)).collect();
            let mut fenced = Vec::new();
            for (shard, fence) in &owned {
                if let Err(StoreError::Fenced(_)) = self.store.renew(*shard, *fence, lease) {
                    fenced.push(*shard);
                }
            }
            for shard in fenced {
                self.census.count("shards lost to another node");
                self.drop_shard(index, shard);
            }
            for shard in (0..self.profile.shards).map(ShardId) {
                self.claim(index, life, shard);
            }
        }
        if !settled {
            let pause = self.rng.between(1_000, 4_000);
            self.after(pause, Event::Tend(index, life));
        }
    }

    /// A shard's memory is not to be trusted any more.
    pub(crate) fn drop_shard(&mut self, index: usize, shard: ShardId) {
        let mut lost = self.nodes[index].drop_seat(shard);
        let life = self.nodes[index].life;
        for commit in self.commits.values_mut().filter(|commit| commit.node == index && commit.life == life) {
            lost.extend(commit.abandon(shard));
        }
        say!(self.trace, "* node {index} drops shard {}", shard.0);
        self.lose(lost);
        self.dropped(index, shard);
    }

    pub(crate) fn dropped(&mut self, index: usize, shard: ShardId) {
        let life = self.nodes[index].life;
        for commit in self.commits.values_mut().filter(|commit| commit.node == index && commit.life == life) {
            // What is on its way may still take effect, but nobody hears of it.
            let lost = commit.abandon(shard);
            self.census.add("unknown outcomes", lost.len() as u64);
        }
        let delay = self.rng.below(1_000);
        self.after(delay, Event::Claim(index, life, shard));
    }
}
