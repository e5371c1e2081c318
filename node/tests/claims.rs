//! A node that loses its claims, or cannot keep them: what callers hear, and who has what meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::stage::{
    Gate, MovedClock, PATIENCE, Stage, config, eventually, finish, is_created, is_dry, name, next, schedule_until_back,
    take, task, wait_for,
};
use punctual_core::store::{
    Batch, Beat, Claim, Entry, Fence, Found, Incarnation, Outdated, Refusal, Roll, ShardId, Store, StoreError, Tenure,
    Want,
};
use punctual_core::{Certainty, Millis, Reserve, TopicSettings};
use punctual_memory::{Fate, MemoryStore};
use punctual_node::{Error, Node, NodeConfig, StartError, SystemClock};

#[tokio::test]
async fn a_shard_that_was_fenced_off_is_claimed_again() {
    let Stage { handle, store, node: _node, .. } = Stage::new(1);
    handle.schedule(task("orders", "1")).await.unwrap();
    take(&store, ShardId(0), "node");
    let answer = handle.schedule(task("orders", "2")).await;
    assert!(matches!(answer, Err(Error::Unavailable { .. })), "{answer:?}");
    assert!(is_created(&schedule_until_back(&handle, task("orders", "2")).await));
    next(&handle, "orders").await;
    next(&handle, "orders").await;
}

/// A store that one of two nodes cannot reach to keep its claims.
struct Apart {
    store: Arc<MemoryStore>,
    is_apart: AtomicBool,
}

impl Apart {
    fn reach(&self) -> Result<(), StoreError> {
        let is_apart = self.is_apart.load(Ordering::SeqCst);
        if is_apart { Err(StoreError::Unavailable("out of reach".into())) } else { Ok(()) }
    }
}

