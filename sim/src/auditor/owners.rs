//! What must hold whenever a shard changes hands.

use std::collections::{BTreeMap, BTreeSet};

use punctual_core::store::{Fence, Incarnation, Roll, ShardId, Tenure};

use super::{Auditor, Promise};

/// A claim that was granted.
#[derive(Debug)]
pub struct Grant<'a> {
    /// To whom.
    pub who: &'a Incarnation,
    /// Which shard.
    pub shard: ShardId,
    /// The fence that the claimer had seen.
    pub seen: Fence,
    /// The fence that was in force before.
    pub in_force: Fence,
    /// What was granted.
    pub tenure: Tenure,
    /// The roll by which the claimer judged that it is its turn; none if it was told that the shard is handed to it.
    pub roll: Option<&'a Roll>,
}

/// The fences that were ever granted.
#[derive(Debug, Default)]
pub(super) struct Granted {
    fences: BTreeSet<(ShardId, Fence)>,
    /// To whom shards were handed.
    handed: BTreeMap<(ShardId, Fence), Incarnation>,
}

impl Auditor {
    /// A shard has changed hands.
    pub fn granted(&mut self, grant: &Grant<'_>) {
        let Grant { who, shard, seen, in_force, tenure, roll } = grant;
        let subject = format!("shard {}", shard.0);
        if !self.granted.fences.insert((*shard, tenure.fence)) {
            self.accuse(Promise::OneHolder, &subject, format!("{:?} was granted twice", tenure.fence));
        }
        if seen != in_force {
            let what = format!("it was granted to {who:?}, who knew of {seen:?}, while {in_force:?} was in force");
            self.accuse(Promise::OneHolder, &subject, what);
        }
        self.census.count("shards that changed hands");
        let Some(roll) = roll else {
            if self.granted.handed.get(&(*shard, *seen)) != Some(who) {
                self.accuse(Promise::OwnersInPeace, &subject, format!("{who:?} took it, to whom it was not handed"));
            }
            return;
        };
        let owner = roll.shards.iter().find(|held| held.shard == *shard).and_then(|held| held.by.as_ref());
        let lasts = roll.there().find(|present| Some(&present.who) == owner);
        if let Some(present) = lasts.filter(|present| present.who != **who) {
            let what = format!("{who:?} took it at {} from {present:?}", roll.now());
            self.accuse(Promise::OwnersInPeace, &subject, what);
        }
    }

    /// A shard was handed to somebody, under this fence from now on.
    pub fn handed(&mut self, shard: ShardId, fence: Fence, to: &Incarnation) {
        self.granted.handed.insert((shard, fence), to.clone());
    }
}
