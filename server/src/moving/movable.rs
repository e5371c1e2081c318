//! A store that can be moved while the server works on it: two stores that look like one.

use std::sync::Arc;

use punctual_core::store::{
    Batch, Beat, Claim, Entry, Fence, Found, Hardship, Incarnation, Outdated, Refusal, Roll, Room, ShardId, Store,
    StoreError, Tenure, Terms, Want,
};
use punctual_moving::live::Transit;
use punctual_wire::StoreStats;

use crate::metrics::MetricsPage;
use crate::stores::OpenStore;

/// The store that is moved and the one it is moved into.
pub struct Movable {
    pub transit: Transit,
    pub home: Arc<dyn OpenStore>,
    pub to: Arc<dyn OpenStore>,
}

impl Movable {
    /// The one that is in charge.
    fn in_charge(&self) -> &dyn OpenStore {
        if self.transit.is_over() { &*self.to } else { &*self.home }
    }
}

impl OpenStore for Movable {
    fn line(&self) -> String {
        match self.transit.is_over() {
            true => self.to.line(),
            false => format!("{}\nmoving it to {}", self.home.line(), self.to.line()),
        }
    }

    fn warnings(&self) -> Vec<String> {
        self.home.warnings().into_iter().chain(self.to.warnings()).collect()
    }

    fn whereabouts(&self) -> &'static str {
        self.in_charge().whereabouts()
    }

    fn stats(&self) -> StoreStats {
        self.in_charge().stats()
    }

    fn meter(&self, page: &mut MetricsPage) {
        self.in_charge().meter(page);
    }
}

/// All of it is the transit's.
impl Store for Movable {
    fn beat(&self, beat: &Beat) -> Result<Roll, StoreError> {
        self.transit.beat(beat)
    }

    fn claim(&self, who: &Incarnation, wanted: &[(ShardId, Fence)]) -> Result<Vec<Claim>, StoreError> {
        self.transit.claim(who, wanted)
    }

    fn release(&self, shard: ShardId, fence: Fence, to: Option<&Incarnation>) -> Result<Fence, StoreError> {
        self.transit.release(shard, fence, to)
    }

    fn cluster_get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.transit.cluster_get(key)
    }

    fn cluster_put(&self, key: &str, seen: u64, value: &[u8]) -> Result<Result<u64, Outdated>, StoreError> {
        self.transit.cluster_put(key, seen, value)
    }

    fn read(&self, shard: ShardId, tenure: Tenure, wants: &[Want<'_>]) -> Result<Vec<Found>, StoreError> {
        self.transit.read(shard, tenure, wants)
    }

    fn look(&self, wants: &[(ShardId, Want<'_>)]) -> Result<Vec<Found>, StoreError> {
        self.transit.look(wants)
    }

    fn commit(&self, batches: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        self.transit.commit(batches)
    }

    fn terms(&self) -> Terms {
        self.transit.terms()
    }

    fn hardship(&self) -> Option<Hardship> {
        self.transit.hardship()
    }

    fn room(&self) -> Room {
        self.transit.room()
    }
}
