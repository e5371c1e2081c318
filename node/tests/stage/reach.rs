//! A store as one of several nodes reaches it: its way there can be cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::store::{
    Batch, Beat, Claim, Entry, Fence, Found, Incarnation, Outdated, Refusal, Roll, ShardId, Store, StoreError, Tenure,
    Want,
};

pub struct Reach {
    store: Arc<dyn Store>,
    is_cut: AtomicBool,
}

impl Reach {
    pub fn new(store: Arc<dyn Store>) -> Arc<Reach> {
        Arc::new(Reach { store, is_cut: AtomicBool::new(false) })
    }

    /// From now on nothing gets there.
    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
    }

    pub fn mend(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }

    fn store(&self) -> Result<&dyn Store, StoreError> {
        let is_cut = self.is_cut.load(Ordering::SeqCst);
        if is_cut { Err(StoreError::Unavailable("out of reach".into())) } else { Ok(&*self.store) }
    }
}

impl Store for Reach {
    fn beat(&self, beat: &Beat) -> Result<Roll, StoreError> {
        self.store()?.beat(beat)
    }
    fn claim(&self, who: &Incarnation, wanted: &[(ShardId, Fence)]) -> Result<Vec<Claim>, StoreError> {
        self.store()?.claim(who, wanted)
    }
    fn release(&self, shard: ShardId, fence: Fence, to: Option<&Incarnation>) -> Result<Fence, StoreError> {
        self.store()?.release(shard, fence, to)
    }
    fn cluster_get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.store()?.cluster_get(key)
    }
    fn cluster_put(&self, key: &str, seen: u64, value: &[u8]) -> Result<Result<u64, Outdated>, StoreError> {
        self.store()?.cluster_put(key, seen, value)
    }
    fn read(&self, shard: ShardId, tenure: Tenure, wants: &[Want<'_>]) -> Result<Vec<Found>, StoreError> {
        self.store()?.read(shard, tenure, wants)
    }
    fn look(&self, wants: &[(ShardId, Want<'_>)]) -> Result<Vec<Found>, StoreError> {
        self.store()?.look(wants)
    }
    fn commit(&self, batches: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        self.store()?.commit(batches)
    }
}
