//! What scenes act on: a node on a memory store whose commits and scans take their time.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use punctual_core::store::{Bodies, Key, Look, Row, ShardId, Table};
use punctual_core::view::{TaskView, settings_of};
use punctual_core::{
    Certainty, Choice, Clock, Delivery, Millis, Name, Reserve, ScheduleOutcome, Scheduled, Standing, Task, Timestamp,
};
use punctual_memory::MemoryStore;
use punctual_node::sync::checked;
use punctual_node::{Error, Handle, Node, NodeConfig, block_on, shard_of};
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread::{self, JoinHandle};

/// The checker's time.
struct SceneClock;

impl Clock for SceneClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(checked::now().as_millis() as u64)
    }
}

pub struct Stage {
    pub store: Arc<MemoryStore>,
    pub node: Node,
    pub handle: Handle,
    shards: u16,
}

/// Who takes a lone caller's step. Nobody looks around without a reason, so that nothing is repaired by that.
pub const RUNNERS: NodeConfigOf =
    || NodeConfig { readers: 1, recheck: Duration::from_secs(1 << 32), ..NodeConfig::new(name("node")) };
pub const CALLERS: NodeConfigOf = || NodeConfig { callers_step: true, ..RUNNERS() };
/// Two shards, one committer.
pub const SHARDS: NodeConfigOf = || NodeConfig { shards: 2, ..RUNNERS() };

pub type NodeConfigOf = fn() -> NodeConfig;

impl Stage {
    pub fn new(config: NodeConfigOf) -> Stage {
        Stage::with(config())
    }

    pub fn with(config: NodeConfig) -> Stage {
        Stage::on(new_store(), config)
    }

    /// A node on a store that others may know already.
    pub fn on(store: Arc<MemoryStore>, config: NodeConfig) -> Stage {
        let shards = config.shards;
        let node = Node::start(config, store.clone(), Arc::new(SceneClock)).unwrap();
        Stage { store, handle: node.handle(), node, shards }
    }

    /// Somebody with a thread and a handle of its own.
    pub fn actor<T: Send + 'static>(&self, act: impl FnOnce(Handle) -> T + Send + 'static) -> JoinHandle<T> {
        let handle = self.handle.clone();
        thread::spawn(move || act(handle))
    }

    /// Another node on the same store, which remembers nothing.
    pub fn restart(self, config: NodeConfigOf) -> Stage {
        let Stage { store, node, shards, .. } = self;
        node.stop();
        let node = Node::start(config(), store.clone(), Arc::new(SceneClock)).unwrap();
        Stage { store, handle: node.handle(), node, shards }
    }

    /// What a look into the store can be asked for also when the node has stopped.
    pub fn book(&self) -> Book {
        Book { store: Arc::clone(&self.store), shards: self.shards }
    }
}

/// Somebody for whom time passes until it is done.
pub struct Awaited<T> {
    thread: JoinHandle<T>,
    is_done: Arc<AtomicBool>,
}

impl<T: Send + 'static> Awaited<T> {
    pub fn new(stage: &Stage, act: impl FnOnce(Handle) -> T + Send + 'static) -> Awaited<T> {
        let is_done = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&is_done);
        let thread = stage.actor(move |handle| {
            let outcome = act(handle);
            done.store(true, Ordering::SeqCst);
            outcome
        });
        Awaited { thread, is_done }
    }

    /// Lets time pass until it is done. A shard that was lost is back by then, and nothing else takes that long.
    pub fn end(self) -> T {
        let latest = checked::now() + Duration::from_secs(10);
        while !self.is_done.load(Ordering::SeqCst) {
            checked::pass(Duration::from_millis(100));
            assert!(checked::now() < latest, "somebody is kept waiting");
            thread::yield_now();
        }
        self.thread.join().unwrap()
    }
}

pub fn new_store() -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new(Arc::new(SceneClock)));
    take_time(&store);
    store
}

