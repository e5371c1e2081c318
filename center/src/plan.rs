//! Who is to have which shard: what a node does about it after each of its beats.
//!
//! All nodes see the same roll and come to the same plan, so nobody has to lead. Where two rolls differ by a moment, the
//! fences decide. Shards stay where they are unless that is uneven by two or more, an operator wants it otherwise, or
//! their node is gone; each node hands over one at a time.
//!
//! ```text
//!  nobody's, or of a node that is gone ──► claimed by the node with the fewest
//!  pinned elsewhere, at a node that is drained, at one that has two more than another ──► handed over
//! ```

use std::collections::{BTreeMap, BTreeSet};

use punctual_core::Name;
use punctual_core::store::{Fence, Incarnation, Roll, ShardId};

use crate::assignment::Assignment;
use crate::card::Card;

/// How many rolls in a row have to show that a node's lease is over before its shards are taken.
const SHOWN: u32 = 2;
/// The same for a node that could not beat itself for a while: maybe nobody could, and all are about to.
const SHOWN_AFTER_OUTAGE: u32 = 5;

/// What a node is to do now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Claim these shards, whose fences are these.
    pub claims: Vec<(ShardId, Fence)>,
    /// Hand this shard over to that node.
    pub hand_over: Option<(ShardId, Incarnation)>,
}

/// Makes a node's plans, roll by roll.
#[derive(Clone, Debug)]
pub struct Planner {
    me: Incarnation,
    shards: u16,
    /// The time of the roll before.
    before: Option<u64>,
    /// Nodes whose leases are over, and how many rolls more have to show that.
    silent: BTreeMap<Incarnation, u32>,
}

impl Planner {
    /// For this life of a node, on a store of so many shards.
    pub fn new(me: Incarnation, shards: u16) -> Planner {
        Planner { me, shards, before: None, silent: BTreeMap::new() }
    }

    /// What to do after a beat that was answered by this roll, while these shards run here.
    pub fn plan(&mut self, roll: &Roll, assignment: &Assignment, running: &BTreeSet<ShardId>) -> Plan {
        self.watch(roll);
        let Some(me) = roll.nodes.iter().position(|present| present.who == self.me) else { return Plan::default() };
        let mut draft = Draft::new(self, roll, assignment);
        let claims = draft.claims(roll, me, running);
        let hand_over = draft.hand_over(me, running).map(|(shard, to)| (shard, roll.nodes[to].who.clone()));
        Plan { claims, hand_over }
    }

    /// Whether there are shards of nodes that are silent and may be dead: the next rolls tell.
    pub fn is_waiting(&self, roll: &Roll) -> bool {
        let is_in_doubt = |by: &Incarnation| self.silent.get(by).is_some_and(|left| *left > 0);
        roll.shards.iter().filter_map(|held| held.by.as_ref()).any(is_in_doubt)
    }

    /// Notes whose leases are over.
    fn watch(&mut self, roll: &Roll) {
        let now = roll.now();
        let lease = roll.nodes.iter().find(|present| present.who == self.me).map_or(0, |me| me.until.since(now).0);
        let gap = self.before.replace(roll.micros).map_or(0, |before| roll.micros.saturating_sub(before) / 1_000);
        let shown = if gap > lease / 2 { SHOWN_AFTER_OUTAGE } else { SHOWN };
        let over: BTreeSet<&Incarnation> =
            roll.nodes.iter().filter(|present| present.until <= now).map(|present| &present.who).collect();
        self.silent.retain(|who, _| over.contains(who));
        for who in over {
            let left = self.silent.entry(who.clone()).or_insert(shown);
            *left = left.saturating_sub(1);
        }
    }
}

/// A node, by its place on the roll.
type Rank = usize;

/// Where all shards are, and where they go.
struct Draft<'a> {
    /// By rank: the shards that a node has.
    held: Vec<BTreeSet<ShardId>>,
    /// Shards of nobody, or of nodes that are gone.
    free: Vec<ShardId>,
    /// Who takes shards.
    takers: Vec<Rank>,
    /// Who gives all of its shards away.
    givers: Vec<Rank>,
    /// Where shards are to be, of those that are pinned to a node that takes shards.
    pins: BTreeMap<ShardId, Rank>,
    planner: &'a Planner,
}

