//! What a node knows of who is there and who owns what: the roll of its latest beat, and how far it has seen each shard.
//! It judges by the store's clock alone, whatever its own shows.

use std::collections::{BTreeMap, BTreeSet};

use punctual_core::store::{Fence, Incarnation, Refusal, Roll, ShardId, StoreError};
use punctual_core::{Name, Timestamp};

use crate::Sabotage;
use crate::clock::Moment;

/// How old a roll may be that somebody claims by.
const FRESH: Moment = 1_000;

/// A node among others.
#[derive(Debug)]
pub struct Membership {
    /// Who it is.
    pub who: Incarnation,
    /// Whether it waits for the answer to a beat.
    pub is_beating: bool,
    /// When it beats next.
    pub tend_at: Option<Moment>,
    /// Shards that it has claimed and not opened yet.
    pub opening: BTreeSet<ShardId>,
    /// What it does wrong; only to test the auditor.
    pub sabotage: Option<Sabotage>,
    /// The answer to its latest beat, when that was, and whether it has claimed by it.
    roll: Roll,
    heard_at: Moment,
    has_claimed: bool,
    /// By shard, the latest commit that was confirmed to it.
    confirmed: BTreeMap<ShardId, u64>,
}

impl Membership {
    /// A node that does not run yet.
    pub fn new(node: Name) -> Membership {
        Membership {
            who: Incarnation { node, number: 0 },
            is_beating: false,
            tend_at: None,
            opening: BTreeSet::new(),
            sabotage: None,
            roll: Roll::default(),
            heard_at: 0,
            has_claimed: true,
            confirmed: BTreeMap::new(),
        }
    }

    /// Another life begins, which knows nothing.
    pub fn begin(&mut self, number: u64) {
        let sabotage = self.sabotage;
        *self = Membership::new(self.who.node.clone());
        (self.who.number, self.sabotage) = (number, sabotage);
    }

    /// Keeps the answer to a beat; says whether the beat counted.
    pub fn heed(&mut self, roll: Roll, moment: Moment) -> bool {
        (self.roll, self.heard_at, self.has_claimed) = (roll, moment, false);
        self.stands_in(&self.roll)
    }

    /// The roll to claim by, once, if it is fresh.
    pub fn roll_to_claim_by(&mut self, moment: Moment) -> Option<Roll> {
        let has_claimed = std::mem::replace(&mut self.has_claimed, true);
        (!has_claimed && moment <= self.heard_at + FRESH).then(|| self.roll.clone())
    }

    /// The nodes that were there when it beat last.
    pub fn others(&self) -> Vec<Incarnation> {
        let others = self.roll.nodes.iter().map(|present| &present.who).filter(|who| **who != self.who);
        others.cloned().collect()
    }

    /// Whether it is this life that counts for its name.
    fn stands_in(&self, roll: &Roll) -> bool {
        roll.node(&self.who.node).is_some_and(|present| present.who == self.who)
    }

    /// Whether it may claim a shard, by a roll; its own clock shows this.
    pub fn may_claim(&self, shard: ShardId, roll: &Roll, clock: Timestamp) -> bool {
        match (self.sabotage, roll.keeper(shard)) {
            (Some(Sabotage::EagerTwin), Some(keeper)) => keeper.who.node == self.who.node,
            (Some(Sabotage::OwnClock), Some(keeper)) => keeper.until <= clock || keeper.who == self.who,
            (Some(Sabotage::EagerTwin), None) => true,
            // Another life of its name is there: that one is the node.
            _ if !self.stands_in(roll) => false,
            (_, Some(keeper)) => keeper.who == self.who,
            (_, None) => true,
        }
    }

    /// It has got a shard, or hears that a commit of it is durable.
    pub fn confirm(&mut self, shard: ShardId, serial: u64) {
        self.confirmed.insert(shard, serial);
    }

    /// Whether more was confirmed to it than the store has.
    pub fn has_more_than(&self, shard: ShardId, serial: u64) -> bool {
        self.confirmed.get(&shard).is_some_and(|confirmed| serial < *confirmed)
    }

    /// Whether this says that the store has lost something.
    pub fn tells_of_loss(&self, fence: Fence, why: &StoreError) -> bool {
        match why {
            StoreError::Refused(Refusal::Lost { .. }) => true,
            // Fences only rise, unless the store goes back.
            StoreError::Refused(Refusal::Fenced { current }) => *current < fence,
            _ => false,
        }
    }

    /// What was confirmed is lost, and that is known now.
    pub fn forget(&mut self, shard: ShardId) {
        self.confirmed.remove(&shard);
    }
}
