//! What the tests act on: a node on a memory store, with a clock and a gate that they can move.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

pub mod nodes;
pub mod reach;
pub mod wires;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use punctual_core::store::{Beat, Claim, Incarnation, ShardId, Store, Tenure, Terms};
use punctual_core::{
    Choice, Clock, Delivery, Lease, Millis, Name, Reserve, ScheduleOutcome, Scheduled, Task, Timestamp,
};
use punctual_memory::MemoryStore;
use punctual_node::{Error, Handle, Node, NodeConfig, SystemClock};

/// Long enough for a slow machine, short enough to notice that something hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The machine's clock, moved by an offset.
#[derive(Default)]
pub struct MovedClock {
    offset_micros: AtomicI64,
}

impl MovedClock {
    /// Moves the clock by so many milliseconds.
    pub fn step(&self, millis: i64) {
        self.offset_micros.fetch_add(millis * 1_000, Ordering::SeqCst);
    }
}

impl Clock for MovedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.micros() / 1_000)
    }

    fn micros(&self) -> u64 {
        SystemClock.micros().saturating_add_signed(self.offset_micros.load(Ordering::SeqCst))
    }
}

pub struct Stage {
    pub clock: Arc<MovedClock>,
    pub store: Arc<MemoryStore>,
    pub node: Node,
    pub handle: Handle,
}

impl Stage {
    pub fn new(shards: u16) -> Stage {
        Stage::with(config(shards))
    }

    pub fn with(config: NodeConfig) -> Stage {
        Stage::on_terms(config, Terms::default())
    }

    /// On a store that wants to be worked with like this.
    pub fn on_terms(config: NodeConfig, terms: Terms) -> Stage {
        let clock = Arc::new(MovedClock::default());
        let store = Arc::new(MemoryStore::new(clock.clone()).on_terms(terms));
        let node = Node::start(config, store.clone(), clock.clone()).unwrap();
        let handle = node.handle();
        Stage { clock, store, node, handle }
    }

    /// Stops the node and starts another one of this name on the same store.
    pub fn restart(self, config: NodeConfig) -> Stage {
        let Stage { clock, store, node, .. } = self;
        node.stop();
        let node = Node::start(config, store.clone(), clock.clone()).unwrap();
        let handle = node.handle();
        Stage { clock, store, node, handle }
    }

    /// Holds every commit from now on until the gate is opened.
    pub fn close_gate(&self) -> Gate {
        let gate = Gate::default();
        self.store.faults().slow_down(gate.pass());
        gate
    }
}

/// Holds who comes until it is opened, or the test is over.
#[derive(Default)]
pub struct Gate {
    /// Whether it is open, and how many came to it.
    state: Arc<GateState>,
}

type GateState = (Mutex<(bool, usize)>, Condvar);

fn pass((state, bell): &GateState) {
    let mut state = state.lock().unwrap();
    state.1 += 1;
    bell.notify_all();
    while !state.0 {
        state = bell.wait(state).unwrap();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}

impl Gate {
    /// What holds whoever calls it until the gate is open.
    pub fn pass(&self) -> impl Fn() + Send + Sync + 'static {
        let state = Arc::clone(&self.state);
        move || pass(&state)
    }

    pub fn open(&self) {
        self.state.0.lock().unwrap().0 = true;
        self.state.1.notify_all();
    }

    /// Whether somebody stands at the gate, or has.
    pub fn has_somebody(&self) -> bool {
        self.state.0.lock().unwrap().1 > 0
    }

    /// Waits until somebody stands at the gate: a commit, if it holds those.
    pub fn wait_for_somebody(&self) {
        let state = self.state.0.lock().unwrap();
        let (state, _) = self.state.1.wait_timeout_while(state, PATIENCE, |state| state.1 == 0).unwrap();
        assert!(state.1 > 0, "nobody came to the gate");
    }
}

/// Takes a shard from whoever has it.
pub fn take(store: &MemoryStore, shard: ShardId, node: &str) -> Tenure {
    let who = Incarnation { node: name(node), number: 1 };
    let roll = store.beat(&Beat { who: who.clone(), address: String::new(), lease: Millis::ZERO }).unwrap();
    let claims = store.claim(&who, &[(shard, roll.fence(shard))]).unwrap();
    let [Claim::Granted(tenure)] = claims[..] else { panic!("nobody claims at the same time: {claims:?}") };
    tenure
}

pub fn config(shards: u16) -> NodeConfig {
    NodeConfig { recheck: Duration::from_millis(10), ..NodeConfig::new(name("node")).shards(shards) }
}

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub fn task(topic: &str, id: &str) -> Task {
    Task::new(name(topic), id.to_owned()).id(name(id))
}

/// A consumer that wants one delivery from one queue and waits so long.
pub fn wait_for(handle: &Handle, queue: &str, wait: Duration) -> Reserve {
    Reserve {
        queues: vec![name(queue)],
        max: 1,
        lease: Some(Millis::from_hours(1)),
        until: handle.now().plus(Millis::from(wait)),
        consumer: name("consumer"),
        choice: Choice::default(),
    }
}

/// The next delivery of a queue.
pub async fn next(handle: &Handle, queue: &str) -> Delivery {
    let mut deliveries = handle.reserve(wait_for(handle, queue, PATIENCE)).await.unwrap();
    assert_eq!(deliveries.len(), 1, "nothing came from {queue}");
    deliveries.remove(0)
}

/// Whether a queue has nothing to give now.
pub async fn is_dry(handle: &Handle, queue: &str) -> bool {
    handle.reserve(wait_for(handle, queue, Duration::ZERO)).await.unwrap().is_empty()
}

pub async fn finish(handle: &Handle, lease: Lease) {
    handle.acknowledge(lease).await.unwrap();
}

/// Tries until the shard is back.
pub async fn schedule_until_back(handle: &Handle, task: Task) -> Scheduled {
    for _ in 0..2_000 {
        match handle.schedule(task.clone()).await {
            Ok(scheduled) => return scheduled,
            Err(Error::Unavailable { .. }) => tokio::time::sleep(Duration::from_millis(10)).await,
            Err(other) => panic!("{other:?}"),
        }
    }
    panic!("the shard does not come back");
}

/// Waits until something is so.
pub async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..4_000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never came about that {what}");
}

pub fn is_created(scheduled: &Scheduled) -> bool {
    matches!(scheduled.outcome, ScheduleOutcome::Created { .. })
}
