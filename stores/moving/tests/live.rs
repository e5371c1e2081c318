//! Facts about moving a store under a node that goes on: a ledger of what was scheduled, handed out and done, kept while
//! shards cross over and the server is killed.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use punctual_chance::Chance;
use punctual_core::store::{ShardId, Store};
use punctual_core::{Choice, Clock, Millis, Name, Reserve, Task};
use punctual_moving::live::{Transit, target_of};
use punctual_moving::marks::{self, Barred};
use punctual_moving::{Move, MoveError, Side};
use punctual_node::{Handle, Node, NodeConfig, block_on};
use stage::{Life, Line, Stage, contents};

const SHARDS: u16 = 4;
const ENDLESS: i64 = i64::MAX / 2;

/// A server on its way from one store into another.
struct Server {
    transit: Arc<Transit>,
    to: Arc<dyn Store>,
    node: Node,
}

impl Server {
    /// Starts, and goes on with a move that was under way.
    fn start(stage: &Stage, life: &Arc<Life>) -> Server {
        let line = |store| {
            Arc::new(Line { last_counts: true, batch_changes: 300, ..Line::new(store, life) }) as Arc<dyn Store>
        };
        let (home, to) = (line(&stage.from), line(&stage.to));
        let transit = Arc::new(Transit::new(Arc::clone(&home), "the old store"));
        if target_of(&*home).unwrap().is_some() {
            transit.resume(Arc::clone(&to), "the new store").unwrap();
        }
        let mut config = NodeConfig::new(Name::stored("server")).shards(SHARDS);
        config.ownership = Millis(600);
        let node = Node::start(config, Arc::clone(&transit) as _, Arc::clone(&stage.clock) as _).unwrap();
        Server { transit, to, node }
    }

    /// Moves all shards, as far as it gets.
    fn drive(&self) -> Result<(), String> {
        if self.transit.crossed().is_none() {
            self.transit.begin(Arc::clone(&self.to), "the new store").map_err(|error| error.to_string())?;
        }
        for shard in (0..SHARDS).map(ShardId) {
            if self.transit.crossed().unwrap().contains(&shard) {
                continue;
            }
            let ahead = self.transit.copy_ahead(shard, &|_| {}).map_err(|error| error.to_string())?;
            let transit = Arc::clone(&self.transit);
            let handle = self.node.handle();
            let handed = handle.set_aside(shard, move |tenure| transit.hand_over(ahead, tenure));
            block_on(handed).map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        }
        self.transit.finish(&[]).map(drop).map_err(|error| error.to_string())
    }
}

/// What happened, as those know it who asked for it.
#[derive(Default)]
struct Ledger {
    /// When each task may be handed out first.
    scheduled: Mutex<BTreeMap<String, u64>>,
    done: Mutex<BTreeSet<String>>,
    /// Those that may be done: the answer was lost.
    maybe_done: Mutex<BTreeSet<String>>,
    next: AtomicU64,
    is_over: AtomicBool,
}

const LEASE: u64 = 400;

impl Ledger {
    fn schedule(&self, handle: &Handle, clock: &dyn Clock, mut chance: Chance) {
        while !self.is_over.load(Ordering::SeqCst) {
            let id = self.next.fetch_add(1, Ordering::SeqCst).to_string();
            let delay = chance.below(150);
            let due = clock.now().as_millis() + delay;
            let body = vec![7; chance.magnitude(1, 20_000) as usize];
            let task =
                Task::new(Name::stored("orders"), body).id(Name::stored(&id)).after(Duration::from_millis(delay));
            if block_on(handle.schedule(task)).is_ok() {
                self.scheduled.lock().unwrap().insert(id, due);
            }
            thread::sleep(Duration::from_micros(500));
        }
    }

    fn consume(&self, handle: &Handle, clock: &dyn Clock) {
        while !self.is_over.load(Ordering::SeqCst) {
            self.take_some(handle, clock, 100);
        }
    }

