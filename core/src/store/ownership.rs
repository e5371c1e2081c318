//! Who owns which shard, and under which fence: a building block for stores that know it by themselves.
//!
//! Invariant: a shard's fence rises with every claim and every release, and never falls. So one
//! comparison tells whether a writer still owns its shard: its fence is the one in force.

use std::collections::BTreeMap;

use super::{Claim, Fence, Fenced, Owner, ShardId};
use crate::name::Name;
use crate::time::{Millis, Timestamp};

/// The owners of the shards, and the fences in force. `now` is always the store's time.
#[derive(Debug, Default)]
pub struct Ownership {
    shards: BTreeMap<ShardId, Tenure>,
}

/// How it stands with one shard that was claimed at least once.
#[derive(Debug)]
struct Tenure {
    fence: Fence,
    holder: Option<Holder>,
}

#[derive(Debug)]
struct Holder {
    node: Name,
    until: Timestamp,
}

impl Ownership {
    /// What is left after a restart of the [`fences`](Ownership::fences) from before: nobody holds
    /// anything, and each fence is one above, so that a writer from before is refused.
    pub fn resume(fences: impl IntoIterator<Item = (ShardId, Fence)>) -> Ownership {
        let tenure = |fence: Fence| Tenure { fence: Fence(fence.0 + 1), holder: None };
        Ownership { shards: fences.into_iter().map(|(shard, fence)| (shard, tenure(fence))).collect() }
    }

    /// The fences in force, of all shards that were ever claimed, in order.
    pub fn fences(&self) -> impl Iterator<Item = (ShardId, Fence)> {
        self.shards.iter().map(|(shard, tenure)| (*shard, tenure.fence))
    }

    /// See [`Store::claim`](super::Store::claim).
    pub fn claim(&mut self, shard: ShardId, node: &Name, lease: Millis, now: Timestamp) -> Claim {
        let tenure = self.shards.entry(shard).or_insert(Tenure { fence: Fence(0), holder: None });
        if let Some(holder) = &tenure.holder
            && holder.node != *node
            && now < holder.until
        {
            return Claim::Held { by: holder.node.clone(), until: holder.until };
        }
        tenure.fence.0 += 1;
        tenure.holder = Some(Holder { node: node.clone(), until: now.plus(lease) });
        Claim::Granted(tenure.fence)
    }

    /// See [`Store::renew`](super::Store::renew).
    pub fn renew(&mut self, shard: ShardId, fence: Fence, lease: Millis, now: Timestamp) -> Result<(), Fenced> {
        self.holder(shard, fence)?.until = now.plus(lease);
        Ok(())
    }

    /// See [`Store::release`](super::Store::release).
    pub fn release(&mut self, shard: ShardId, fence: Fence) -> Result<(), Fenced> {
        self.holder(shard, fence)?;
        self.shards.insert(shard, Tenure { fence: Fence(fence.0 + 1), holder: None });
        Ok(())
    }

    /// See [`Store::owners`](super::Store::owners).
    pub fn owners(&self) -> Vec<Owner> {
        let owner = |(shard, tenure): (&ShardId, &Tenure)| {
            let holder = tenure.holder.as_ref()?;
            Some(Owner { shard: *shard, node: holder.node.clone(), fence: tenure.fence, until: holder.until })
        };
        self.shards.iter().filter_map(owner).collect()
    }

    /// Whether a commit under this fence comes from the shard's owner.
    pub fn admit(&self, shard: ShardId, fence: Fence) -> Result<(), Fenced> {
        match self.shards.get(&shard) {
            Some(Tenure { fence: current, holder: Some(_) }) if *current == fence => Ok(()),
            tenure => Err(Fenced { current: tenure.map_or(Fence(0), |tenure| tenure.fence) }),
        }
    }

    fn holder(&mut self, shard: ShardId, fence: Fence) -> Result<&mut Holder, Fenced> {
        self.admit(shard, fence)?;
        let holder = self.shards.get_mut(&shard).and_then(|tenure| tenure.holder.as_mut());
        Ok(holder.expect("only a holder is admitted"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARD: ShardId = ShardId(3);

    fn claim(ownership: &mut Ownership, node: &str) -> Claim {
        ownership.claim(SHARD, &Name::stored(node), Millis::from_secs(10), Timestamp::ZERO)
    }

    fn granted(claim: Claim) -> Fence {
        let Claim::Granted(fence) = claim else { panic!("{claim:?}") };
        fence
    }

    #[test]
    fn after_a_restart_nobody_holds_a_shard_and_a_writer_from_before_is_refused() {
        let mut before = Ownership::default();
        let old = granted(claim(&mut before, "a"));
        let mut after = Ownership::resume(before.fences());
        assert!(after.owners().is_empty());
        assert_eq!(after.admit(SHARD, old), Err(Fenced { current: Fence(old.0 + 1) }));
        assert_eq!(after.admit(SHARD, Fence(old.0 + 1)), Err(Fenced { current: Fence(old.0 + 1) }));
        let new = granted(claim(&mut after, "b"));
        assert!(new > Fence(old.0 + 1));
        assert_eq!(after.admit(SHARD, new), Ok(()));
        assert!(after.fences().eq([(SHARD, new)]));
    }

    #[test]
    fn fences_of_released_shards_are_remembered() {
        let mut ownership = Ownership::default();
        let fence = granted(claim(&mut ownership, "a"));
        assert_eq!(ownership.release(SHARD, fence), Ok(()));
        assert!(ownership.fences().eq([(SHARD, Fence(fence.0 + 1))]));
    }
}
