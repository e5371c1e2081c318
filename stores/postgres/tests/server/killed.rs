//! A server that is killed under load and comes back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use punctual_core::store::{Row, ShardId, Store};
use punctual_engines::Postgres;
use punctual_postgres::Database;

use crate::owner::{Owner, insert, open, row};

#[test]
fn all_that_was_confirmed_is_there_after_the_server_was_killed_and_nothing_twice() {
    let mut postgres = Postgres::start();
    let store = open(&postgres.url());
    let is_over = AtomicBool::new(false);
    let owners: Vec<(Owner, u64)> = thread::scope(|scope| {
        let work: Vec<_> = (0..3)
            .map(|shard| {
                let mut owner = Owner::of(&store, ShardId(shard), "a");
                let is_over = &is_over;
                scope.spawn(move || {
                    let mut number = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        number += 1;
                        // Within its patience the store comes through by itself.
                        owner.commit(vec![insert(row(number))]).unwrap().unwrap();
                    }
                    (owner, number)
                })
            })
            .collect();
        for _ in 0..3 {
            thread::sleep(Duration::from_millis(300));
            postgres.kill();
            postgres.start_again();
        }
        thread::sleep(Duration::from_millis(300));
        is_over.store(true, Ordering::Relaxed);
        work.into_iter().map(|work| work.join().unwrap()).collect()
    });
    for (owner, number) in &owners {
        assert!(*number > 3, "there was work to lose");
        owner.expect(&(1..=*number).map(row).collect::<Vec<Row>>());
    }
    let status = store.status();
    assert!(status.retries > 0 && status.failures == 0, "{status:?}");
    assert!(store.hardship().is_none());
}
