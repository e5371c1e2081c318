//! Tables keep their size however many rows pass through them.

use std::thread::sleep;
use std::time::{Duration, Instant};

use punctual_core::store::{Change, Row};
use punctual_engines::Postgres;
use punctual_postgres::Database;

use crate::owner::{Owner, SHARD, insert, open, row};

/// Enough to be worth a vacuum when they are gone.
const ROWS: u64 = 70_000;
const WORTH_A_VACUUM: u64 = 50_000;
const GENERATIONS: u64 = 5;
const PATIENCE: Duration = Duration::from_secs(60);

fn pass_through(owner: &mut Owner, first: u64) {
    let rows: Vec<Row> = (first..first + ROWS).map(row).collect();
    for part in rows.chunks(10_000) {
        owner.commit(part.iter().cloned().map(insert).collect()).unwrap().unwrap();
    }
    for part in rows.chunks(10_000) {
        owner.commit(part.iter().map(|row| Change::Remove { place: row.place() }).collect()).unwrap().unwrap();
    }
}

#[test]
fn rows_that_are_gone_make_room_for_new_ones_though_the_server_does_not_vacuum() {
    let postgres = Postgres::start_with(&["fsync=off", "autovacuum=off"]);
    let mut owner = Owner::of(&open(&postgres.url()), SHARD, "a");
    let number = |query: &str| -> u64 { postgres.sql(&format!("SELECT {query}")).trim().parse().unwrap() };
    let bytes = || number("pg_total_relation_size('punctual.names') + pg_total_relation_size('punctual.rows')");
    let dead = || number("max(n_dead_tup) FROM pg_stat_user_tables");
    let counted = || number("min(n_tup_del) FROM pg_stat_user_tables WHERE relname IN ('names', 'rows')");
    pass_through(&mut owner, 1);
    let once = bytes();
    for generation in 1..GENERATIONS {
        let began = Instant::now();
        // The server counts with a delay.
        while counted() < generation * ROWS || dead() > WORTH_A_VACUUM {
            assert!(began.elapsed() < PATIENCE, "{} rows are counted, {} of them not vacuumed", counted(), dead());
            sleep(Duration::from_millis(200));
        }
        pass_through(&mut owner, 1 + generation * ROWS);
    }
    let last = bytes();
    assert!(last < once * GENERATIONS / 2, "{once} bytes have become {last}");
    assert_eq!(owner.store.check().unwrap(), Vec::<String>::new());
}
