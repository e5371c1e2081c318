//! Facts about moving a store while it is stopped: all of it arrives, whatever happens on the way.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use punctual_chance::Chance;
use punctual_core::store::{Beat, Incarnation, ShardId, Store};
use punctual_core::{Millis, Name};
use punctual_moving::marks::{self, Barred};
use punctual_moving::{Move, MoveError, Side};
use stage::{ENDLESS, Life, Line, Stage, claim, contents, fill};

fn side<'a>(store: &'a dyn Store, name: &'a str) -> Side<'a> {
    Side { store, name }
}

fn plan<'a>(from: &'a dyn Store, to: &'a dyn Store) -> Move<'a> {
    Move::new(side(from, "the old store"), side(to, "the new store"))
}

#[test]
fn all_that_is_there_arrives_and_is_reported() {
    let stage = Stage::filled(1, 3, 400);
    let seen = Mutex::new(Vec::new());
    let watch = |progress| seen.lock().unwrap().push(progress);
    let report = Move { watch: &watch, ..plan(&*stage.from, &*stage.to) }.run().unwrap();
    stage.require_equal();
    assert_eq!((report.total.rows, report.copied, report.entries), (1_200, 1_200, 3));
    assert_eq!(report.shards.iter().map(|shard| shard.shard).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(!report.resumed && report.total.checksum != 0);
    assert!(report.to_string().contains("1200 rows"), "{report}");
    let last = *seen.into_inner().unwrap().last().unwrap();
    assert_eq!((last.copied, last.verified, last.shards, last.done), (1_200, 1_200, 3, 3));
    assert!(last.expected > 0);
}

#[test]
fn what_the_source_keeps_elsewhere_becomes_an_entry() {
    let stage = Stage::filled(14, 1, 3);
    let keep: &[(&str, &[u8])] = &[("secret", b"from a file"), ("another", b"one")];
    let report = Move { keep, ..plan(&*stage.from, &*stage.to) }.run().unwrap();
    assert_eq!(report.entries, 4);
    let entry = |key| stage.to.cluster_get(key).unwrap().unwrap().value;
    assert_eq!(
        (&*entry("secret"), &*entry("another"), &*entry("shards")),
        (&b"from a file"[..], &b"one"[..], &b"3"[..])
    );
}

#[test]
fn an_empty_store_can_be_moved() {
    let stage = Stage::new();
    let report = plan(&*stage.from, &*stage.to).run().unwrap();
    assert_eq!((report.total.rows, report.shards.len()), (0, 0));
    assert!(matches!(marks::check(&*stage.from), Err(Barred::Left { .. })));
}

#[test]
fn afterwards_servers_are_refused_on_the_source_and_welcome_on_the_target() {
    let stage = Stage::filled(2, 2, 10);
    plan(&*stage.from, &*stage.to).run().unwrap();
    let refused = marks::check(&*stage.from).unwrap_err();
    assert!(refused.to_string().contains("moved to the new store"), "{refused}");
    assert!(matches!(marks::take_up(&*stage.from), Err(Barred::Left { .. })));
    assert_eq!(marks::take_up(&*stage.to), Ok(()));
    let again = plan(&*stage.from, &*stage.to).run();
    assert!(matches!(again, Err(MoveError::Done { .. })), "{again:?}");
    // What has arrived can go on.
    let third = Stage::new();
    plan(&*stage.to, &*third.to).run().unwrap();
    assert_eq!(contents(&*stage.from), contents(&*third.to));
}

/// Kills the mover at its n-th call, for every n there is, and lets another one go on.
#[test]
fn killed_at_any_call_it_goes_on_and_ends_with_equal_stores() {
    for last_counts in [false, true] {
        for calls in 0.. {
            let stage = Stage::filled(3, 2, 30);
            let life = Life::of(calls);
            let line = |store| Line { last_counts, ..Line::new(store, &life) };
            let first = plan(&line(&stage.from), &line(&stage.to)).run();
            if !life.is_over() {
                first.unwrap();
                assert!(calls > 60, "there is something to kill: {calls} calls");
                break;
            }
            at_most_one_is_in_charge(&stage);
            stage.clock.pass(Duration::from_secs(10));
            match plan(&Line::new(&stage.from, &Life::of(ENDLESS)), &*stage.to).run() {
                // All had been said but good-bye.
                Err(MoveError::Done { .. }) => {}
                done => assert_eq!(done.unwrap().total.rows, 60),
            }
            stage.require_equal();
            assert!(matches!(marks::check(&*stage.from), Err(Barred::Left { .. })));
            assert_eq!(marks::check(&*stage.to), Ok(()));
        }
    }
}

fn at_most_one_is_in_charge(stage: &Stage) {
    let is_empty = contents(&*stage.to) == contents(&*Stage::new().to);
    let both = marks::check(&*stage.from).is_ok() && marks::check(&*stage.to).is_ok();
    assert!(is_empty || !both, "both are in charge");
}

#[test]
fn killed_again_and_again_on_a_bad_line_it_ends_with_equal_stores() {
    for seed in 0..40 {
        let mut chance = Chance::new(seed);
        let stage = Stage::filled(seed, chance.between(1, 4) as u16, chance.between(0, 60));
        let deaths = chance.below(6);
        for death in 0.. {
            let life = Life::of(if death < deaths { chance.between(1, 120) as i64 } else { ENDLESS });
            let (last_counts, loss) = (chance.percent(50), chance.below(12));
            let line = |store: &Arc<_>, seed| {
                let chance = Mutex::new(Chance::new(seed));
                Line { last_counts, loss, chance, ..Line::new(store, &life) }
            };
            let (from, to) = (line(&stage.from, seed), line(&stage.to, seed + 1));
            let outcome = plan(&from, &to).run();
            at_most_one_is_in_charge(&stage);
            stage.clock.pass(Duration::from_secs(10));
            match outcome {
                Ok(_) | Err(MoveError::Done { .. }) => break,
                Err(error) => assert!(life.is_over(), "seed {seed}: {error}"),
            }
        }
        stage.require_equal();
    }
}

#[test]
fn a_target_with_anything_in_it_is_refused_and_left_alone() {
    let stage = Stage::filled(4, 2, 10);
    fill(&*stage.to, &mut Chance::new(5), 1, 3);
    let before = contents(&*stage.to);
    let refused = plan(&*stage.from, &*stage.to).run();
    assert!(matches!(refused, Err(MoveError::NotEmpty { shard: ShardId(0), .. })), "{refused:?}");
    let refused = Move { afresh: true, ..plan(&*stage.from, &*stage.to) }.run();
    assert!(matches!(refused, Err(MoveError::NotEmpty { .. })), "nobody said that it is of no use: {refused:?}");
    assert_eq!(contents(&*stage.to), before);
    assert_eq!((marks::check(&*stage.from), marks::check(&*stage.to)), (Ok(()), Ok(())));
}

#[test]
fn a_store_cannot_be_moved_into_itself() {
    let stage = Stage::filled(6, 1, 5);
    let refused = plan(&*stage.from, &*stage.from).run();
    assert_eq!(refused.unwrap_err(), MoveError::SameStore("the new store".to_owned()));
    assert_eq!(marks::check(&*stage.from), Ok(()));
}

/// A server that is there, as far as the roll knows.
fn beat(store: &dyn Store, lease: u64) {
    let who = Incarnation { node: Name::stored("node-1"), number: 9 };
    store.beat(&Beat { who, address: String::new(), lease: Millis(lease) }).unwrap();
}

#[test]
fn where_a_server_is_running_it_is_refused_with_its_name() {
    for of_target in [false, true] {
        let stage = Stage::filled(7, 1, 5);
        let is_over = AtomicBool::new(false);
        let (busy, place) = if of_target { (&stage.to, "the new store") } else { (&stage.from, "the old store") };
        beat(&**busy, 2_000);
        let refused = thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    beat(&**busy, 2_000);
                    thread::sleep(Duration::from_millis(5));
                }
            });
            let refused = plan(&*stage.from, &*stage.to).run();
            is_over.store(true, Ordering::SeqCst);
            refused
        });
        let Err(MoveError::Busy { place: at, node, left }) = refused else { panic!("{refused:?}") };
        assert_eq!((at.as_str(), node.as_str()), (place, "node-1"));
        assert!((1..=2_000).contains(&left.0));
        assert_eq!(marks::check(&*stage.to), Ok(()), "nothing was begun");
    }
}

