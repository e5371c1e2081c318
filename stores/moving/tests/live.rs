//! Facts about moving a store under a node that goes on: a ledger of what was scheduled, handed out and done, kept while
//! shards cross over and the server is killed.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use punctual_chance::Chance;
use punctual_core::store::{Bodies, Look, Position, Scan, ShardId, Store, Table};
use punctual_core::{Name, Task, Timestamp};
use punctual_moving::live::{UnderWay, call_off, under_way};
use punctual_moving::marks::{self, Barred};
use punctual_moving::{Move, MoveError, Side};
use punctual_node::block_on;
use stage::server::SHARDS;
use stage::{ENDLESS, Ledger, Life, Server, Stage, contents};

fn start(stage: &Stage, life: &Arc<Life>) -> Server {
    Server::start((&(Arc::clone(&stage.from) as _), &(Arc::clone(&stage.to) as _)), Arc::clone(&stage.clock) as _, life)
}

/// Lets go of a server without a word, as if it had been killed: its line is cut before.
fn kill(server: Server, stage: &Stage) {
    drop(server);
    stage.clock.pass(Duration::from_secs(10));
}

#[test]
fn a_store_is_moved_while_tasks_come_and_go() {
    let stage = Stage::new();
    let server = start(&stage, &Life::of(ENDLESS));
    let ledger = Ledger::default();
    ledger.while_in_use(&server.node, &*stage.clock, 1, || {
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
        let server = start(&stage, &Life::of(ENDLESS));
        ledger.while_in_use(&server.node, &*stage.clock, seed, || thread::sleep(Duration::from_millis(50)));
        server.node.stop();
        let mut lives = 0;
        loop {
            lives += 1;
            let life = Life::of(ENDLESS);
            let server = start(&stage, &life);
            life.spend(if lives < 6 { chance.between(50, 1_500) as i64 } else { ENDLESS });
            let moved = ledger.while_in_use(&server.node, &*stage.clock, seed, || {
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
                ledger.settle(&start(&other, &Life::of(ENDLESS)).node.handle(), &*other.clock);
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
    let server = start(&stage, &Life::of(ENDLESS));
    server.transit.begin(Arc::clone(&server.to), "the new store", false).unwrap();
    let expected = UnderWay { to: "the new store".into(), has_crossed: false };
    assert_eq!(under_way(&*stage.from).unwrap(), Some(expected));
    assert!(matches!(marks::check(&*stage.from), Err(Barred::Crossing { .. })));
    assert!(matches!(marks::check(&*stage.to), Err(Barred::Receiving { .. })));
    let again = server.transit.begin(Arc::clone(&server.to), "the new store", false);
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
    let server = start(&stage, &Life::of(ENDLESS));
    let refused = server.drive().unwrap_err();
    assert!(refused.contains("not empty"), "{refused}");
    let home = Arc::clone(&stage.from) as Arc<dyn Store>;
    let refused = server.transit.begin(home, "the same store", false);
    assert!(matches!(refused, Err(MoveError::NotEmpty { .. } | MoveError::SameStore(_))), "{refused:?}");
    assert_eq!(marks::check(&*stage.from), Ok(()));
    let handle = server.node.handle();
    block_on(handle.schedule(Task::new(Name::stored("orders"), ""))).unwrap();
}

/// Copies the first shard, and hands it over if that is wanted.
fn first_shard(server: &Server, is_handed_over: bool) {
    let ahead = server.transit.copy_ahead(ShardId(0), &|_| {}).unwrap();
    if is_handed_over {
        let transit = Arc::clone(&server.transit);
        let handle = server.node.handle();
        block_on(handle.set_aside(ShardId(0), move |tenure| transit.hand_over(ahead, tenure))).unwrap().unwrap();
    }
}

#[test]
fn a_move_is_given_up_before_the_first_shard_has_crossed_and_not_afterwards() {
    let stage = Stage::new();
    let server = start(&stage, &Life::of(ENDLESS));
    let ledger = Ledger::default();
    ledger.while_in_use(&server.node, &*stage.clock, 5, || {
        thread::sleep(Duration::from_millis(50));
        server.transit.begin(Arc::clone(&server.to), "the new store", false).unwrap();
        first_shard(&server, false);
        server.transit.give_up().unwrap();
    });
    ledger.settle(&server.node.handle(), &*stage.clock);
    assert_eq!((marks::check(&*stage.from), under_way(&*stage.from).unwrap()), (Ok(()), None));
    assert!(matches!(marks::check(&*stage.to), Err(Barred::Abandoned { .. })));
    // What is left there is known to be of no use.
    server.transit.begin(Arc::clone(&server.to), "the new store", false).unwrap();
    first_shard(&server, true);
    let late = server.transit.give_up();
    assert!(matches!(late, Err(MoveError::TooLate { crossed: 1, .. })), "{late:?}");
    server.drive().unwrap();
    assert!(server.transit.is_over());
}

#[test]
fn what_a_halted_move_was_copying_ends_early_and_goes_on_later() {
    let stage = Stage::new();
    let server = start(&stage, &Life::of(ENDLESS));
    block_on(server.node.handle().schedule(Task::new(Name::stored("orders"), ""))).unwrap();
    server.transit.begin(Arc::clone(&server.to), "the new store", false).unwrap();
    server.transit.halt();
    let halted = (0..SHARDS).map(|shard| server.transit.copy_ahead(ShardId(shard), &|_| {}).err());
    assert!(halted.flatten().any(|error| error == MoveError::Halted), "there is something to copy");
    server.transit.go_on();
    server.drive().unwrap();
}

#[test]
fn a_server_that_cannot_reach_the_other_store_goes_on_without_as_long_as_nothing_has_crossed() {
    for is_handed_over in [false, true] {
        let stage = Stage::new();
        let server = start(&stage, &Life::of(ENDLESS));
        server.transit.begin(Arc::clone(&server.to), "the new store", false).unwrap();
        first_shard(&server, is_handed_over);
        kill(server, &stage);
        call_off(&*stage.from).unwrap();
        let expected = is_handed_over.then(|| UnderWay { to: "the new store".into(), has_crossed: true });
        assert_eq!(under_way(&*stage.from).unwrap(), expected);
        assert_eq!(marks::check(&*stage.from).is_ok(), !is_handed_over);
    }
}

#[test]
fn what_another_store_has_there_is_not_touched_and_leftovers_only_if_it_may_begin_afresh() {
    // Another server has moved a shard into the target, and was killed.
    let other = Stage::new();
    let server = start(&other, &Life::of(ENDLESS));
    server.transit.begin(Arc::clone(&server.to), "the new store", false).unwrap();
    first_shard(&server, true);
    kill(server, &other);
    let stage = Stage { clock: Arc::clone(&other.clock), from: Stage::new().from, to: Arc::clone(&other.to) };
    let server = start(&stage, &Life::of(ENDLESS));
    for afresh in [false, true] {
        let refused = server.transit.begin(Arc::clone(&server.to), "the new store", afresh);
        assert!(matches!(refused, Err(MoveError::NotWhole { .. })), "{refused:?}");
    }
    assert_eq!(marks::check(&*stage.from), Ok(()));

    let left = Stage::filled(3, SHARDS + 2, 20);
    let (from, to) = (Side { store: &*left.from, name: "left" }, Side { store: &*left.to, name: "there" });
    Move::new(from, to).run().unwrap();
    let target = Arc::clone(&left.from) as Arc<dyn Store>;
    let refused = server.transit.begin(Arc::clone(&target), "left", false);
    assert!(matches!(refused, Err(MoveError::Leftovers { .. })), "{refused:?}");
    server.transit.begin(target, "left", true).unwrap();
    let server = Server { to: Arc::clone(&left.from) as _, ..server };
    server.drive().unwrap();
    let rows =
        (0..SHARDS + 2).map(|shard| left.from.scan(ShardId(shard), &all_live()).unwrap().rows.len()).sum::<usize>();
    assert_eq!(rows, 0, "nothing is left of what was there");
}

fn all_live() -> Scan {
    let (from, until) = (Position::START, Timestamp::NEVER);
    Scan { table: Table::Live, from, until, topic: None, limit: 1_000, bodies: Bodies::Without }
}
