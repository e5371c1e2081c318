//! An almanac that lives, dies at any moment and is opened again, beside a model of what was confirmed.
//!
//! **Invariant**: what is found after a death is what was last confirmed, or that and the commit that
//! was on its way. If syncs come later than commits, a power loss may take the last commits with it,
//! but none from before the last sync, and never one without all that came after it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;

use punctual_almanac::{Almanac, Config, SyncPolicy, Tending};
use punctual_chance::Chance;
use punctual_core::Clock;
use punctual_core::store::{Fence, ShardId, Store, StoreError};
use punctual_simulated_disk::{Call, Fault, SimulatedDisk};

use super::ManualClock;
use super::model::Model;
use super::work::Work;

/// By moment, call and file: how many deaths there were.
pub type Deaths = BTreeMap<String, usize>;

pub struct World {
    chance: Chance,
    disk: SimulatedDisk,
    clock: Arc<ManualClock>,
    config: Config,
    work: Work,
    /// What there was after each commit since all of it was last known to be durable.
    confirmed: Vec<Model>,
    /// What there would be if a commit had happened of which that is not known.
    unclear: Vec<Model>,
    /// The highest fence of each shard.
    granted: BTreeMap<ShardId, Fence>,
    /// Whether the power went since what there is was last looked at.
    power_went: bool,
    /// How many faults had struck when the almanac was opened.
    failures: usize,
    /// Whether the disk has next to no room.
    is_full: bool,
    pub deaths: Deaths,
}

/// What the almanac is doing.
#[derive(Clone, Copy, Debug)]
enum Moment {
    Opening,
    Claiming,
    Committing,
    Putting,
    Tending,
    Closing,
}

/// The almanac is of no use any more.
struct Dead;

impl World {
    /// A world in which this seed is the only chance.
    pub fn new(seed: u64, sync: SyncPolicy, tending: Tending) -> World {
        let mut chance = Chance::new(seed);
        let segment = *chance.pick(&[4 << 10, 8 << 10]);
        let config = Config {
            memory: *chance.pick(&[96 << 10, 2 << 20]),
            segment,
            journal: segment * (1 + chance.below(5)),
            reserve: *chance.pick(&[0, 8 << 10]),
            sync,
            tending,
            ..Config::default()
        };
        World {
            disk: SimulatedDisk::new(chance.draw()),
            clock: Arc::default(),
            work: Work::new(*chance.pick(&[8, 24, 100, 400]), 2 * segment),
            config,
            confirmed: vec![Model::default()],
            unclear: Vec::new(),
            granted: BTreeMap::new(),
            power_went: false,
            failures: 0,
            is_full: false,
            deaths: Deaths::new(),
            chance,
        }
    }

    /// One life: opening, some work, and an end.
    pub fn live(&mut self) {
        if self.chance.happens(1, 6) {
            // Settings may be others than last time.
            self.config.segment = *self.chance.pick(&[4 << 10, 8 << 10]);
            self.config.journal = self.config.segment * (1 + self.chance.below(5));
        }
        self.fill_or_clear();
        if self.chance.happens(1, 3) {
            let within = *self.chance.pick(&[10, 30, 90, 240]);
            self.doom(within);
        }
        let almanac =
            match Almanac::open(Arc::new(self.disk.clone()), self.config.clone(), Arc::clone(&self.clock) as _) {
                Ok(almanac) => almanac,
                Err(error) => {
                    let may_fail = self.disk.last_call().is_some() || self.is_full;
                    assert!(may_fail, "it does not open: {error}");
                    return self.die(Moment::Opening);
                }
            };
        self.failures = self.disk.failures();
        if let Err((moment, Dead)) = self.work(&almanac) {
            drop(almanac);
            return self.die(moment);
        }
        if self.chance.happens(1, 4) {
            self.doom(3);
        }
        drop(almanac);
        if self.disk.last_call().is_some() {
            return self.die(Moment::Closing);
        }
        self.covered();
        self.disk.crash_at(u64::MAX);
        self.end();
    }