#[test]
fn a_server_that_was_killed_is_waited_for() {
    let stage = Stage::filled(8, 1, 5);
    beat(&*stage.from, 150);
    plan(&*stage.from, &*stage.to).run().unwrap();
    stage.require_equal();
}

#[test]
fn a_server_that_takes_the_source_up_meanwhile_keeps_it() {
    for claims in [false, true] {
        let stage = Stage::filled(9, 2, 50);
        let took = AtomicBool::new(false);
        let take = |_| {
            if !took.swap(true, Ordering::SeqCst) {
                if claims {
                    claim(&*stage.from, ShardId(1));
                }
                marks::take_up(&*stage.from).unwrap();
            }
        };
        let outcome = Move { watch: &take, ..plan(&*stage.from, &*stage.to) }.run();
        assert_eq!(outcome.unwrap_err(), MoveError::Overtaken { place: "the old store".to_owned() });
        assert_eq!(marks::check(&*stage.from), Ok(()));
        let refused = marks::check(&*stage.to).unwrap_err();
        assert_eq!(refused, Barred::Arriving { from: "the old store".to_owned() });
        // What was copied is of no use: the source may have changed.
        let again = plan(&*stage.from, &*stage.to).run();
        assert!(matches!(again, Err(MoveError::Leftovers { .. })), "{again:?}");
        Move { afresh: true, ..plan(&*stage.from, &*stage.to) }.run().unwrap();
        stage.require_equal();
    }
}

