//! Claiming shards, at the start and after they were lost.

use std::time::Duration;

use punctual_core::store::{Beat, Claim, Fence, Incarnation, Roll, ShardId, Store, StoreError, Tenure};
use punctual_core::{Millis, Timestamp};

use crate::config::NodeConfig;
use crate::error::StartError;
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
}

impl Arrival<'_> {
    /// Claims all shards. Waits for the end of a former life of the node that did not say goodbye.
    pub fn claim_all(&self) -> Result<Vec<(Tenure, Instant)>, StartError> {
        for _ in 0..TRIES {
            let roll = self.enter()?;
            let shards: Vec<ShardId> = (0..self.config.shards).map(ShardId).collect();
            for shard in &shards {
                if let Some((by, until)) = held_by_another(&roll, *shard, self.who) {
                    return Err(StartError::Held { shard: *shard, by: by.node.clone(), until });
                }
            }
            let at = Instant::now();
            let wanted: Vec<(ShardId, Fence)> = shards.into_iter().map(|shard| (shard, roll.fence(shard))).collect();
            let claims = self.store.claim(self.who, &wanted)?;
            let granted: Vec<(Tenure, Instant)> = claims.iter().filter_map(|claim| tenure(claim, at)).collect();
            if granted.len() == wanted.len() {
                return Ok(granted);
            }
            // Somebody claims at the same time. What was granted is claimed once more with the rest.
        }
        Err(StartError::Outrun)
    }

    /// Gets the node onto the roll.
    fn enter(&self) -> Result<Roll, StartError> {
        let beat = Beat { who: self.who.clone(), address: String::new(), lease: self.config.ownership };
        let mut first_seen: Option<(u64, Timestamp)> = None;
        loop {
            let roll = self.store.beat(&beat)?;
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

/// Claims one shard again.
pub(crate) fn claim_again(
    store: &dyn Store,
    who: &Incarnation,
    roll: &Roll,
    shard: ShardId,
) -> Result<Result<Tenure, String>, StoreError> {
    if let Some((by, until)) = held_by_another(roll, shard, who) {
        return Ok(Err(format!("{shard:?} is owned by node {} until {until}", by.node)));
    }
    let claims = store.claim(who, &[(shard, roll.fence(shard))])?;
    Ok(match claims[..] {
        [Claim::Granted(tenure)] => Ok(tenure),
        _ => Err(format!("{shard:?} was claimed by another node at the same time")),
    })
}

fn tenure(claim: &Claim, at: Instant) -> Option<(Tenure, Instant)> {
    match claim {
        Claim::Granted(tenure) => Some((*tenure, at)),
        Claim::Outrun(_) => None,
    }
}

/// The node that has a shard, if it is another one and its lease is not over.
fn held_by_another<'a>(roll: &'a Roll, shard: ShardId, who: &Incarnation) -> Option<(&'a Incarnation, Timestamp)> {
    let keeper = roll.keeper(shard).filter(|keeper| keeper.who != *who)?;
    Some((&keeper.who, keeper.until))
}

/// What is left of a claim when nothing comes of the start.
pub(crate) fn give_up(store: &dyn Store, who: &Incarnation, claimed: &[(Tenure, Instant)]) {
    for (shard, (tenure, _)) in (0..).map(ShardId).zip(claimed) {
        // What cannot be given back now ends with the lease.
        _ = store.release(shard, tenure.fence, None);
    }
    _ = store.beat(&Beat { who: who.clone(), address: String::new(), lease: Millis::ZERO });
}