    fn work(&mut self, almanac: &Almanac) -> Result<(), (Moment, Dead)> {
        self.recognize(almanac).map_err(|dead| (Moment::Opening, dead))?;
        self.claim(almanac).map_err(|dead| (Moment::Claiming, dead))?;
        for _ in 0..self.chance.below(80) {
            let what = self.chance.below(100);
            let (moment, outcome) = match what {
                0..8 => (Moment::Tending, self.tend(almanac)),
                8..14 => (Moment::Tending, self.tend_on_a_bad_disk(almanac)),
                14..16 => (Moment::Committing, self.commit_on_a_bad_disk(almanac)),
                16..19 => (Moment::Claiming, self.claim(almanac)),
                24..27 => (Moment::Putting, self.put(almanac)),
                19..22 => (Moment::Committing, self.commit_with_an_old_fence(almanac)),
                22..24 => (Moment::Committing, self.look(almanac)),
                _ => (Moment::Committing, self.commit(almanac)),
            };
            outcome.map_err(|dead| (moment, dead))?;
            if self.disk.last_call().is_some() {
                return Err((moment, Dead));
            }
        }
        Ok(())
    }

    /// Finds out which of the states that there may be there is, and looks at all of it.
    fn recognize(&mut self, almanac: &Almanac) -> Result<(), Dead> {
        self.spare()?;
        let found = match Model::read(almanac, &self.work.shards, &self.work.keys) {
            Ok(found) => found,
            Err(_) if self.disk.last_call().is_some() => return Err(Dead),
            Err(error) => panic!("it cannot be read: {error}"),
        };
        self.is_possible(&found);
        self.power_went = false;
        self.confirmed = vec![found];
        self.unclear.clear();
        self.look(almanac)
    }

    /// Makes sure that this may be what is left.
    fn is_possible(&self, found: &Model) {
        let lossy = self.power_went && self.config.sync != SyncPolicy::Always;
        let confirmed = &self.confirmed[if lossy { 0 } else { self.confirmed.len() - 1 }..];
        if !confirmed.iter().chain(&self.unclear).any(|model| model == found) {
            let last = self.confirmed.last().unwrap();
            let (confirmed, unclear) = (confirmed.len(), self.unclear.len());
            panic!("none of {confirmed} + {unclear} possible states; from the last, {}", found.differences(last));
        }
    }

    fn look(&mut self, almanac: &Almanac) -> Result<(), Dead> {
        self.spare()?;
        let Work { shards, keys, groups, .. } = &self.work;
        self.confirmed.last().unwrap().compare(almanac, shards, keys, groups, &mut self.chance);
        Ok(())
    }

    /// Claims all shards. A claim is always durable, and everything before it is so too.
    fn claim(&mut self, almanac: &Almanac) -> Result<(), Dead> {
        self.maybe_doom(8, 16);
        for shard in self.work.shards.clone() {
            if let Some(tenure) = self.work.tenures.get(&shard).filter(|_| self.chance.happens(1, 4)) {
                // A release is not durable, and need not be.
                _ = almanac.release(shard, tenure.fence, None);
            }
            let tenure = match super::claim(almanac, shard) {
                Ok(tenure) => tenure,
                Err(error) => return self.failed(&error),
            };
            if let Some(before) = self.work.tenures.get(&shard) {
                assert_eq!(tenure.serial, before.serial, "what failed has not happened");
            }
            let before = self.granted.insert(shard, tenure.fence);
            assert!(before.is_none_or(|before| before < tenure.fence), "{tenure:?} was granted after {before:?}");
            self.work.tenures.insert(shard, tenure);
            self.covered();
            self.unclear.clear();
        }
        Ok(())
    }

    fn commit(&mut self, almanac: &Almanac) -> Result<(), Dead> {
        self.maybe_doom(4, 24);
        self.try_commit(almanac).or_else(|error| self.failed(&error))
    }