#[test]
fn emptying_the_target_survives_being_killed() {
    for calls in 0.. {
        let stage = Stage::filled(10, 2, 20);
        fill(&*stage.to, &mut Chance::new(11), 3, 20);
        // What was there has been moved away.
        let third = Stage::new();
        plan(&*stage.to, &*third.to).run().unwrap();
        let life = Life::of(calls);
        let (from, to) = (Line::new(&stage.from, &life), Line::new(&stage.to, &life));
        let first = Move { afresh: true, ..plan(&from, &to) }.run();
        if !life.is_over() {
            first.unwrap();
            assert!(calls > 60);
            break;
        }
        stage.clock.pass(Duration::from_secs(10));
        match (Move { afresh: true, ..plan(&*stage.from, &*stage.to) }.run()) {
            Ok(_) | Err(MoveError::Done { .. }) => stage.require_equal(),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_move_can_be_taken_back_and_done_again() {
    let stage = Stage::filled(12, 2, 10);
    let nothing = plan(&*stage.from, &*stage.to).undo();
    assert!(matches!(nothing, Err(MoveError::NotWhole { .. })), "{nothing:?}");
    plan(&*stage.from, &*stage.to).run().unwrap();
    plan(&*stage.from, &*stage.to).undo().unwrap();
    assert_eq!(marks::check(&*stage.from), Ok(()));
    assert!(matches!(marks::check(&*stage.to), Err(Barred::Abandoned { .. })));
    let again = plan(&*stage.from, &*stage.to).run();
    assert!(matches!(again, Err(MoveError::Leftovers { .. })), "{again:?}");
    Move { afresh: true, ..plan(&*stage.from, &*stage.to) }.run().unwrap();
    stage.require_equal();
}

#[test]
fn what_differs_in_the_target_is_found() {
    let stage = Stage::filled(13, 1, 40);
    let line = Line::new(&stage.to, &Life::of(20));
    // Killed when something has been copied, the target loses a row that was not the last.
    assert!(plan(&*stage.from, &line).run().is_err());
    stage.clock.pass(Duration::from_secs(10));
    stage.lose_a_row();
    let outcome = plan(&*stage.from, &*stage.to).run();
    let Err(MoveError::Differs { shard: ShardId(0), left, right, .. }) = outcome else { panic!("{outcome:?}") };
    assert_eq!(left.rows, right.rows + 1);
    assert!(matches!(marks::check(&*stage.to), Err(Barred::Arriving { .. })));
}
