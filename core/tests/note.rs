//! What a shard notes when it is opened for the first time, and holds whoever opens it again to.

use std::sync::Arc;

use crate::center::{Center, SHARD, at, claim, task};
use punctual_core::store::{Refusal, StoreError, Tenure};
use punctual_core::view::noted_shards;
use punctual_core::{Clock, OpenError, Shard, ShardConfig, Timestamp};
use punctual_memory::{Fate, MemoryStore};

/// A clock that stands still.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        at(0)
    }
}

fn empty_store() -> MemoryStore {
    MemoryStore::new(Arc::new(Still))
}

fn open(store: &MemoryStore, tenure: Tenure, shards: u16) -> Result<Shard<u64>, OpenError> {
    let config = ShardConfig { shards, ..ShardConfig::default() };
    Shard::open(SHARD, tenure, config, at(0), store)
}

#[test]
fn a_shard_that_never_had_a_task_already_knows_how_many_shards_there_are() {
    let store = empty_store();
    assert_eq!(noted_shards(&store), Ok(None));
    assert!(open(&store, claim(&store), 4).is_ok());
    assert_eq!(noted_shards(&store), Ok(Some(4)));
    for configured in [1, 2, 3, 5, 8] {
        let refused = open(&store, claim(&store), configured).map(drop).unwrap_err();
        assert_eq!(refused, OpenError::Shards { noted: 4, configured });
    }
    let text = open(&store, claim(&store), 2).map(drop).unwrap_err().to_string();
    assert_eq!(text, "this store has 4 shards, not 2: start with 4");
    assert!(open(&store, claim(&store), 4).is_ok());
}

#[test]
fn the_number_of_shards_stays_noted_when_the_note_changes() {
    let mut center = Center::with(ShardConfig { shards: 4, ..ShardConfig::default() });
    // The first task sets numbers aside, which is noted in the same place.
    center.schedule(task("1", 60_000));
    let refused = open(&center.store, claim(&center.store), 1).map(drop);
    assert_eq!(refused, Err(OpenError::Shards { noted: 4, configured: 1 }));
    center.restart();
    assert!(center.standing("1").is_some());
}

#[test]
fn a_shard_whose_first_note_may_be_lost_is_not_opened() {
    for (fate, noted) in [(Fate::Lost, false), (Fate::Kept, true)] {
        let store = empty_store();
        store.faults().fail_next_commit(fate);
        let failed = open(&store, claim(&store), 4).map(drop);
        assert!(matches!(failed, Err(OpenError::Store(StoreError::Unavailable(_)))), "{failed:?}");
        let other = open(&store, claim(&store), 2).map(drop);
        assert_eq!(other.is_err(), noted, "{other:?}");
    }
}

#[test]
fn a_shard_is_not_opened_under_an_old_fence() {
    let store = empty_store();
    let (old, current) = (claim(&store), claim(&store));
    let fenced = OpenError::Store(StoreError::Refused(Refusal::Fenced { current: current.fence }));
    assert_eq!(open(&store, old, 4).map(drop), Err(fenced));
    assert!(open(&store, current, 2).is_ok(), "nothing was noted");
}
