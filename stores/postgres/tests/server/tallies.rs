//! Counts are folded into their snapshot beside the commits, and are right at every moment.

use std::thread;
use std::time::{Duration, Instant};

use punctual_core::store::Look;
use punctual_engines::Postgres;

use crate::owner::{Owner, SHARD, insert, open, row, waiting};

#[test]
fn deltas_are_folded_and_the_sum_stays() {
    let postgres = Postgres::start();
    let (store, other) = (open(&postgres.url()), open(&postgres.url()));
    let mut owner = Owner::of(&store, SHARD, "a");
    let began = Instant::now();
    for number in 1..=1_100 {
        owner.commit(vec![insert(row(number))]).unwrap().unwrap();
        if number % 50 == 0 {
            assert_eq!(other.tallies(SHARD).unwrap(), [(waiting(), number as i64)]);
        }
    }
    let deltas = || postgres.sql("SELECT count(*) FROM punctual.deltas").parse::<u64>().unwrap();
    while deltas() >= 500 {
        assert!(began.elapsed() < Duration::from_secs(60), "{} deltas are left", deltas());
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(other.tallies(SHARD).unwrap(), [(waiting(), 1_100)]);
    let changes = "SELECT n_tup_upd = n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'shards'";
    assert_eq!(postgres.sql(changes), "t", "commits leave no dead entries in the index of shards");
}
