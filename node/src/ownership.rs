//! Which shards are here: after each beat the node does what the plan says, and when it stops it gives all away.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use punctual_center::{Assignment, Plan, Planner};
use punctual_core::store::{Entry, Fence, Roll, ShardId, StoreError};

use crate::shared::Shared;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Instant, Mutex, lock, thread};

/// For how long a node that stops hands its shards over, one after the other. What is left is given up then.
const PATIENCE: Duration = Duration::from_secs(5);
/// How soon it is looked whether a shard has left.
const LOOK: Duration = Duration::from_millis(1);

/// What a node goes by when it takes shards and hands them over.
pub(crate) struct Ownership {
    plans: Mutex<Plans>,
    /// The node is about to stop: it gives its shards away.
    pub is_leaving: AtomicBool,
}

struct Plans {
    planner: Planner,
    /// What operators have said, and the revision at which it was read.
    assignment: (u64, Assignment),
}

impl Ownership {
    pub fn new(planner: Planner) -> Ownership {
        let plans = Plans { planner, assignment: (0, Assignment::default()) };
        Ownership { plans: Mutex::new(plans), is_leaving: AtomicBool::new(false) }
    }
}

impl Shared {
    /// Does what follows from a roll: calls in the shards that are to be claimed, and hands one over, unless something else is
    /// being done with it. Says which one.
    pub fn follow(&self, roll: &Roll) -> Option<ShardId> {
        let running: BTreeSet<ShardId> =
            self.shards().filter(|(_, inbox)| inbox.is_here()).map(|(shard, _)| shard).collect();
        let Plan { claims, hand_over } = {
            let mut plans = lock(&self.ownership.plans);
            self.mind_operators(roll, &mut plans);
            let Plans { planner, assignment: (_, assignment) } = &mut *plans;
            planner.plan(roll, assignment, &running)
        };
        for (shard, fence) in claims {
            // What this node knows may be newer than the roll.
            if self.known_place(shard).0 <= fence {
                self.call_in(shard, fence);
            }
        }
        let (shard, to) = hand_over?;
        self.inbox(shard).hand_over(to);
        Some(shard)
    }

    /// Reads what operators have said, if it has changed.
    fn mind_operators(&self, roll: &Roll, plans: &mut Plans) {
        if plans.assignment.0 == roll.revision(Assignment::KEY) {
            return;
        }
        match self.store.cluster_get(Assignment::KEY) {
            Ok(Some(entry)) => plans.assignment = (entry.revision, read_assignment(&entry)),
            Ok(None) => plans.assignment = (0, Assignment::default()),
            // The next beat asks again.
            Err(error) => self.heed(&error),
        }
    }

    /// Another node has released a shard to this one.
    pub fn handed_to_me(&self, shard: ShardId, fence: Fence) {
        if shard.0 >= self.config.shards {
            return;
        }
        self.learn_place(shard, fence, Some(&self.who));
        // Somebody who asked for it may have heard so before.
        if self.known_place(shard).0 == fence {
            self.call_in(shard, fence);
        }
    }

    fn call_in(&self, shard: ShardId, fence: Fence) {
        if self.inbox(shard).call_in(fence) {
            self.shard_came(shard);
        }
    }

    /// Hands all shards over to other nodes, one after the other, as far as there are any and time allows.
    pub fn hand_all_over(&self) {
        self.ownership.is_leaving.store(true, Ordering::Relaxed);
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let Ok(roll) = self.hear() else { return };
            match self.follow(&roll) {
                Some(shard) => self.wait_for_leaving(shard, until),
                // One that was given to this node before all had heard that it leaves shows on the next roll.
                None if !self.has_any(&roll) && self.shards().any(|(_, inbox)| inbox.is_here()) => thread::sleep(LOOK),
                // All are gone, or nobody is there to take them.
                None => return,
            }
        }
    }

    /// Waits until a shard has left, or for so long that it may not have begun to.
    fn wait_for_leaving(&self, shard: ShardId, until: Instant) {
        let until = until.min(Instant::now() + PATIENCE / 20);
        while self.inbox(shard).is_here() && Instant::now() < until {
            thread::sleep(LOOK);
        }
    }

    fn has_any(&self, roll: &Roll) -> bool {
        roll.shards.iter().any(|held| held.by.as_ref() == Some(&self.who))
    }

    /// Beats, and learns from the roll, if the beat counts.
    fn hear(&self) -> Result<Arc<Roll>, StoreError> {
        let (asking, roll) = self.beat()?;
        let roll = Arc::new(roll);
        self.learn_roll(asking, Arc::clone(&roll));
        Ok(roll)
    }
}

/// What operators have said. If it cannot be read, because a newer version has written it, shards stay where they are.
pub(crate) fn read_assignment(entry: &Entry) -> Assignment {
    Assignment::read(&entry.value).unwrap_or_else(|error| {
        tracing::warn!("{error}: it is passed over");
        Assignment::default()
    })
}
