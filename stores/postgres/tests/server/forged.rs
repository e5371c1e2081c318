//! Rows that no store has written: they are objected to with their shard and number, found by a check, and never a panic.

use punctual_conformance::forged::{is_objected_to, objections};
use punctual_core::store::{Beat, Bodies, Row, Store, StoreError, Want};
use punctual_core::{Millis, Name};
use punctual_engines::Postgres;
use punctual_postgres::Database;

use crate::owner::{Owner, SHARD, insert, life, open, row};

/// What is done to the row of number {n}, after which reading it is refused.
const READABLE: &[&str] = &[
    "UPDATE punctual.rows SET at = 9007199254740992 WHERE seq = {n}",
    "UPDATE punctual.rows SET at = -1 WHERE seq = {n}",
    "UPDATE punctual.rows SET at = 9223372036854775807 WHERE seq = {n}",
    "UPDATE punctual.names SET topic = repeat('x', 256) WHERE seq = {n}",
    "UPDATE punctual.names SET id = repeat('y', 300) WHERE seq = {n}",
    "UPDATE punctual.names SET queue = repeat('x', 256) WHERE seq = {n}",
    "UPDATE punctual.names SET grp = '' WHERE seq = {n}",
    "UPDATE punctual.names SET grp = E'a\\nb' WHERE seq = {n}",
    "UPDATE punctual.names SET grp = repeat('x', 256) WHERE seq = {n}",
];

/// What takes the row out of sight.
const OUT_OF_SIGHT: &[&str] = &[
    "UPDATE punctual.rows SET tbl = 9 WHERE seq = {n}",
    "UPDATE punctual.rows SET tbl = 0 WHERE seq = {n}",
    "UPDATE punctual.rows SET tbl = -3 WHERE seq = {n}",
    "UPDATE punctual.rows SET shard = -1 WHERE seq = {n}",
    "UPDATE punctual.rows SET seq = -seq WHERE seq = {n}; UPDATE punctual.names SET seq = -seq WHERE seq = {n}",
    "UPDATE punctual.names SET shard = 70000 WHERE seq = {n}",
];

fn grouped(seq: u64) -> Row {
    Row { group: Some(Name::stored("spring")), ..row(seq) }
}

#[test]
fn forged_rows_are_objected_to_with_shard_and_number() {
    let postgres = Postgres::start();
    let store = open(&postgres.url());
    let mut owner = Owner::of(&store, SHARD, "a");
    for (n, forgery) in (1..).zip(READABLE) {
        owner.commit(vec![insert(grouped(n))]).unwrap().unwrap();
        assert_eq!(objections(&*store, SHARD, &grouped(n)), [], "before {forgery}");
        postgres.sql(&forgery.replace("{n}", &n.to_string()));
        is_objected_to(&*store, SHARD, &grouped(n), forgery);
        let read = store.read(SHARD, owner.tenure, &[Want::Numbers(&[n], Bodies::With)]);
        assert!(
            matches!(&read, Err(StoreError::Poisoned(why)) if why.contains("shard 3, row ")),
            "{forgery}: {read:?}"
        );
        postgres.sql(&format!("DELETE FROM punctual.rows WHERE seq = {n}; DELETE FROM punctual.names WHERE seq = {n}"));
    }
}

#[test]
fn rows_that_nobody_reads_any_more_are_found_by_a_check() {
    let postgres = Postgres::start();
    let store = open(&postgres.url());
    let mut owner = Owner::of(&store, SHARD, "a");
    for (n, forgery) in (1..).zip(OUT_OF_SIGHT) {
        owner.commit(vec![insert(grouped(n))]).unwrap().unwrap();
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
        postgres.sql(&forgery.replace("{n}", &n.to_string()));
        let _ = objections(&*store, SHARD, &grouped(n));
        assert_ne!(store.check().unwrap(), Vec::<String>::new(), "{forgery}");
        postgres.sql(&format!(
            "DELETE FROM punctual.rows WHERE abs(seq) = {n}; DELETE FROM punctual.names WHERE abs(seq) = {n}"
        ));
    }
}

#[test]
fn forged_counts_and_members_are_refused() {
    let postgres = Postgres::start();
    let store = open(&postgres.url());
    let mut owner = Owner::of(&store, SHARD, "a");
    owner.commit(vec![insert(row(1))]).unwrap().unwrap();
    for counts in ["", "\\xff", "\\x01ffffffffffffffffffff", "nonsense"] {
        postgres.sql(&format!("UPDATE punctual.deltas SET counts = '{counts}'"));
        let read = store.read(SHARD, owner.tenure, &[Want::Tallies]);
        assert!(matches!(&read, Err(StoreError::Poisoned(why)) if why.contains("shard 3")), "{counts}: {read:?}");
        assert_ne!(store.check().unwrap(), Vec::<String>::new());
    }
    let beat = Beat { who: life("b"), address: String::new(), lease: Millis(1_000) };
    for forgery in [
        "INSERT INTO punctual.nodes VALUES ('', 1, '', 1)",
        "UPDATE punctual.nodes SET node = E'a\\tb' WHERE node = ''",
        "DELETE FROM punctual.nodes; INSERT INTO punctual.shards VALUES (-1, 1, 1, NULL, NULL)",
        "UPDATE punctual.shards SET shard = 70000 WHERE shard = -1",
    ] {
        postgres.sql(forgery);
        let roll = store.beat(&beat);
        assert!(matches!(roll, Err(StoreError::Poisoned(_))), "{forgery}: {roll:?}");
    }
}