/// Commits and scans take effect a while after they were asked for.
pub fn take_time(store: &MemoryStore) {
    store.faults().slow_down(switch);
    store.faults().slow_down_scans(|_| switch());
}

/// Lets others run, or not.
pub fn switch() {
    thread::sleep(Duration::ZERO);
}

/// What the store has.
#[derive(Clone)]
pub struct Book {
    store: Arc<MemoryStore>,
    shards: u16,
}

impl Book {
    pub fn row(&self, id: &str) -> Option<Row> {
        let key = Key::task(&name("orders"), &name(id));
        self.store.get(shard_of("orders", id, self.shards), &[key], Bodies::Without).unwrap().remove(0)
    }

    pub fn table(&self, id: &str) -> Option<Table> {
        self.row(id).map(|row| row.table)
    }

    /// Whether it is with a consumer.
    pub fn is_leased(&self, id: &str) -> bool {
        let view = self.row(id).map(|row| TaskView::of(&row, SceneClock.now()));
        view.is_some_and(|view| matches!(view.delivery.standing, Standing::Leased { .. }))
    }

    /// Whether the one shard of a scene has settings of the topic.
    pub fn has_topic(&self) -> bool {
        settings_of(&*self.store, ShardId(0)).unwrap().topics.contains_key("orders")
    }

    /// What is confirmed is durable, and what was not done is not there.
    pub fn confirms(&self, id: &str, answer: &Result<Scheduled, Error>) {
        match answer {
            Ok(scheduled) => {
                assert_eq!(scheduled.id, name(id));
                assert!(matches!(scheduled.outcome, ScheduleOutcome::Created { .. }), "{scheduled:?}");
                assert!(self.row(id).is_some(), "{id} was confirmed and is not durable");
            }
            Err(error) if is_undone(error) => {
                assert!(self.row(id).is_none(), "{id} was refused ({error}) and is there");
            }
            Err(_) => {}
        }
    }
}

/// Whether an error says that nothing was done.
pub fn is_undone(error: &Error) -> bool {
    error.certainty() == Certainty::NothingDone
}

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A task of the one topic that scenes use, due at once.
pub fn task(id: &str) -> Task {
    Task::new(name("orders"), id.to_owned()).id(name(id))
}

pub fn schedule(handle: &Handle, id: &str) -> Result<Scheduled, Error> {
    block_on(handle.schedule(task(id)))
}

/// A consumer that waits for one delivery until then.
pub fn until(at: Timestamp) -> Reserve {
    let (consumer, choice) = (name("consumer"), Choice::default());
    Reserve { queues: vec![name("orders")], max: 1, lease: Some(Millis::from_hours(1)), until: at, consumer, choice }
}

/// Waits for one delivery, however long it takes.
pub fn next(handle: &Handle) -> Delivery {
    block_on(handle.reserve(until(Timestamp::NEVER))).unwrap().pop().expect("it waits for as long as it takes")
}

/// Sends one thing after the other, without waiting for the answer to the first before the second.
pub fn both<A: Future, B: Future>(first: A, second: B) -> (A::Output, B::Output) {
    let (mut first, mut second) = (Box::pin(first), Box::pin(second));
    let (mut one, mut other) = (None, None);
    block_on(poll_fn(|context| {
        if one.is_none() {
            one = ready(first.as_mut().poll(context));
        }
        if other.is_none() {
            other = ready(second.as_mut().poll(context));
        }
        if one.is_some() && other.is_some() { Poll::Ready(()) } else { Poll::Pending }
    }));
    (one.unwrap(), other.unwrap())
}

/// Looks at a future so many times, and then drops it if it is not done.
pub fn give_up<F: Future>(future: F, looks: usize) -> Option<F::Output> {
    let mut future = Box::pin(future);
    (0..looks).find_map(|_| {
        switch();
        ready(future.as_mut().poll(&mut Context::from_waker(Waker::noop())))
    })
}

fn ready<T>(poll: Poll<T>) -> Option<T> {
    match poll {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
