//! What can be wrong with beats, claims, releases and entries.

use std::thread;
use std::time::Duration;

use bytes::Bytes;
use punctual_core::store::{
    Beat, Claim, Entry, Fence, Held, Incarnation, Outdated, Roll, ShardId, Store, StoreError, Tenure,
};
use punctual_core::{Millis, Name};

use crate::cases::Breakage::*;
use crate::store::Broken;

/// Long enough for another thread to come between.
pub const A_WHILE: Duration = Duration::from_millis(1);

impl Broken {
    /// Who is there, without a word of one's own.
    fn roll(&self) -> Result<Roll, StoreError> {
        let nobody = Incarnation { node: Name::stored("nobody"), number: 0 };
        self.good.beat(&Beat { who: nobody, address: String::new(), lease: Millis::ZERO })
    }

    pub fn bend_beat(&self, beat: &Beat) -> Result<Beat, StoreError> {
        let mut beat = beat.clone();
        let present = self.roll()?.node(&beat.who.node).cloned();
        let leaves = beat.lease == Millis::ZERO;
        if let Some(present) = present.filter(|present| present.who != beat.who) {
            if self.is(CountsBeatsOfAnotherLife) && !leaves {
                self.good.beat(&Beat { who: present.who, address: String::new(), lease: Millis::ZERO })?;
            } else if self.is(LetsAnyLifeLeave) && leaves {
                beat.who = present.who;
            }
        } else if let Some(first) = self.roll()?.node(&beat.who.node)
            && self.is(KeepsTheFirstAddress)
        {
            beat.address.clone_from(&first.address);
        }
        if self.is(NeverLetsANodeLeave) && leaves {
            beat.lease = Millis(1);
        }
        if self.is(GivesEveryLeaseAnHour) && !leaves {
            beat.lease = Millis::from_hours(1);
        }
        if self.is(FoldsNodeNames) {
            beat.who.node = Name::stored(&beat.who.node.to_lowercase());
        }
        if self.is(CutsAddresses) {
            beat.address = beat.address.chars().take(64).collect();
        }
        if self.is(CutsLivesTo53Bits) {
            beat.who.number = beat.who.number as f64 as u64;
        }
        Ok(beat)
    }

    pub fn bend_roll(&self, mut roll: Roll) -> Roll {
        let now = roll.now();
        if self.is(ForgetsNodesWhoseLeaseIsOver) {
            roll.nodes.retain(|present| now < present.until);
        }
        if self.is(ForgetsTheShardsOfWhoLeft) {
            let there = |who: &Incarnation| roll.nodes.iter().any(|present| present.who == *who);
            roll.shards.retain(|held| held.by.as_ref().is_none_or(there));
        }
        if self.is(HidesReleasedShards) {
            roll.shards.retain(|held| held.by.is_some());
        }
        if self.is(ListsShardsThatNobodyEverHad) && roll.held(ShardId(3)).is_none() {
            roll.shards.push(Held { shard: ShardId(3), fence: Fence::default(), by: None });
            roll.shards.sort_by_key(|held| held.shard);
        }
        if self.is(ListsShardsWithoutOrder) {
            roll.shards.reverse();
        }
        if self.is(ListsNodesWithoutOrder) {
            roll.nodes.reverse();
        }
        if self.is(HidesRevisions) {
            roll.revisions.clear();
        }
        if self.is(StopsTheClock) {
            roll.micros = 7;
        }
        roll
    }

