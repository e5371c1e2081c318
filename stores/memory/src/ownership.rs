//! Who owns which shard, and under which fence.
//!
//! Invariant: a shard's fence rises with every claim and every release, and never falls. So one
//! comparison tells whether a writer still owns its shard: its fence is the one in force.

use std::collections::BTreeMap;

use punctual_core::store::{Claim, Fence, Fenced, Owner, ShardId};
use punctual_core::{Millis, Name, Timestamp};

#[derive(Default)]
pub(crate) struct Ownership {
    shards: BTreeMap<ShardId, Standing>,
}

/// How it stands with one shard that was claimed at least once.
struct Standing {
    fence: Fence,
    holder: Option<Holder>,
}

struct Holder {
    node: Name,
    until: Timestamp,
}

impl Ownership {
    pub(crate) fn claim(&mut self, shard: ShardId, node: &Name, lease: Millis, now: Timestamp) -> Claim {
        let standing = self.shards.entry(shard).or_insert(Standing { fence: Fence(0), holder: None });
        if let Some(holder) = &standing.holder
            && holder.node != *node
            && now < holder.until
        {
            return Claim::Held { by: holder.node.clone(), until: holder.until };
        }
        standing.fence.0 += 1;
        standing.holder = Some(Holder { node: node.clone(), until: now.plus(lease) });
        Claim::Granted(standing.fence)
    }

    pub(crate) fn renew(&mut self, shard: ShardId, fence: Fence, lease: Millis, now: Timestamp) -> Result<(), Fenced> {
        self.holder(shard, fence)?.until = now.plus(lease);
        Ok(())
    }

    pub(crate) fn release(&mut self, shard: ShardId, fence: Fence) -> Result<(), Fenced> {
        self.holder(shard, fence)?;
        self.shards.insert(shard, Standing { fence: Fence(fence.0 + 1), holder: None });
        Ok(())
    }

    pub(crate) fn owners(&self) -> Vec<Owner> {
        let owner = |(shard, standing): (&ShardId, &Standing)| {
            let holder = standing.holder.as_ref()?;
            Some(Owner { shard: *shard, node: holder.node.clone(), fence: standing.fence, until: holder.until })
        };
        self.shards.iter().filter_map(owner).collect()
    }

    /// Whether a commit under this fence comes from the shard's owner.
    pub(crate) fn admit(&mut self, shard: ShardId, fence: Fence) -> Result<(), Fenced> {
        self.holder(shard, fence).map(|_| ())
    }

    fn holder(&mut self, shard: ShardId, fence: Fence) -> Result<&mut Holder, Fenced> {
        let Some(standing) = self.shards.get_mut(&shard) else { return Err(Fenced { current: Fence(0) }) };
        let fenced = Fenced { current: standing.fence };
        standing.holder.as_mut().filter(|_| fenced.current == fence).ok_or(fenced)
    }
}
