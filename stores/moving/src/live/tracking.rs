//! Which rows of a shard change while the shard is copied.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use punctual_core::store::{Batch, Change, ShardId};

/// The numbers of the rows of a shard that were changed, or are about to be.
///
/// A commit notes them before it is made, so that who reads a changed row finds it noted; and again when it is over, so that
/// it is not forgotten if they were taken in between.
pub(super) struct Tracked {
    pub shard: ShardId,
    changed: Mutex<BTreeSet<u64>>,
}

impl Tracked {
    pub fn new(shard: ShardId) -> Tracked {
        Tracked { shard, changed: Mutex::default() }
    }

    /// The numbers of the rows of this shard that some batches change.
    pub fn numbers(&self, batches: &[Batch]) -> Vec<u64> {
        let own = batches.iter().filter(|batch| batch.shard == self.shard);
        own.flat_map(|batch| &batch.changes).flat_map(numbers).collect()
    }

    pub fn note(&self, numbers: &[u64]) {
        self.lock().extend(numbers);
    }

    pub fn has(&self, number: u64) -> bool {
        self.lock().contains(&number)
    }

    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// All that were noted; they are noted anew if they change again.
    pub fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *self.lock()).into_iter().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<u64>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The numbers of the rows that a change is about.
fn numbers(change: &Change) -> impl Iterator<Item = u64> {
    let (one, other) = match change {
        Change::Insert { row, replaces } => (row.seq, replaces.as_ref().map(|place| place.position.seq)),
        Change::Update { place, .. } | Change::Remove { place } => (place.position.seq, None),
    };
    [Some(one), other].into_iter().flatten()
}