    /// Takes some deliveries and does them; says how many.
    fn take_some(&self, handle: &Handle, clock: &dyn Clock, wait: u64) -> usize {
        let reserve = Reserve {
            queues: vec![Name::stored("orders")],
            max: 5,
            lease: Some(Millis(LEASE)),
            until: clock.now().plus(Millis(wait)),
            consumer: Name::stored("consumer"),
            choice: Choice::default(),
        };
        let Ok(deliveries) = block_on(handle.reserve(reserve)) else { return 0 };
        let now = clock.now().as_millis();
        for delivery in &deliveries {
            let id = delivery.id.as_str();
            assert!(!self.done.lock().unwrap().contains(id), "{id} was done already");
            let due = self.scheduled.lock().unwrap().get(id).copied();
            assert!(due.is_none_or(|due| due <= now), "{id} is early");
            if block_on(handle.acknowledge(delivery.lease.clone())).is_ok() {
                self.done.lock().unwrap().insert(id.to_owned());
            } else {
                self.maybe_done.lock().unwrap().insert(id.to_owned());
            }
        }
        deliveries.len()
    }

    /// Lets some act while something happens.
    fn while_in_use<T>(&self, node: &Node, clock: &Arc<stage::Hurried>, seed: u64, work: impl FnOnce() -> T) -> T {
        self.is_over.store(false, Ordering::SeqCst);
        let (handle, mut chance) = (node.handle(), Chance::new(seed));
        thread::scope(|scope| {
            for _ in 0..2 {
                let chance = chance.fork();
                scope.spawn(|| self.schedule(&handle, &**clock, chance));
                scope.spawn(|| self.consume(&handle, &**clock));
            }
            let done = work();
            self.is_over.store(true, Ordering::SeqCst);
            done
        })
    }

    /// Requires that everything that was scheduled is done in the end.
    fn settle(&self, handle: &Handle, clock: &dyn Clock) {
        let begun = Instant::now();
        let missing = || {
            let (done, maybe) = (self.done.lock().unwrap(), self.maybe_done.lock().unwrap());
            let is_missing = |id: &&String| !done.contains(*id) && !maybe.contains(*id);
            self.scheduled.lock().unwrap().keys().filter(is_missing).cloned().collect::<Vec<_>>()
        };
        while !missing().is_empty() {
            self.take_some(handle, clock, 50);
            assert!(begun.elapsed() < Duration::from_secs(20), "lost: {:?}", missing());
        }
    }
}

/// Lets go of a server without a word, as if it had been killed: its line is cut before.
fn kill(server: Server, stage: &Stage) {
    drop(server);
    stage.clock.pass(Duration::from_secs(10));
}

#[test]
fn a_store_is_moved_while_tasks_come_and_go() {
    let stage = Stage::new();
    let server = Server::start(&stage, &Life::of(ENDLESS));
    let ledger = Ledger::default();
    ledger.while_in_use(&server.node, &stage.clock, 1, || {
        thread::sleep(Duration::from_millis(200));
        server.drive().unwrap();
        thread::sleep(Duration::from_millis(200));
    });
    assert!(server.transit.is_over());
    assert!(ledger.scheduled.lock().unwrap().len() > 100);
    ledger.settle(&server.node.handle(), &*stage.clock);
    server.node.stop();
    assert!(matches!(marks::check(&*stage.from), Err(Barred::Left { .. })));
    assert_eq!(marks::check(&*stage.to), Ok(()));
    // It is a store like any other from now on.
    let third = Stage::new();
    let (from, to) = (Side { store: &*stage.to, name: "new" }, Side { store: &*third.to, name: "third" });
    let report = Move::new(from, to).run().unwrap();
    assert_eq!(report.shards.len(), usize::from(SHARDS));
    assert_eq!(contents(&*stage.to), contents(&*third.to));
}