impl Store for Apart {
    fn beat(&self, beat: &Beat) -> Result<Roll, StoreError> {
        self.reach()?;
        self.store.beat(beat)
    }
    fn claim(&self, who: &Incarnation, wanted: &[(ShardId, Fence)]) -> Result<Vec<Claim>, StoreError> {
        self.reach()?;
        self.store.claim(who, wanted)
    }
    fn release(&self, shard: ShardId, fence: Fence, to: Option<&Incarnation>) -> Result<Fence, StoreError> {
        self.store.release(shard, fence, to)
    }
    fn cluster_get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.store.cluster_get(key)
    }
    fn cluster_put(&self, key: &str, seen: u64, value: &[u8]) -> Result<Result<u64, Outdated>, StoreError> {
        self.store.cluster_put(key, seen, value)
    }
    fn read(&self, shard: ShardId, tenure: Tenure, wants: &[Want<'_>]) -> Result<Vec<Found>, StoreError> {
        self.store.read(shard, tenure, wants)
    }
    fn look(&self, wants: &[(ShardId, Want<'_>)]) -> Result<Vec<Found>, StoreError> {
        self.store.look(wants)
    }
    fn commit(&self, batches: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        self.store.commit(batches)
    }
}

#[tokio::test]
async fn a_node_that_cannot_renew_its_claims_loses_them_to_another() {
    let clock = Arc::new(MovedClock::default());
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let apart = Arc::new(Apart { store: store.clone(), is_apart: AtomicBool::new(false) });
    let short = |node: &str| NodeConfig { name: name(node), ownership: Millis(300), ..config(2) };
    let first = Node::start(short("first"), apart.clone(), clock.clone()).unwrap();
    for number in 0..8 {
        first.handle().schedule(task("orders", &number.to_string())).await.unwrap();
    }
    let held = Node::start(short("second"), store.clone(), clock.clone());
    assert!(matches!(held.unwrap_err(), StartError::Held { by, .. } if by == name("first")));
    // While claims are renewed, they last.
    tokio::time::sleep(Duration::from_millis(700)).await;
    first.handle().schedule(task("orders", "8")).await.unwrap();
    let held = Node::start(short("second"), store.clone(), clock.clone());
    assert!(matches!(held.unwrap_err(), StartError::Held { by, .. } if by == name("first")));

    apart.is_apart.store(true, Ordering::SeqCst);
    let mut second = None;
    eventually("the claims are over", async || {
        second = Node::start(short("second"), store.clone(), clock.clone()).ok();
        second.is_some()
    })
    .await;
    let second = second.unwrap();
    for number in 0..8 {
        let answer = first.handle().schedule(task("orders", &format!("late-{number}"))).await;
        assert!(matches!(answer, Err(Error::Unavailable { .. })), "{answer:?}");
    }
    apart.is_apart.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let answer = first.handle().schedule(task("orders", "late")).await;
    assert!(matches!(&answer, Err(Error::Unavailable { why, .. }) if why.contains("second")), "{answer:?}");
    for _ in 0..9 {
        let delivery = next(&second.handle(), "orders").await;
        finish(&second.handle(), delivery.lease).await;
    }
    assert!(is_dry(&second.handle(), "orders").await);
    first.stop();
    second.stop();
}

#[tokio::test]
async fn what_some_shards_have_done_is_not_said_to_be_undone() {
    for shards in [1, 2] {
        let clock = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let apart = Arc::new(Apart { store: store.clone(), is_apart: AtomicBool::new(false) });
        let node = Node::start(config(shards), apart.clone(), clock).unwrap();
        let handle = node.handle();
        // A shard whose commit fails, and that cannot be claimed again, stays away.
        apart.is_apart.store(true, Ordering::SeqCst);
        store.faults().fail_next_commit(Fate::Lost);
        let lost = handle.schedule(task("orders", "7")).await.unwrap_err();
        assert_eq!((lost.code(), lost.certainty()), ("outcome-unknown", Certainty::Unknown));
        let refused = handle.schedule(task("orders", "7")).await.unwrap_err();
        assert_eq!((refused.code(), refused.certainty()), ("unavailable", Certainty::NothingDone));

        let certain = if shards == 1 { Certainty::NothingDone } else { Certainty::Unknown };
        // Settings are changed everywhere, or it is not begun.
        let put = handle.put_topic(&name("orders"), TopicSettings::default()).await;
        assert_eq!(put.unwrap_err().certainty(), Certainty::NothingDone);
        let sweep = async |dry_run| handle.cancel_key(&name("ann"), None, dry_run).await.unwrap_err().certainty();
        assert_eq!((sweep(false).await, sweep(true).await), (certain, Certainty::NothingDone));
        let deleted = handle.delete_topic(&name("orders"), true).await;
        assert_eq!(deleted.unwrap_err().certainty(), Certainty::NothingDone);
        assert_eq!(handle.total().await.unwrap_err().certainty(), Certainty::NothingDone);
        node.stop();
    }
}

#[tokio::test]
async fn a_delivery_that_leaves_late_from_a_lost_shard_has_no_holder() {
    let clock = Arc::new(SystemClock);
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let apart = Arc::new(Apart { store: store.clone(), is_apart: AtomicBool::new(false) });
    let short = NodeConfig { ownership: Millis(300), callers_step: false, ..config(1) };
    let node = Node::start(short, apart.clone(), clock).unwrap();
    let handle = node.handle();
    handle.schedule(task("orders", "1")).await.unwrap();
    let gate = Gate::default();
    store.faults().slow_down(gate.pass());
    let reserve = Reserve { lease: Some(Millis(100)), ..wait_for(&handle, "orders", PATIENCE) };
    let taking = tokio::spawn({
        let handle = handle.clone();
        async move { handle.reserve(reserve).await }
    });
    tokio::task::yield_now().await;
    gate.wait_for_somebody();
    // The commit with the lease takes so long that the shard is given up, and the end of the lease cannot be put off.
    apart.is_apart.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(700)).await;
    gate.open();
    assert_eq!(taking.await.unwrap().unwrap_err().certainty(), Certainty::Unknown);
    apart.is_apart.store(false, Ordering::SeqCst);
    assert_eq!(next(&handle, "orders").await.attempt, 2);
    node.stop();
}