    /// Writes an entry of the cluster. It is always durable, as a claim is.
    fn put(&mut self, almanac: &Almanac) -> Result<(), Dead> {
        self.maybe_doom(4, 8);
        let mut after = self.confirmed.last().unwrap().clone();
        let (key, value) = self.work.entry(&mut self.chance);
        let (seen, revision) = after.put(key, &value, self.clock.micros());
        match self.note(almanac.cluster_put(key, seen, &value), after) {
            Ok(put) => {
                assert_eq!(put, Ok(revision));
                self.covered();
                Ok(())
            }
            Err(error) => self.failed(&error),
        }
    }

    fn try_commit(&mut self, almanac: &Almanac) -> Result<(), StoreError> {
        let before = self.work.tenures.clone();
        let (batches, after) = self.work.commit(self.confirmed.last().unwrap(), &mut self.chance);
        match self.note(almanac.commit(batches), after) {
            Ok(verdicts) => assert!(verdicts.iter().all(Result::is_ok), "{verdicts:?}"),
            Err(error) => {
                self.work.tenures = before;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Notes what a commit has brought about, or may have.
    fn note<T>(&mut self, outcome: Result<T, StoreError>, after: Model) -> Result<T, StoreError> {
        if outcome.is_err() {
            self.unclear.push(after);
            return outcome;
        }
        self.confirmed.push(after);
        if self.config.sync == SyncPolicy::Always {
            self.covered();
        }
        outcome
    }

    /// Some writer that lost its shard comes between.
    fn commit_with_an_old_fence(&mut self, almanac: &Almanac) -> Result<(), Dead> {
        let model = self.confirmed.last().unwrap().clone();
        let (shard, other) = (self.work.shards[0], self.work.shards[1]);
        let tenure = self.work.tenures[&shard];
        let mut old = self.work.batch(shard, &model, &mut self.chance);
        self.work.tenures.insert(shard, tenure);
        old.fence = Fence(old.fence.0 - 1);
        let new = self.work.batch(other, &model, &mut self.chance);
        let mut after = model;
        after.apply(&new);
        match self.note(almanac.commit(vec![old, new]), after) {
            Ok(verdicts) => {
                assert!(verdicts[0].is_err() && verdicts[1].is_ok(), "{verdicts:?}");
                Ok(())
            }
            Err(error) => self.failed(&error),
        }
    }

    /// The journal's disk gives an error. If it was for lack of room, the almanac goes on, and the
    /// writer has to claim its shards to know that the commit did not happen.
    fn commit_on_a_bad_disk(&mut self, almanac: &Almanac) -> Result<(), Dead> {
        let mut call = *self.chance.pick(&[Call::Write, Call::Sync, Call::Create, Call::Allocate]);
        if call == Call::Sync && self.config.tending == Tending::Thread {
            // It could strike another thread's sync, at a moment that is not known.
            call = Call::Write;
        }
        let kind = *self.chance.pick(&[ErrorKind::StorageFull, ErrorKind::Other]);
        self.disk.fail(Fault { call, name_contains: "journal-", after: 0, kind, lasting: false });
        let outcome = self.try_commit(almanac);
        self.disk.heal();
        match outcome {
            Err(StoreError::Unavailable(_)) if self.disk.last_call().is_none() => self.claim(almanac),
            outcome => outcome.or_else(|error| self.failed(&error)),
        }
    }

    fn tend(&mut self, almanac: &Almanac) -> Result<(), Dead> {
        let within = *self.chance.pick(&[10, 30, 60]);
        self.maybe_doom(within, 3);
        let outcome = if self.chance.happens(1, 2) { almanac.tend() } else { almanac.checkpoint() };
        match outcome {
            Ok(()) => self.covered(),
            // The keeper may still be in trouble from a bad disk; what failed is made again later.
            Err(StoreError::Unavailable(_)) if self.disk.last_call().is_none() && (self.is_hurt() || self.is_full) => {}
            Err(error) => return self.failed(&error),
        }
        Ok(())
    }

    /// Something goes wrong with a run or the manifest. It is made again later, and what happens
    /// until then happens to a frozen layer.
    fn tend_on_a_bad_disk(&mut self, almanac: &Almanac) -> Result<(), Dead> {
        let faults = [
            (Call::Create, "run-"),
            (Call::Write, "run-"),
            (Call::Sync, "run-"),
            (Call::Remove, "run-"),
            (Call::Read, "run-"),
            (Call::SyncDirectory, ""),
            (Call::Create, "manifest"),
            (Call::Write, "manifest"),
            (Call::Sync, "manifest"),
            (Call::Rename, "manifest"),
            (Call::Write, "journal-"),
        ];
        let (call, name_contains) = *self.chance.pick(&faults);
        let kind = *self.chance.pick(&[ErrorKind::StorageFull, ErrorKind::Other]);
        let after = self.chance.below(2) as usize;
        self.disk.fail(Fault { call, name_contains, after, kind, lasting: self.chance.happens(1, 2) });
        let outcome = almanac.checkpoint();
        self.disk.heal();
        match outcome {
            Ok(()) => self.covered(),
            Err(StoreError::Unavailable(_)) if self.disk.last_call().is_none() => {}
            Err(error) => return self.failed(&error),
        }
        Ok(())
    }

    /// An almanac fails only if its disk has failed.
    fn failed(&self, error: &StoreError) -> Result<(), Dead> {
        assert!(
            self.disk.last_call().is_some() || self.is_hurt() || self.is_full,
            "it failed on a healthy disk: {error}"
        );
        Err(Dead)
    }

    fn is_hurt(&self) -> bool {
        self.disk.failures() > self.failures
    }

    /// All that was confirmed is durable now.
    fn covered(&mut self) {
        self.confirmed.drain(..self.confirmed.len() - 1);
    }

    /// The disk may be full in this life, or not any more.
    fn fill_or_clear(&mut self) {
        if self.chance.happens(1, 8) {
            self.is_full = true;
            self.disk.limit(self.disk.used() + self.chance.below(3 * self.config.segment));
        } else if self.is_full && self.chance.happens(1, 2) {
            self.is_full = false;
            self.disk.limit(u64::MAX);
        }
    }

    fn maybe_doom(&mut self, within: u64, of: u64) {
        if self.chance.happens(1, of) {
            self.doom(within);
        }
    }

    /// The end comes within so many calls.
    fn doom(&mut self, within: u64) {
        self.disk.crash_at(self.disk.calls() + 1 + self.chance.below(within));
    }

    /// The end does not come while somebody looks.
    fn spare(&mut self) -> Result<(), Dead> {
        self.disk.crash_at(u64::MAX);
        if self.disk.last_call().is_some() { Err(Dead) } else { Ok(()) }
    }

    fn die(&mut self, moment: Moment) {
        let killed_at = self.disk.last_call().map_or("after a fault".to_owned(), |(call, name)| {
            let name =
                if name.contains("->") { "manifest.new" } else { name.split(['-', '/']).next().unwrap_or_default() };
            format!("{call:?} {name}")
        });
        *self.deaths.entry(format!("{moment:?}: {killed_at}")).or_default() += 1;
        self.end();
    }

    /// The process ends, or the whole machine.
    fn end(&mut self) {
        self.work.tenures.clear();
        if self.chance.happens(1, 3) {
            self.disk = self.disk.copy();
            return;
        }
        self.power_went = true;
        if self.chance.happens(1, 2) {
            self.look_at_another_outcome();
        }
        self.disk = self.disk.crash(self.chance.draw());
    }

    /// The same power loss could have left something else; that would have been as good.
    fn look_at_another_outcome(&mut self) {
        let disk = self.disk.crash(self.chance.draw());
        disk.limit(u64::MAX);
        let config = Config { tending: Tending::Manual, ..self.config.clone() };
        let almanac = Almanac::open(Arc::new(disk), config, Arc::clone(&self.clock) as _);
        let almanac = almanac.unwrap_or_else(|error| panic!("it does not open: {error}"));
        let found = Model::read(&almanac, &self.work.shards, &self.work.keys).unwrap();
        self.is_possible(&found);
        *self.deaths.entry("Another outcome".to_owned()).or_default() += 1;
    }
}
