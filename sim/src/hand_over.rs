//! Who is to have which shard, by the plan that all nodes come to: shards are handed over when nodes come and go, when an
//! operator drains a node or pins a shard, and when it is uneven.

use std::collections::BTreeSet;

use punctual_center::{Assignment, Message};
use punctual_core::Millis;
use punctual_core::store::{Beat, Fence, Incarnation, Roll, ShardId, Store};

use crate::Sabotage;
use crate::auditor::Promise;
use crate::links::{Frame, Side};
use crate::node::SimulatedNode;
use crate::ownership::LEASE;
use crate::say;
use crate::workload::name;
use crate::world::{Event, World};

impl World {
    /// What a node claims by a roll; and it begins to hand over what it has too much.
    pub(crate) fn plan(&mut self, index: usize, roll: &Roll) -> Vec<(ShardId, Fence)> {
        let Ok(assignment) = self.reached(index).cluster_get(Assignment::KEY) else { return Vec::new() };
        let assignment = assignment.and_then(|entry| Assignment::read(&entry.value).ok()).unwrap_or_default();
        let node = &mut self.nodes[index];
        let mut running: BTreeSet<ShardId> = node.seats().map(|(shard, _)| *shard).collect();
        running.extend(&node.membership.opening);
        let mut plan = node.planner.plan(roll, &assignment, &running);
        let is_busy = node.seats().any(|(_, seat)| seat.handing.is_some());
        if let Some((shard, to)) = plan.hand_over.filter(|_| !is_busy) {
            self.begin_hand_over(index, shard, to);
        }
        if self.sabotage == Some(Sabotage::GreedyPlan) {
            let all = (0..self.profile.shards).map(ShardId).filter(|shard| !running.contains(shard));
            plan.claims = all.map(|shard| (shard, roll.fence(shard))).collect();
        }
        plan.claims
    }

    /// A shard takes no more requests: when what is under way is durable, another node gets it.
    pub(crate) fn begin_hand_over(&mut self, index: usize, shard: ShardId, to: Incarnation) {
        if let Some(seat) = self.nodes[index].seat(shard) {
            say!(self.trace, "* node {index} is about to hand shard {} to {}", shard.0, to.node);
            seat.handing = Some(to);
            self.shard_left(index, shard);
        }
    }

    /// Hands over the shards that have nothing under way any more.
    pub(crate) fn finish_hand_overs(&mut self, index: usize) {
        let node = &self.nodes[index];
        let is_ready = |shard: &ShardId| !node.has_items(*shard);
        let ready: Vec<_> = node
            .seats()
            .filter(|(shard, seat)| seat.is_settled() && is_ready(shard))
            .filter_map(|(shard, seat)| Some((*shard, seat.fence, seat.handing.clone()?)))
            .collect();
        for (shard, fence, to) in ready {
            match self.reached(index).release(shard, fence, Some(&to)) {
                Ok(next) => self.hand_over(index, shard, next, &to),
                // Whether it was released will be known by the next beat.
                Err(why) => self.drop_shard(index, shard, Some(&why)),
            }
        }
    }

    fn hand_over(&mut self, index: usize, shard: ShardId, fence: Fence, to: &Incarnation) {
        say!(self.trace, "* node {index} hands shard {} to {} under {fence:?}", shard.0, to.node);
        self.census.count("shards handed over");
        self.auditor.handed(shard, fence, to);
        let (lost, unbegun) = self.nodes[index].drop_seat(shard);
        self.lose(index, lost);
        self.correct_place(index, shard, fence, Some(to));
        if let Some(on) = self.nodes[index].exchange.link_to(to) {
            // If that is not heard, the other one's next beat tells.
            self.put(on, Side::Asker, Frame { message: Message::Handed { shard, fence }, tag: None });
        }
        self.turn_away(index, shard, unbegun);
    }

    /// A node is told that a shard was handed to it.
    pub(crate) fn handed_to(&mut self, index: usize, shard: ShardId, fence: Fence) {
        let node = &mut self.nodes[index];
        if node.seat(shard).is_some() || node.membership.opening.contains(&shard) || node.is_leaving {
            return;
        }
        self.census.count("shards claimed by word of the one before");
        self.claim_these(index, vec![(shard, fence)], None);
    }

