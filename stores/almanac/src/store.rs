//! The almanac as a store: what callers ask of it, and what of that is written.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use punctual_core::store::{
    Batch, Beat, Claim, Entry, Fence, Found, Hardship, Incarnation, Outdated, Refusal, Roll, Room, ShardId, Store,
    StoreError, Tenure, Want,
};

use crate::almanac::Almanac;
use crate::holdings::Holdings;
use crate::journal::Journal;
use crate::lock::lock;
use crate::payload::{entry_length, write_batch, write_claim, write_entry};
use crate::shared::Shared;
use crate::weight::Weight;

impl Store for Almanac {
    fn beat(&self, beat: &Beat) -> Result<Roll, StoreError> {
        self.shared.check()?;
        Ok(lock(&self.shared.holdings).members.beat(beat, self.shared.clock.micros()))
    }

    fn claim(&self, who: &Incarnation, wanted: &[(ShardId, Fence)]) -> Result<Vec<Claim>, StoreError> {
        self.shared.claim(who, wanted)
    }

    fn release(&self, shard: ShardId, fence: Fence, to: Option<&Incarnation>) -> Result<Fence, StoreError> {
        let shared = &*self.shared;
        shared.check()?;
        // A commit that was admitted before is done before, too: it has the journal.
        let _journal = lock(&shared.journal);
        Ok(lock(&shared.holdings).members.release(shard, fence, to, shared.clock.micros())?)
    }

    fn cluster_get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.shared.check()?;
        Ok(lock(&self.shared.holdings).members.entry(key).cloned())
    }

    fn cluster_put(&self, key: &str, seen: u64, value: &[u8]) -> Result<Result<u64, Outdated>, StoreError> {
        self.shared.put(key, seen, value)
    }

    fn read(&self, shard: ShardId, tenure: Tenure, wants: &[Want<'_>]) -> Result<Vec<Found>, StoreError> {
        let wants = wants.iter().map(|want| (shard, want));
        self.shared.reader()?.read(wants, |holdings| holdings.members.admit_read(shard, tenure))
    }

    fn look(&self, wants: &[(ShardId, Want<'_>)]) -> Result<Vec<Found>, StoreError> {
        self.shared.reader()?.read(wants.iter().map(|(shard, want)| (*shard, want)), |_| Ok(()))
    }

    fn commit(&self, batches: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        self.shared.commit(&batches)
    }

    fn room(&self) -> Room {
        if !self.shared.is_troubled.load(Ordering::Relaxed) {
            return Room::Enough;
        }
        if !self.shared.may_grow.load(Ordering::Relaxed) {
            return Room::None;
        }
        Room::under(self.hardship().as_ref())
    }

    fn hardship(&self) -> Option<Hardship> {
        if !self.shared.is_troubled.load(Ordering::Relaxed) {
            return None;
        }
        let hardship = lock(&self.shared.hardship).clone();
        match hardship {
            Some(Hardship::NoRoom(why)) if !self.shared.may_grow.load(Ordering::Relaxed) => {
                Some(Hardship::NoRoom(format!("{why}; few deliveries are handed out until there is room again")))
            }
            hardship => hardship,
        }
    }
}

impl Shared {
    /// The fences that are granted are written before anybody hears of them. If they cannot be, they are in force all the
    /// same until the almanac is closed, and nobody has them.
    fn claim(&self, who: &Incarnation, wanted: &[(ShardId, Fence)]) -> Result<Vec<Claim>, StoreError> {
        let mut journal = self.journal_for_little()?;
        let claims = lock(&self.holdings).members.claim(who, wanted, self.clock.micros());
        let granted = || {
            wanted.iter().zip(&claims).filter_map(|((shard, _), claim)| match claim {
                Claim::Granted(tenure) => Some((*shard, tenure.fence)),
                Claim::Outrun(_) => None,
            })
        };
        if granted().next().is_some() {
            let write = |to: &mut Vec<u8>| granted().for_each(|(shard, fence)| write_claim(shard, fence, to));
            self.record(&mut journal, write, |_| ())?;
            // Whoever was granted a fence relies on it that no later one is the same.
            self.sync(&mut journal)?;
        }
        Ok(claims)
    }

    /// Whatever is left, a shard can be claimed: that takes next to nothing, and nothing works without it.
    fn journal_for_little(&self) -> Result<MutexGuard<'_, Journal>, StoreError> {
        self.check()?;
        let journal = match self.make_way(|_| Weight::default()) {
            Ok(journal) => journal,
            Err(poisoned @ StoreError::Poisoned(_)) => return Err(poisoned),
            Err(_) => lock(&self.journal),
        };
        self.check().map(|()| journal)
    }

    fn put(&self, key: &str, seen: u64, value: &[u8]) -> Result<Result<u64, Outdated>, StoreError> {
        self.check()?;
        let bytes = entry_length(key, value);
        let mut journal = self.make_way(|_| Weight { bytes, growth: 0 })?;
        self.check()?;
        let before = lock(&self.holdings).members.entry(key).cloned();
        let current = before.as_ref().map_or(0, |entry| entry.revision);
        if current != seen {
            return Ok(Err(Outdated { current }));
        }
        let micros = self.clock.micros();
        let revision = Entry::revision_after(seen, micros);
        // Nobody else puts meanwhile, who would need the journal too.
        let put = |holdings: &mut Holdings| _ = holdings.members.put(key, seen, value, micros);
        self.record(&mut journal, |to| write_entry(key, revision, value, to), put)?;
        self.sync(&mut journal)?;
        // The next manifest is longer by so much.
        let longer = bytes.saturating_sub(before.map_or(0, |entry| entry_length(key, &entry.value)));
        self.manifest_bytes.fetch_add(longer, Ordering::Relaxed);
        Ok(Ok(revision))
    }

    fn commit(&self, batches: &[Batch]) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        self.hold_back()?;
        let mut journal = self.make_way(|holdings| holdings.weigh(batches, &self.blocks))?;
        self.check()?;
        let verdicts = lock(&self.holdings).judge(batches, &self.blocks)?;
        let new = || batches.iter().zip(&verdicts).filter(|(_, verdict)| **verdict == Ok(true)).map(|(batch, _)| batch);
        let count_as_done = |holdings: &mut Holdings| {
            for batch in new() {
                let counts = holdings.members.admit_commit(batch);
                assert_eq!(counts, Ok(true), "whoever would depose the writer needs the journal for it");
            }
        };
        if new().next().is_some() {
            self.record(&mut journal, |to| new().for_each(|batch| write_batch(batch, to)), count_as_done)?;
        }
        Ok(verdicts.into_iter().map(|verdict| verdict.map(drop)).collect())
    }

    /// Makes what was recorded durable, whatever the policy is.
    fn sync(&self, journal: &mut Journal) -> Result<(), StoreError> {
        journal.sync().map_err(|error| self.poison(format!("the journal could not be synced: {error}")))?;
        self.note_reach_lightly(journal.reached());
        Ok(())
    }
}
