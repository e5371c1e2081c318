//! Who is there, who owns which shard under which fence, and what all share: a building block for stores that know it
//! by themselves.
//!
//! Invariant: a shard's fence rises with every claim and every release, and never falls. So one
//! comparison tells whether a writer still owns its shard: its fence is the one in force.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Batch, Beat, Claim, Entry, Fence, Held, Incarnation, Outdated, Present, Refusal, Roll, ShardId, Tenure};
use crate::name::Name;
use crate::time::{Millis, Timestamp};

/// The nodes, the owners of the shards, and the entries of the cluster. `micros` is always the store's time.
#[derive(Clone, Debug, Default)]
pub struct Members {
    nodes: BTreeMap<Name, Present>,
    shards: BTreeMap<ShardId, Holding>,
    entries: BTreeMap<String, Entry>,
}

/// How it stands with one shard that was claimed at least once.
#[derive(Clone, Debug, Default)]
struct Holding {
    tenure: Tenure,
    by: Option<Incarnation>,
}

impl Members {
    /// What is left after a restart of the [`fences`](Members::fences) and [`entries`](Members::entries) from before:
    /// nobody is there or holds anything, and each fence is one above, so that a writer from before is refused.
    pub fn resume(
        fences: impl IntoIterator<Item = (ShardId, Fence)>,
        entries: impl IntoIterator<Item = (String, Entry)>,
    ) -> Members {
        let holding = |fence: Fence| Holding { tenure: Tenure { fence: Fence(fence.0 + 1), serial: 0 }, by: None };
        Members {
            nodes: BTreeMap::new(),
            shards: fences.into_iter().map(|(shard, fence)| (shard, holding(fence))).collect(),
            entries: entries.into_iter().collect(),
        }
    }

    /// The fences in force, of all shards that were ever claimed, in order.
    pub fn fences(&self) -> impl Iterator<Item = (ShardId, Fence)> {
        self.shards.iter().map(|(shard, holding)| (*shard, holding.tenure.fence))
    }

