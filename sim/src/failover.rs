//! A store that goes back to an older state: a copy that was behind takes over, and the last moments are lost.
//!
//! What was confirmed in those moments may be lost, and nothing else; that is what the auditor goes back by. And whoever
//! had it confirmed has to notice.

use punctual_core::store::{ShardId, Tenure};

use crate::Sabotage;
use crate::auditor::Promise;
use crate::say;
use crate::world::{Event, World};

/// How far a copy may be behind when it takes over.
const BEHIND: u64 = 30_000;

impl World {
    /// The store's copy stays behind from now on, and takes over after a while.
    pub(crate) fn fall_behind(&mut self, index: usize) {
        if self.is_behind {
            return;
        }
        self.is_behind = true;
        self.store.memory().hold();
        self.auditor.hold();
        self.held_levels = self.levels.clone();
        let behind = self.rng.magnitude(1, BEHIND);
        say!(self.trace, "* the store's copy falls behind, and takes over in {behind} ms");
        self.after(behind, Event::FailOver);
        // Often because something else happens, of which the copy does not hear either.
        if self.rng.percent(50) {
            self.give_back(index);
        }
    }

    /// The copy takes over.
    pub(crate) fn fail_over(&mut self) {
        self.is_behind = false;
        if self.draining {
            return;
        }
        if self.sabotage == Some(Sabotage::DeeperLoss) {
            self.auditor.hold();
        }
        let tenures = |world: &World| -> Vec<(ShardId, Tenure)> {
            let shards = (0..world.profile.shards).map(ShardId);
            shards.map(|shard| (shard, world.store.memory().tenure(shard))).collect()
        };
        let before = tenures(self);
        // Some keep who owns what elsewhere than the rows, and it does not go back.
        let with_owners = self.rng.percent(50);
        match with_owners {
            true => {
                self.levels = self.held_levels.clone();
                self.store.memory().fail_over();
            }
            false => self.store.memory().crash(),
        }
        self.failovers += 1;
        self.auditor.doubt_changes();
        self.census.count("failovers");
        say!(self.trace, "* the store goes back to an older state, with its owners: {with_owners}");
        for ((shard, before), (_, after)) in before.into_iter().zip(tenures(self)) {
            if after.serial < before.serial {
                self.lose_commits(shard, before, after);
            } else if after.fence < before.fence {
                // Whoever had it before has it again, with all that it knows.
                self.auditor.go_back(shard);
            }
        }
    }

    /// A shard has lost commits: who owns it, or owned it, has to notice, if it is not taken from it before.
    fn lose_commits(&mut self, shard: ShardId, before: Tenure, after: Tenure) {
        say!(self.trace, "* shard {} has lost its commits after {} of {}", shard.0, after.serial, before.serial);
        self.census.add("commits lost by failovers", before.serial - after.serial);
        self.auditor.go_back(shard);
        for commit in self.commits.values_mut() {
            commit.lose(shard, after.serial).into_iter().for_each(|record| self.auditor.take_back(record));
        }
        for node in self.nodes.iter_mut().filter(|node| node.up) {
            let (index, life) = (node.index, node.life);
            let owns = node.seat(shard).is_some_and(|seat| [before.fence, after.fence].contains(&seat.fence));
            if owns && node.membership.has_more_than(shard, after.serial) {
                self.unnoticed.insert((index, life, shard));
            }
        }
    }

    /// A late attempt has brought back what was lost. If nothing is missing any more, there is nothing to be noticed.
    pub(crate) fn brought_back(&mut self, index: usize, shard: ShardId) {
        let (node, serial) = (&self.nodes[index], self.store.memory().tenure(shard).serial);
        if !node.membership.has_more_than(shard, serial) {
            self.unnoticed.remove(&(index, node.life, shard));
        }
    }

    /// A node notices that the store has lost what it had confirmed, and says so.
    pub(crate) fn notice_loss(&mut self, index: usize, shard: ShardId) {
        let life = self.nodes[index].life;
        self.nodes[index].membership.forget(shard);
        if self.sabotage == Some(Sabotage::SilentLoss) {
            return;
        }
        self.census.count("losses noticed");
        say!(self.trace, "* node {index} notices that shard {} has lost something", shard.0);
        self.unnoticed.remove(&(index, life, shard));
        if self.failovers == 0 {
            let what = format!("node {index} says that commits of shard {} were lost, but none were", shard.0);
            self.auditor.accuse(Promise::KeepsWorking, "", what);
        }
    }

    /// Whoever had something confirmed that was lost must have noticed by now.
    pub(crate) fn check_noticed(&mut self) {
        let lives = &self.nodes;
        self.unnoticed.retain(|(node, life, _)| lives[*node].up && lives[*node].life == *life);
        if let Some((node, _, shard)) = self.unnoticed.first() {
            let what =
                format!("commits of shard {} were lost that node {node} had confirmed: it did not notice", shard.0);
            self.auditor.accuse(Promise::NothingIsLost, "", what);
        }
    }
}