    pub fn bend_claim(&self, who: &Incarnation, wanted: &[(ShardId, Fence)]) -> Result<Vec<Claim>, StoreError> {
        if self.is(RacesClaims) {
            return wanted.iter().map(|one| self.claim_in_two_steps(who, *one)).collect();
        }
        let mut known = self.known();
        let mut wanted = wanted.to_vec();
        let in_force = |shard| known.get(&shard).map_or(Fence::default(), |tenure: &Tenure| tenure.fence);
        if self.is(GrantsEveryClaim) {
            wanted.iter_mut().for_each(|(shard, seen)| *seen = in_force(*shard));
        }
        if self.is(GrantsAllClaimsOrNone) && wanted.iter().any(|(shard, seen)| in_force(*shard) != *seen) {
            return Ok(wanted.iter().map(|(shard, _)| Claim::Outrun(in_force(*shard))).collect());
        }
        if self.is(GrantsTheSameFenceAgain)
            && let [(shard, seen)] = wanted[..]
            && let Some(tenure) = known.get(&shard).filter(|tenure| tenure.fence == seen)
        {
            return Ok(vec![Claim::Granted(*tenure)]);
        }
        let mut claims = self.good.claim(who, &wanted)?;
        for ((shard, _), claim) in wanted.iter().zip(&mut claims) {
            if let Claim::Granted(tenure) = claim {
                known.insert(*shard, *tenure);
                if self.is(ForgetsTheSerialAtClaims) {
                    tenure.serial = 0;
                }
                tenure.serial += u64::from(self.is(CountsClaimsAsCommits));
            }
        }
        Ok(claims)
    }

    /// Looks at the fence, and takes the shard later, whoever has it by then.
    fn claim_in_two_steps(&self, who: &Incarnation, (shard, seen): (ShardId, Fence)) -> Result<Claim, StoreError> {
        let current = self.tenure(shard).fence;
        if current != seen {
            return Ok(Claim::Outrun(current));
        }
        thread::sleep(A_WHILE);
        let mut known = self.known();
        let current = known.get(&shard).copied().unwrap_or_default().fence;
        let claim = self.good.claim(who, &[(shard, current)])?.remove(0);
        if let Claim::Granted(tenure) = claim {
            known.insert(shard, tenure);
        }
        Ok(claim)
    }

    pub fn bend_release(&self, shard: ShardId, fence: Fence, to: Option<&Incarnation>) -> Result<Fence, StoreError> {
        let mut known = self.known();
        let tenure = known.entry(shard).or_default();
        let fence = if self.is(ReleasesUnderEveryFence) { tenure.fence } else { fence };
        if self.is(ReleasesInWordOnly) && tenure.fence == fence {
            return Ok(fence);
        }
        let to = to.filter(|_| !self.is(ForgetsToWhomItReleases));
        tenure.fence = self.good.release(shard, fence, to)?;
        Ok(tenure.fence)
    }

    pub fn bend_key(&self, key: &str) -> String {
        if self.is(FoldsKeysOfEntries) { key.to_lowercase() } else { key.to_owned() }
    }

    pub fn bend_get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        let entry = self.good.cluster_get(key)?;
        let empty = || self.is(ShowsEmptyEntries).then(|| Entry { revision: 0, value: Bytes::new() });
        Ok(entry.or_else(empty))
    }

    pub fn bend_put(&self, key: &str, seen: u64, value: &[u8]) -> Result<Result<u64, Outdated>, StoreError> {
        let entry = self.good.cluster_get(key)?;
        let current = entry.as_ref().map_or(0, |entry: &Entry| entry.revision);
        if self.is(WritesEntriesUnseen) {
            return self.good.cluster_put(key, current, value);
        }
        if self.is(PassesOverEqualEntries)
            && current == seen
            && entry.as_ref().is_some_and(|entry| *entry.value == *value)
        {
            return Ok(Ok(seen));
        }
        if self.is(RacesEntries) && current == seen {
            thread::sleep(A_WHILE);
            let _alone = self.known();
            let current = self.good.cluster_get(key)?.map_or(0, |entry| entry.revision);
            return self.good.cluster_put(key, current, value);
        }
        if self.is(KeepsTheFirstValueOfEntries)
            && let Some(entry) = entry
        {
            return self.good.cluster_put(key, seen, &entry.value);
        }
        let end = value.iter().position(|byte| *byte == 0).filter(|_| self.is(CutsEntriesAtZero));
        self.good.cluster_put(key, seen, &value[..end.unwrap_or(value.len())])
    }
}
