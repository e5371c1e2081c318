//! The line between a mover and a store: calls get lost on it, and it is cut when the mover is killed.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use punctual_chance::Chance;
use punctual_core::store::{
    Batch, Beat, Claim, Entry, Fence, Found, Incarnation, Outdated, Refusal, Roll, ShardId, Store, StoreError, Tenure,
    Terms, Want,
};

/// How many calls a mover makes before it is killed, over all its lines.
pub struct Life(AtomicI64);

impl Life {
    pub fn of(calls: i64) -> Arc<Life> {
        Arc::new(Life(AtomicI64::new(calls)))
    }

    /// From now on it lasts for so many calls.
    pub fn spend(&self, calls: i64) {
        self.0.store(calls, Ordering::SeqCst);
    }

    /// It does not end any more, unless it is over.
    pub fn spare(&self) -> bool {
        let endless = |left| (left >= 0).then_some(i64::MAX / 2);
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, endless).is_ok()
    }

    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::SeqCst) < 0
    }
}

/// A store at the end of a line.
pub struct Line {
    pub store: Arc<dyn Store>,
    pub life: Arc<Life>,
    /// Whether the last call before the end still has its effect.
    pub last_counts: bool,
    /// How many of a hundred calls get lost, before or after their effect.
    pub loss: u64,
    pub chance: Mutex<Chance>,
    /// Few by default, so that there are many batches.
    pub batch_changes: usize,
}

impl Line {
    pub fn new(store: &Arc<impl Store + 'static>, life: &Arc<Life>) -> Line {
        Line::to(Arc::clone(store) as Arc<dyn Store>, life)
    }

    pub fn to(store: Arc<dyn Store>, life: &Arc<Life>) -> Line {
        let chance = Mutex::new(Chance::new(7));
        Line { store, life: Arc::clone(life), last_counts: false, loss: 0, chance, batch_changes: 5 }
    }

    fn call<T>(&self, call: impl FnOnce(&dyn Store) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let killed = || Err(StoreError::Poisoned("the mover was killed".to_owned()));
        let lost = || Err(StoreError::Unavailable("lost on the line".to_owned()));
        match self.life.0.fetch_sub(1, Ordering::SeqCst) {
            ..0 => return killed(),
            0 if self.last_counts => return call(&*self.store).and_then(|_| killed()),
            0 => return killed(),
            1.. => {}
        }
        let (is_lost, is_kept) = {
            let mut chance = self.chance.lock().unwrap();
            (chance.percent(self.loss), chance.percent(50))
        };
        match (is_lost, is_kept) {
            (false, _) => call(&*self.store),
            (true, true) => call(&*self.store).and_then(|_| lost()),
            (true, false) => lost(),
        }
    }
}

impl Store for Line {
    fn beat(&self, beat: &Beat) -> Result<Roll, StoreError> {
        self.call(|store| store.beat(beat))
    }

    fn claim(&self, who: &Incarnation, wanted: &[(ShardId, Fence)]) -> Result<Vec<Claim>, StoreError> {
        self.call(|store| store.claim(who, wanted))
    }

    fn release(&self, shard: ShardId, fence: Fence, to: Option<&Incarnation>) -> Result<Fence, StoreError> {
        self.call(|store| store.release(shard, fence, to))
    }

    fn cluster_get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.call(|store| store.cluster_get(key))
    }

    fn cluster_put(&self, key: &str, seen: u64, value: &[u8]) -> Result<Result<u64, Outdated>, StoreError> {
        self.call(|store| store.cluster_put(key, seen, value))
    }

    fn read(&self, shard: ShardId, tenure: Tenure, wants: &[Want<'_>]) -> Result<Vec<Found>, StoreError> {
        self.call(|store| store.read(shard, tenure, wants))
    }

    fn look(&self, wants: &[(ShardId, Want<'_>)]) -> Result<Vec<Found>, StoreError> {
        self.call(|store| store.look(wants))
    }

    fn commit(&self, batches: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        self.call(|store| store.commit(batches))
    }

    fn terms(&self) -> Terms {
        Terms { batch_bytes: 2_000 * self.batch_changes, batch_changes: self.batch_changes, lanes: 2, worthwhile: 0 }
    }
}