impl<'a> Draft<'a> {
    fn new(planner: &'a Planner, roll: &Roll, assignment: &Assignment) -> Draft<'a> {
        let is_leaving = |rank: &Rank| Card::read(&roll.nodes[*rank].address).is_leaving;
        let is_drained = |rank: &Rank| is_leaving(rank) || assignment.drains.contains(&roll.nodes[*rank].who.node);
        let there: Vec<Rank> =
            (0..roll.nodes.len()).filter(|rank| !planner.silent.contains_key(&roll.nodes[*rank].who)).collect();
        let (mut givers, mut takers): (Vec<Rank>, Vec<Rank>) = there.iter().partition(|rank| is_drained(rank));
        if takers.is_empty() {
            // Somebody has to have them.
            (takers, givers) = (there.into_iter().filter(|rank| !is_leaving(rank)).collect(), Vec::new());
        }
        let by_name = |node: &Name| takers.iter().copied().find(|rank| roll.nodes[*rank].who.node == *node);
        let pins = assignment.pins.iter().filter_map(|(shard, node)| Some((*shard, by_name(node)?))).collect();
        let mut draft =
            Draft { held: vec![BTreeSet::new(); roll.nodes.len()], free: Vec::new(), takers, givers, pins, planner };
        for shard in (0..planner.shards).map(ShardId) {
            match draft.holder(roll, shard) {
                Some(rank) => _ = draft.held[rank].insert(shard),
                None => draft.free.push(shard),
            }
        }
        draft
    }

    /// Who has a shard and is there, or may still be.
    fn holder(&self, roll: &Roll, shard: ShardId) -> Option<Rank> {
        let by = roll.held(shard)?.by.as_ref()?;
        let rank = roll.nodes.iter().position(|present| present.who == *by)?;
        (self.planner.silent.get(by) != Some(&0)).then_some(rank)
    }

    /// Who takes shards and has the fewest.
    fn neediest(&self) -> Option<Rank> {
        self.takers.iter().copied().min_by_key(|rank| self.held[*rank].len())
    }

    /// Divides the shards that are free, and says which this node claims: its part, and those that it has and does not run.
    fn claims(&mut self, roll: &Roll, me: Rank, running: &BTreeSet<ShardId>) -> Vec<(ShardId, Fence)> {
        // Those that are pinned first, so that the others make up for them.
        let (pinned, others): (Vec<ShardId>, Vec<ShardId>) =
            std::mem::take(&mut self.free).into_iter().partition(|shard| self.pins.contains_key(shard));
        for shard in pinned.into_iter().chain(others) {
            if let Some(taker) = self.pins.get(&shard).copied().or_else(|| self.neediest()) {
                self.held[taker].insert(shard);
            }
        }
        self.held[me].difference(running).map(|shard| (*shard, roll.fence(*shard))).collect()
    }

    /// Goes through what all nodes hand over now, each one shard at most, and says what this one does.
    fn hand_over(&mut self, me: Rank, running: &BTreeSet<ShardId>) -> Option<(ShardId, Rank)> {
        let mut mine = None;
        let mut given: BTreeSet<Rank> = BTreeSet::new();
        while let Some((shard, from, to)) = self.next_move(&given) {
            given.insert(from);
            self.held[from].remove(&shard);
            self.held[to].insert(shard);
            if from == me {
                mine = Some((shard, to));
            }
        }
        mine.filter(|(shard, _)| running.contains(shard))
    }

    /// The next shard that has to move, from whom and to whom, of nodes that have given none yet.
    fn next_move(&self, given: &BTreeSet<Rank>) -> Option<(ShardId, Rank, Rank)> {
        let neediest = self.neediest()?;
        let is_free = |rank: &&Rank| !given.contains(*rank);
        for rank in self.takers.iter().chain(&self.givers).filter(is_free) {
            let is_misplaced = |(shard, to): &(&ShardId, &Rank)| *to != rank && self.held[*rank].contains(*shard);
            if let Some((shard, to)) = self.pins.iter().find(is_misplaced) {
                return Some((*shard, *rank, *to));
            }
        }
        for rank in self.givers.iter().filter(is_free) {
            if let Some(shard) = self.held[*rank].first() {
                return Some((*shard, *rank, neediest));
            }
        }
        let movable = |rank: Rank| self.held[rank].iter().rev().find(|shard| !self.pins.contains_key(shard)).copied();
        let richest = self.takers.iter().filter(is_free).filter_map(|rank| Some((*rank, movable(*rank)?)));
        // Of several that have as many, the first one gives.
        let (from, shard) = richest.rev().max_by_key(|(rank, _)| self.held[*rank].len())?;
        (self.held[from].len() >= self.held[neediest].len() + 2).then_some((shard, from, neediest))
    }
}
