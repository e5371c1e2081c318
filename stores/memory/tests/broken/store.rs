//! A good store with one thing wrong. It differs from the memory store in one more way, which is right: it tells which
//! batches are astray.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use punctual_core::Clock;
use punctual_core::store::{
    Batch, Beat, Claim, Entry, Fence, Found, Incarnation, Outdated, Refusal, Roll, ShardId, Store, StoreError, Tenure,
    Want,
};
use punctual_memory::MemoryStore;

use crate::bench::TestClock;
use crate::cases::Breakage;
use crate::places::Places;

/// The shard on which the suite works most of the time.
pub const SHARD: ShardId = ShardId(7);

pub struct Broken {
    breakage: Option<Breakage>,
    pub good: MemoryStore,
    pub clock: Arc<TestClock>,
    /// How far each shard is in truth.
    known: Mutex<HashMap<ShardId, Tenure>>,
    pub places: Mutex<Places>,
    /// What was confirmed and is not there yet, in a store that confirms too early.
    pub late: Mutex<Vec<Batch>>,
    /// How many batches that change nothing each shard has taken for a commit.
    pub empty: Mutex<HashMap<ShardId, u64>>,
}

impl Broken {
    pub fn new(breakage: Option<Breakage>, clock: Arc<TestClock>) -> Broken {
        let is = |some: Breakage| breakage == Some(some);
        // A store that does not ask the clock when it gives fences and revisions, and only counts.
        let asked = if is(Breakage::NumbersWithoutTheClock) { Arc::default() } else { Arc::clone(&clock) };
        let good = MemoryStore::new(asked);
        if is(Breakage::ForgetsCommitsWhenReopened) {
            good.hold();
        }
        let (known, places) = (Mutex::default(), Mutex::default());
        Broken { breakage, good, clock, known, places, late: Mutex::default(), empty: Mutex::default() }
    }

    /// Notes how everything is; what comes back takes it there again.
    pub fn mark(self: Arc<Broken>) -> impl FnOnce() {
        self.good.hold();
        let (known, places) = (self.known().clone(), self.places.lock().unwrap().clone());
        move || {
            self.good.fail_over();
            *self.known() = known;
            *self.places.lock().unwrap() = places;
        }
    }

    pub fn is(&self, breakage: Breakage) -> bool {
        self.breakage == Some(breakage)
    }

    /// How far each shard is. Whoever holds this is alone with the store.
    pub fn known(&self) -> MutexGuard<'_, HashMap<ShardId, Tenure>> {
        self.known.lock().unwrap()
    }

    pub fn tenure(&self, shard: ShardId) -> Tenure {
        self.known().get(&shard).copied().unwrap_or_default()
    }
}

impl Store for Broken {
    fn beat(&self, beat: &Beat) -> Result<Roll, StoreError> {
        let roll = self.good.beat(&self.bend_beat(beat)?)?;
        Ok(self.bend_roll(Roll { micros: self.clock.micros(), ..roll }))
    }

    fn claim(&self, who: &Incarnation, wanted: &[(ShardId, Fence)]) -> Result<Vec<Claim>, StoreError> {
        self.bend_claim(who, wanted)
    }

    fn release(&self, shard: ShardId, fence: Fence, to: Option<&Incarnation>) -> Result<Fence, StoreError> {
        self.bend_release(shard, fence, to)
    }

    fn cluster_get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.bend_get(&self.bend_key(key))
    }

    fn cluster_put(&self, key: &str, seen: u64, value: &[u8]) -> Result<Result<u64, Outdated>, StoreError> {
        self.bend_put(&self.bend_key(key), seen, value)
    }

    fn read(&self, shard: ShardId, tenure: Tenure, wants: &[Want<'_>]) -> Result<Vec<Found>, StoreError> {
        self.bend_read(shard, tenure, wants)
    }

    fn look(&self, wants: &[(ShardId, Want<'_>)]) -> Result<Vec<Found>, StoreError> {
        self.bend_look(wants)
    }

    fn commit(&self, batches: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        self.bend_commit(batches)
    }
}