    /// The entries of the cluster, in the order of their keys.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(key, entry)| (key.as_str(), entry))
    }

    /// See [`Store::beat`](super::Store::beat).
    pub fn beat(&mut self, beat: &Beat, micros: u64) -> Roll {
        let now = Timestamp::from_millis(micros / 1_000);
        let Beat { who, address, lease } = beat;
        let counts = self.nodes.get(&who.node).is_none_or(|before| before.who == *who || before.until <= now);
        if counts && *lease == Millis::ZERO {
            self.nodes.remove(&who.node);
        } else if counts {
            let present = Present { who: who.clone(), address: address.clone(), until: now.plus(*lease) };
            self.nodes.insert(who.node.clone(), present);
        }
        let held = |(shard, holding): (&ShardId, &Holding)| Held {
            shard: *shard,
            fence: holding.tenure.fence,
            by: holding.by.clone(),
        };
        Roll {
            micros,
            nodes: self.nodes.values().cloned().collect(),
            shards: self.shards.iter().map(held).collect(),
            revisions: self.entries.iter().map(|(key, entry)| (key.clone(), entry.revision)).collect(),
        }
    }

    /// See [`Store::claim`](super::Store::claim).
    pub fn claim(&mut self, who: &Incarnation, wanted: &[(ShardId, Fence)], micros: u64) -> Vec<Claim> {
        let claim = |(shard, seen): &(ShardId, Fence)| {
            let current = self.tenure(*shard).fence;
            if current != *seen {
                return Claim::Outrun(current);
            }
            let holding = self.shards.entry(*shard).or_default();
            holding.tenure.fence = seen.next(micros);
            holding.by = Some(who.clone());
            Claim::Granted(holding.tenure)
        };
        wanted.iter().map(claim).collect()
    }

    /// See [`Store::release`](super::Store::release).
    pub fn release(
        &mut self,
        shard: ShardId,
        fence: Fence,
        to: Option<&Incarnation>,
        micros: u64,
    ) -> Result<Fence, Refusal> {
        self.admit(shard, fence)?;
        let holding = self.shards.entry(shard).or_default();
        holding.tenure.fence = fence.next(micros);
        holding.by = to.cloned();
        Ok(holding.tenure.fence)
    }

    /// See [`Store::cluster_get`](super::Store::cluster_get).
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// See [`Store::cluster_put`](super::Store::cluster_put).
    pub fn put(&mut self, key: &str, seen: u64, value: &[u8], micros: u64) -> Result<u64, Outdated> {
        let current = self.entries.get(key).map_or(0, |entry| entry.revision);
        if current != seen {
            return Err(Outdated { current });
        }
        let revision = Entry::revision_after(seen, micros);
        self.entries.insert(key.to_owned(), Entry { revision, value: Bytes::copy_from_slice(value) });
        Ok(revision)
    }

    /// Whether what comes under this fence comes from the shard's owner.
    pub fn admit(&self, shard: ShardId, fence: Fence) -> Result<(), Refusal> {
        let current = self.tenure(shard).fence;
        // Zero is in force where nobody ever claimed, and nobody's.
        if current == fence && fence != Fence::default() { Ok(()) } else { Err(Refusal::Fenced { current }) }
    }

    /// Whether a read of the owner's sees all that was confirmed to it.
    pub fn admit_read(&self, shard: ShardId, tenure: Tenure) -> Result<(), Refusal> {
        self.admit(shard, tenure.fence)?;
        let found = self.tenure(shard).serial;
        if found < tenure.serial { Err(Refusal::Lost { expected: tenure.serial, found }) } else { Ok(()) }
    }

    /// Whether a batch comes from the shard's owner and is new, and not already there. If it is new, it counts as done
    /// from now on. One that changes nothing is never new: all up to its serial has to be there.
    pub fn admit_commit(&mut self, batch: &Batch) -> Result<bool, Refusal> {
        self.admit(batch.shard, batch.fence)?;
        let latest = &mut self.shards.entry(batch.shard).or_default().tenure.serial;
        let before = if batch.is_empty() { batch.serial } else { batch.serial.saturating_sub(1) };
        if before > *latest {
            return Err(Refusal::Lost { expected: before, found: *latest });
        }
        let is_new = batch.serial > *latest;
        *latest = batch.serial.max(*latest);
        Ok(is_new)
    }

    /// How far a shard is.
    pub fn tenure(&self, shard: ShardId) -> Tenure {
        self.shards.get(&shard).map_or(Tenure::default(), |holding| holding.tenure)
    }

    /// Takes a shard's chain of commits back to here: what came after it was not kept after all.
    pub fn go_back(&mut self, shard: ShardId, serial: u64) {
        if let Some(holding) = self.shards.get_mut(&shard) {
            holding.tenure.serial = holding.tenure.serial.min(serial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Tally, TallyKind};
    use super::*;

    const SHARD: ShardId = ShardId(3);

    fn life(node: &str, number: u64) -> Incarnation {
        Incarnation { node: Name::stored(node), number }
    }

    fn take(members: &mut Members, node: &str) -> Fence {
        let seen = members.tenure(SHARD).fence;
        let Claim::Granted(tenure) = members.claim(&life(node, 1), &[(SHARD, seen)], 0)[0] else { panic!("outrun") };
        tenure.fence
    }

    fn beat(members: &mut Members, who: Incarnation, lease: Millis, at: u64) -> Roll {
        members.beat(&Beat { who, address: String::new(), lease }, at * 1_000)
    }

    #[test]
    fn after_a_restart_nobody_holds_a_shard_and_a_writer_from_before_is_refused() {
        let mut before = Members::default();
        let old = take(&mut before, "a");
        before.put("shards", 0, b"4", 0).unwrap();
        let entries: Vec<_> = before.entries().map(|(key, entry)| (key.to_owned(), entry.clone())).collect();
        let mut after = Members::resume(before.fences(), entries);
        assert_eq!(after.entry("shards").map(|entry| &*entry.value), Some(&b"4"[..]));
        assert_eq!(after.admit(SHARD, old), Err(Refusal::Fenced { current: Fence(old.0 + 1) }));
        let new = take(&mut after, "b");
        assert!(new > Fence(old.0 + 1));
        assert_eq!(after.admit(SHARD, new), Ok(()));
        assert!(after.fences().eq([(SHARD, new)]));
    }

    #[test]
    fn a_second_life_of_a_node_waits_for_the_end_of_the_first() {
        let mut members = Members::default();
        let lease = Millis(10);
        assert_eq!(beat(&mut members, life("a", 1), lease, 0).node("a").unwrap().who.number, 1);
        assert_eq!(beat(&mut members, life("a", 2), lease, 9).node("a").unwrap().who.number, 1);
        assert_eq!(beat(&mut members, life("a", 2), lease, 10).node("a").unwrap().who.number, 2);
        assert_eq!(beat(&mut members, life("a", 2), Millis::ZERO, 11).node("a"), None);
        assert_eq!(beat(&mut members, life("a", 3), lease, 11).node("a").unwrap().who.number, 3);
    }

    #[test]
    fn fences_follow_the_clock_and_rise_when_it_stands() {
        let mut members = Members::default();
        let claim = |members: &mut Members, at| {
            let seen = members.tenure(SHARD).fence;
            members.claim(&life("a", 1), &[(SHARD, seen)], at);
            members.tenure(SHARD).fence
        };
        assert_eq!(claim(&mut members, 70), Fence(70));
        assert_eq!(claim(&mut members, 70), Fence(71));
        assert_eq!(members.release(SHARD, Fence(71), None, 60), Ok(Fence(72)));
        assert!(members.fences().eq([(SHARD, Fence(72))]), "released shards are remembered");
    }

    #[test]
    fn revisions_follow_the_clock_and_rise_when_it_stands_or_goes_back() {
        let mut members = Members::default();
        assert_eq!(members.put("shards", 0, b"4", 70), Ok(70));
        assert_eq!(members.put("shards", 70, b"8", 70), Ok(71));
        assert_eq!(members.put("shards", 71, b"16", 60), Ok(72));
        assert_eq!(members.put("shards", 71, b"32", 80), Err(Outdated { current: 72 }));
    }

    #[test]
    fn who_has_seen_what_was_lost_does_not_write_over_what_came_instead() {
        let mut members = Members::default();
        let seen = members.put("changes", 0, b"first", 10).unwrap();
        let copy = members.clone();
        let lost = members.put("changes", seen, b"lost", 20).unwrap();
        members = copy;
        let instead = members.put("changes", seen, b"instead", 30).unwrap();
        assert_eq!(members.put("changes", lost, b"over it", 40), Err(Outdated { current: instead }));
    }

    #[test]
    fn commits_are_chained() {
        let mut members = Members::default();
        let fence = take(&mut members, "a");
        let asks = |serial| Batch { shard: SHARD, fence, serial, changes: Vec::new(), tallies: Vec::new() };
        let counts = |serial| Batch { tallies: vec![(Tally::slot(TallyKind::DueDay, 1), 1)], ..asks(serial) };
        assert_eq!(members.admit_commit(&counts(1)), Ok(true));
        assert_eq!(members.admit_commit(&counts(1)), Ok(false), "it is there");
        assert_eq!(members.admit_commit(&counts(3)), Err(Refusal::Lost { expected: 2, found: 1 }));
        assert_eq!(members.admit_commit(&asks(1)), Ok(false), "all before it is there");
        assert_eq!(members.admit_commit(&asks(2)), Err(Refusal::Lost { expected: 2, found: 1 }));
        members.go_back(SHARD, 0);
        assert_eq!(
            members.admit_read(SHARD, Tenure { fence, serial: 1 }),
            Err(Refusal::Lost { expected: 1, found: 0 })
        );
    }
}
