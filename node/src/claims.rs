//! How a node comes to its first shards: it gets onto the roll, and claims.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use punctual_center::{Assignment, Planner};
use punctual_core::store::{Beat, Claim, Fence, Incarnation, Roll, ShardId, Store, Tenure};
use punctual_core::{Clock, Millis, Timestamp};

use crate::beats::{BEATS, heard};
use crate::config::NodeConfig;
use crate::error::StartError;
use crate::ownership::read_assignment;
use crate::sync::{Instant, thread};

/// How soon it is looked again whether a former life of the node is over.
const LOOK: Duration = Duration::from_millis(50);
/// How often it is claimed again what somebody else changed in between.
const TRIES: usize = 10;

/// A node on its way in: it has a name on the roll, and claims.
pub(crate) struct Arrival<'a> {
    pub store: &'a dyn Store,
    pub who: &'a Incarnation,
    pub config: &'a NodeConfig,
    pub clock: &'a dyn Clock,
}

/// How the shards are held that were claimed, and since when.
pub(crate) type Tenures = BTreeMap<ShardId, (Tenure, Instant)>;

/// What a node has claimed, and what it knew of others as it did so.
pub(crate) struct Claimed {
    pub shards: Tenures,
    pub roll: Roll,
}

impl Arrival<'_> {
    /// Claims all shards, for a node that has no way to others. Waits for the end of a former life of the node that did not
    /// say goodbye.
    pub fn claim_all(&self) -> Result<Claimed, StartError> {
        for _ in 0..TRIES {
            let roll = self.enter()?;
            let shards: Vec<ShardId> = (0..self.config.shards).map(ShardId).collect();
            for shard in &shards {
                if let Some((by, until)) = held_by_another(&roll, *shard, self.who) {
                    return Err(StartError::Held { shard: *shard, by: by.node.clone(), until });
                }
            }
            let wanted: Vec<(ShardId, Fence)> = shards.into_iter().map(|shard| (shard, roll.fence(shard))).collect();
            let granted = self.claim(&wanted)?;
            if granted.len() == wanted.len() {
                return Ok(Claimed { shards: granted, roll });
            }
            // Somebody claims at the same time. What was granted is claimed once more with the rest.
        }
        Err(StartError::Outrun)
    }

    /// Claims what nobody has, as far as it is this node's part. The rest of its part is handed over to it later. Waits
    /// for the end of a former life as above, and for a beat more if shards are with a node that may be dead.
    pub fn claim_part(&self, planner: &mut Planner) -> Result<Claimed, StartError> {
        let assignment = match self.store.cluster_get(Assignment::KEY)? {
            Some(entry) => read_assignment(&entry),
            None => Assignment::default(),
        };
        let mut shards = Tenures::new();
        loop {
            let roll = self.enter()?;
            let running: BTreeSet<ShardId> = shards.keys().copied().collect();
            shards.extend(self.claim(&planner.plan(&roll, &assignment, &running).claims)?);
            if !planner.is_waiting(&roll) {
                return Ok(Claimed { shards, roll });
            }
            thread::sleep(Duration::from_millis(self.config.ownership.0) / BEATS);
        }
    }

    fn claim(&self, wanted: &[(ShardId, Fence)]) -> Result<Tenures, StartError> {
        let at = Instant::now();
        let claims = self.store.claim(self.who, wanted)?;
        let granted = wanted.iter().zip(claims).filter_map(|((shard, _), claim)| match claim {
            Claim::Granted(tenure) => Some((*shard, (tenure, at))),
            Claim::Outrun(_) => None,
        });
        Ok(granted.collect())
    }

    /// Gets the node onto the roll.
    fn enter(&self) -> Result<Roll, StartError> {
        let beat = Beat { who: self.who.clone(), address: self.config.card.to_string(), lease: self.config.ownership };
        let mut first_seen: Option<(u64, Timestamp)> = None;
        loop {
            let roll = heard(self.store, self.clock, &beat)?;
            let Some(other) = roll.node(&self.who.node).filter(|present| present.who != *self.who) else {
                return Ok(roll);
            };
            let (life, until) = *first_seen.get_or_insert_with(|| {
                let milliseconds = other.until.since(roll.now()).0;
                tracing::info!(
                    milliseconds,
                    "waiting for the end of this server's former life, which did not say goodbye"
                );
                (other.who.number, other.until)
            });
            // One that is over does not beat any more.
            if other.who.number != life || other.until > until {
                return Err(StartError::NameTaken { name: self.who.node.clone() });
            }
            thread::sleep(LOOK);
        }
    }
}

/// The node that has a shard, if it is another one and its lease is not over.
pub(crate) fn held_by_another<'a>(
    roll: &'a Roll,
    shard: ShardId,
    who: &Incarnation,
) -> Option<(&'a Incarnation, Timestamp)> {
    let keeper = roll.keeper(shard).filter(|keeper| keeper.who != *who)?;
    Some((&keeper.who, keeper.until))
}

/// What is left of a claim when nothing comes of the start.
pub(crate) fn give_up(store: &dyn Store, who: &Incarnation, claimed: &Tenures) {
    for (shard, (tenure, _)) in claimed {
        // What cannot be given back now ends with the lease.
        _ = store.release(*shard, tenure.fence, None);
    }
    _ = store.beat(&Beat { who: who.clone(), address: String::new(), lease: Millis::ZERO });
}