#[test]
fn killed_in_the_middle_again_and_again_it_loses_and_repeats_nothing() {
    let mut killed_midway = false;
    for seed in 0..12 {
        let (stage, ledger) = (Stage::new(), Ledger::default());
        let mut chance = Chance::new(seed);
        // Something to carry.
        let server = Server::start(&stage, &Life::of(ENDLESS));
        ledger.while_in_use(&server.node, &stage.clock, seed, || thread::sleep(Duration::from_millis(50)));
        server.node.stop();
        let mut lives = 0;
        loop {
            lives += 1;
            let life = Life::of(ENDLESS);
            let server = Server::start(&stage, &life);
            life.spend(if lives < 6 { chance.between(50, 1_500) as i64 } else { ENDLESS });
            let moved = ledger.while_in_use(&server.node, &stage.clock, seed, || {
                let moved = server.drive();
                thread::sleep(Duration::from_millis(chance.below(40)));
                moved
            });
            if moved.is_ok() && life.spare() {
                ledger.settle(&server.node.handle(), &*stage.clock);
                break;
            }
            assert!(life.is_over(), "seed {seed}: {moved:?}");
            kill(server, &stage);
            if matches!(marks::check(&*stage.from), Err(Barred::Left { .. })) {
                // All had been said before the end.
                let (clock, to) = (Arc::clone(&stage.clock), Arc::clone(&stage.from));
                let other = Stage { clock, from: Arc::clone(&stage.to), to };
                ledger.settle(&Server::start(&other, &Life::of(ENDLESS)).node.handle(), &*other.clock);
                break;
            }
            killed_midway |= server_crossed(&stage);
        }
        assert!(matches!(marks::check(&*stage.from), Err(Barred::Left { .. })), "seed {seed}");
    }
    assert!(killed_midway, "some shards were here and some there");
}

/// Whether some shards have crossed.
fn server_crossed(stage: &Stage) -> bool {
    let entry = stage.from.cluster_get(marks::KEY).unwrap();
    entry.is_some_and(|entry| String::from_utf8_lossy(&entry.value).contains("crossed"))
}

#[test]
fn only_the_server_that_moves_it_may_work_on_either_store() {
    let stage = Stage::new();
    let server = Server::start(&stage, &Life::of(ENDLESS));
    server.transit.begin(Arc::clone(&server.to), "the new store").unwrap();
    assert_eq!(target_of(&*stage.from).unwrap().as_deref(), Some("the new store"));
    assert!(matches!(marks::check(&*stage.from), Err(Barred::Crossing { .. })));
    assert!(matches!(marks::check(&*stage.to), Err(Barred::Receiving { .. })));
    let again = server.transit.begin(Arc::clone(&server.to), "the new store");
    assert!(matches!(again, Err(MoveError::NotWhole { .. })), "{again:?}");
    let early = server.transit.finish(&[]);
    assert!(matches!(early, Err(MoveError::NotWhole { .. })), "{early:?}");
    drop(server);
    for afresh in [false, true] {
        let (from, to) = (Side { store: &*stage.from, name: "old" }, Side { store: &*stage.to, name: "new" });
        let stopped = Move { afresh, ..Move::new(from, to) }.run();
        assert!(matches!(stopped, Err(MoveError::NotWhole { .. })), "{stopped:?}");
        let third = Stage::filled(1, 1, 1);
        let from = Side { store: &*third.from, name: "third" };
        let stopped = Move { afresh, ..Move::new(from, to) }.run();
        assert!(matches!(stopped, Err(MoveError::NotWhole { .. })), "{stopped:?}");
    }
}

#[test]
fn a_target_that_is_not_empty_or_is_the_same_store_is_refused_and_the_server_goes_on() {
    let stage = Stage::new();
    stage::fill(&*stage.to, &mut Chance::new(1), 1, 3);
    let server = Server::start(&stage, &Life::of(ENDLESS));
    let refused = server.drive().unwrap_err();
    assert!(refused.contains("not empty"), "{refused}");
    let home = Arc::clone(&stage.from) as Arc<dyn Store>;
    let refused = server.transit.begin(home, "the same store");
    assert!(matches!(refused, Err(MoveError::NotEmpty { .. } | MoveError::SameStore(_))), "{refused:?}");
    assert_eq!(marks::check(&*stage.from), Ok(()));
    let handle = server.node.handle();
    block_on(handle.schedule(Task::new(Name::stored("orders"), ""))).unwrap();
}