    /// A node is to stop: it gives its shards to others first.
    pub(crate) fn begin_to_leave(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        if node.is_awake(self.moment) && !node.is_leaving {
            say!(self.trace, "* node {index} is about to leave");
            node.is_leaving = true;
            self.tend_within(index, 0);
        }
    }

    /// A node that has given everything away goes.
    pub(crate) fn leave_if_done(&mut self, index: usize) {
        let node = &self.nodes[index];
        let has_nothing = node.seats().next().is_none() && node.membership.opening.is_empty() && !node.committing;
        if node.is_leaving && has_nothing {
            let beat = Beat { who: node.membership.who.clone(), address: String::new(), lease: Millis::ZERO };
            // If it is not heard, the lease ends by itself.
            _ = self.reached(index).beat(&beat);
            self.census.count("nodes that left");
            self.crash(index);
        }
    }

    /// An operator drains a node, or pins a shard, for a while.
    pub(crate) fn assign(&mut self, index: usize) {
        let mut assignment = Assignment::default();
        let node = name(format!("node-{index}"));
        if self.rng.percent(50) {
            assignment.drains.insert(node);
        } else {
            let shard = ShardId(self.rng.below(u64::from(self.profile.shards)) as u16);
            assignment.pins.insert(shard, node);
        }
        self.census.count("drains and pins");
        self.put_assignment(&assignment);
        let length = self.rng.magnitude(1_000, 5 * 60_000);
        self.after(length, Event::Reassign);
    }

    /// What operators have said does not count any more.
    pub(crate) fn reassign(&mut self) {
        self.put_assignment(&Assignment::default());
    }

    fn put_assignment(&mut self, assignment: &Assignment) {
        let Ok(entry) = self.store.cluster_get(Assignment::KEY) else { return };
        let seen = entry.map_or(0, |entry| entry.revision);
        say!(self.trace, "* {assignment:?}");
        _ = self.store.cluster_put(Assignment::KEY, seen, assignment.write().as_bytes());
    }

    /// By now the shards are divided evenly among all nodes.
    pub(crate) fn check_balance(&mut self) {
        self.awaits_balance = false;
        if !self.is_tidy() {
            let what = "nothing has gone wrong for a while, but a change of settings is still under way".to_owned();
            self.auditor.accuse(Promise::SettingsAgree, "", what);
        }
        // What clients wanted otherwise may have been held up between nodes until now.
        let demands = self.workload.settings();
        self.demand(demands);
        if !self.profile.planned {
            return;
        }
        let counts: Vec<usize> = self.nodes.iter().map(|node| node.seats().count()).collect();
        let (fewest, most) = (counts.iter().min().unwrap_or(&0), counts.iter().max().unwrap_or(&0));
        if most - fewest > 1 || counts.iter().sum::<usize>() != usize::from(self.profile.shards) {
            let what = format!("nothing has gone wrong for a while, but the nodes have {counts:?} shards");
            self.auditor.accuse(Promise::Balanced, "", what);
        }
        self.census.count("divisions checked");
    }

    /// Whether all nodes know of each other and of where the shards are, so that they need not beat any more.
    pub(crate) fn is_settled(&self) -> bool {
        let knows_all = |node: &SimulatedNode| {
            let places = &node.exchange.places;
            let knows = |other: &SimulatedNode| {
                other.seats().all(|(shard, _)| places.known(*shard).1 == Some(&other.membership.who))
            };
            node.up && !node.is_leaving && self.nodes.iter().all(knows)
        };
        let is_linked = |node: &SimulatedNode| {
            let is_there = |who: &Incarnation| self.nodes.iter().any(|node| node.up && node.membership.who == *who);
            let kept = &node.exchange.kept;
            kept.iter().all(|who| is_there(who) && node.exchange.link_to(who).is_some())
        };
        !self.awaits_balance && self.nodes.iter().all(|node| knows_all(node) && is_linked(node))
    }

    /// The beat of a node.
    pub(crate) fn word_of(&self, index: usize) -> Beat {
        let node = &self.nodes[index];
        let levels = self.profile.mixed.then_some(1..=node.version.highest);
        let card = punctual_center::Card { is_leaving: node.is_leaving, levels, ..Default::default() };
        Beat { who: node.membership.who.clone(), address: card.to_string(), lease: LEASE }
    }
}
