//! Anything to anything: real stores of every kind, moved into each other, some of them with the mover killed on its way.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use punctual_chance::Chance;
use punctual_core::store::Store;
use punctual_moving::marks::{self, Barred};
use punctual_moving::{Move, MoveError, Side};
use punctual_node::SystemClock;
use stage::engines::{Engines, KINDS, PATIENCE};
use stage::{ENDLESS, Ledger, Life, Line, Server, contents, fill};

fn plan<'a>(from: (&'a dyn Store, &'a str), to: (&'a dyn Store, &'a str)) -> Move<'a> {
    Move::new(Side { store: from.0, name: from.1 }, Side { store: to.0, name: to.1 })
}

/// Does something for each pair of kinds. Who was killed is waited for, so that many wait side by side.
fn for_each_pair(work: impl Fn(&Engines, &str, &str, Chance) + Sync) {
    let engines = Engines::start();
    thread::scope(|scope| {
        for (seed, from) in KINDS.into_iter().enumerate() {
            let (engines, work) = (&engines, &work);
            scope.spawn(move || {
                let mut chance = Chance::new(seed as u64);
                KINDS.into_iter().for_each(|to| work(engines, from, to, chance.fork()));
            });
        }
    });
}

#[test]
fn killed_between_each_pair_of_stores_a_move_goes_on_and_ends_with_equal_stores() {
    for_each_pair(|engines, from, to, mut chance| {
        let (source, target) = (engines.fresh(from), engines.fresh(to));
        fill(&*source, &mut chance, 3, 60);
        let life = Life::of(chance.between(25, 60) as i64);
        let lines = [&source, &target].map(|store| Line::to(Arc::clone(store), &life));
        let killed = plan((&lines[0], from), (&lines[1], to)).run();
        assert!(life.is_over() && killed.is_err(), "{from} to {to}");
        let report = match plan((&*source, from), (&*target, to)).run() {
            Err(error @ MoveError::Done { .. }) => panic!("{from} to {to}: {error}"),
            report => report.unwrap_or_else(|error| panic!("{from} to {to}: {error}")),
        };
        assert_eq!((report.total.rows, report.shards.len()), (180, 3), "{from} to {to}");
        assert_eq!(contents(&*source), contents(&*target), "{from} to {to}");
    });
}

/// Moves all shards, and tries again until who was killed before is not waited for any more.
fn drive(server: &Server, life: &Life) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        match server.drive() {
            Err(_) if !life.is_over() && begun.elapsed() < PATIENCE => {
                thread::sleep(Duration::from_millis(50));
            }
            driven => return driven,
        }
    }
}

#[test]
fn killed_between_each_pair_of_stores_in_use_a_move_goes_on_and_loses_and_repeats_nothing() {
    for_each_pair(|engines, from, to, mut chance| {
        let (source, target) = (engines.fresh(from), engines.fresh(to));
        let start = |life: &Arc<Life>| Server::start((&source, &target), Arc::new(SystemClock), life);
        let (ledger, clock, seed) = (Ledger::default(), SystemClock, chance.draw());
        let server = start(&Life::of(ENDLESS));
        ledger.while_in_use(&server.node, &clock, seed, || thread::sleep(Duration::from_millis(50)));
        server.node.stop();
        for is_killed in [true, false] {
            let life = Life::of(ENDLESS);
            let server = start(&life);
            if is_killed {
                life.spend(chance.between(20, 400) as i64);
            }
            let moved = ledger.while_in_use(&server.node, &clock, seed, || drive(&server, &life));
            match moved {
                Ok(()) if life.spare() => {
                    ledger.settle(&server.node.handle(), &clock);
                    break;
                }
                moved => assert!(life.is_over(), "{from} to {to}: {moved:?}"),
            }
            // All had been said before the end.
            if matches!(marks::check(&*source), Err(Barred::Left { .. })) {
                let server = Server::start((&target, &source), Arc::new(SystemClock), &Life::of(ENDLESS));
                ledger.settle(&server.node.handle(), &clock);
                break;
            }
        }
        assert!(matches!(marks::check(&*source), Err(Barred::Left { .. })), "{from} to {to}");
        assert_eq!(marks::check(&*target), Ok(()), "{from} to {to}");
    });
}
