//! Settings of the server, or of the user, that would be in our way.

use std::thread;
use std::time::Duration;

use punctual_engines::Postgres;
use punctual_postgres::Database;

use crate::lock;
use crate::owner::{Owner, SHARD, insert, open, open_with, row};

#[test]
fn settings_of_the_user_are_not_in_our_way() {
    let postgres = Postgres::start();
    let hostile = [
        "statement_timeout = '400ms'",
        "lock_timeout = '400ms'",
        "idle_session_timeout = '400ms'",
        "idle_in_transaction_session_timeout = '50ms'",
        "default_transaction_isolation = 'serializable'",
        "default_transaction_read_only = on",
        "search_path = nowhere",
        "bytea_output = escape",
        "enable_indexscan = off",
        "plan_cache_mode = force_custom_plan",
        "DateStyle = 'German'",
        "client_encoding = LATIN1",
    ];
    // A database of their own, so that the settings are not in the way of who sets them.
    postgres.sql("CREATE DATABASE hostile");
    for setting in hostile {
        postgres.sql(&format!("ALTER DATABASE hostile SET {setting}"));
    }
    let store = open(&postgres.url_of("postgres", "hostile"));
    let mut owner = Owner::of(&store, SHARD, "a");
    owner.commit(vec![insert(row(1))]).unwrap().unwrap();
    thread::sleep(Duration::from_millis(600));
    thread::scope(|scope| {
        scope.spawn(|| lock::hold(&postgres, "hostile", "SELECT 1 FROM punctual.shards FOR UPDATE", "COMMIT"));
        lock::wait_for_holder(&postgres, "hostile");
        owner.commit(vec![insert(row(2))]).unwrap().unwrap();
    });
    owner.expect(&[row(1), row(2)]);
    assert_eq!(store.status().retries, 0, "no connection was taken away");
}

#[test]
fn connections_that_an_operator_ends_are_made_anew() {
    let postgres = Postgres::start();
    let store = open(&postgres.url());
    let mut owner = Owner::of(&store, SHARD, "a");
    for number in 1..=5 {
        postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'punctual'");
        owner.commit(vec![insert(row(number))]).unwrap().unwrap();
    }
    owner.expect(&(1..=5).map(row).collect::<Vec<_>>());
}

#[test]
fn more_callers_than_the_server_takes_connections_wait_for_each_other() {
    let postgres = Postgres::start_with(&["fsync=off", "max_connections=8", "superuser_reserved_connections=2"]);
    postgres.sql("CREATE ROLE worker LOGIN; GRANT CREATE ON DATABASE postgres TO worker");
    let store = open_with(&postgres.url_of("worker", "postgres"), |config| config.connections = 20);
    thread::scope(|scope| {
        for shard in 0..12 {
            let store = &store;
            scope.spawn(move || {
                let mut owner = Owner::of(store, punctual_core::store::ShardId(shard), "a");
                for number in 1..=5 {
                    owner.commit(vec![insert(row(number))]).unwrap().unwrap();
                }
            });
        }
    });
    assert_eq!(store.status().failures, 0);
}

#[test]
fn a_server_that_may_forget_is_warned_of() {
    let postgres = Postgres::start_with(&["fsync=off", "synchronous_commit=off"]);
    let store = open(&postgres.url());
    let warnings = store.warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("synchronous_commit") && warnings[1].contains("fsync"), "{warnings:?}");
    assert!(store.to_string().contains("synchronous_commit is off"), "{store}");
    assert!(store.to_string().starts_with("PostgreSQL 1"), "{store}");
    let safe = Postgres::start_with(&[]);
    let store = open(&safe.url());
    assert_eq!(store.warnings(), Vec::<String>::new());
    assert!(store.to_string().ends_with("confirmed when on the server's disk"), "{store}");
}

#[test]
fn a_store_works_and_ends_on_a_thread_of_somebody_elses_runtime() {
    let postgres = Postgres::start();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = open(&postgres.url());
        let mut owner = Owner::of(&store, SHARD, "a");
        owner.commit(vec![insert(row(1))]).unwrap().unwrap();
        owner.expect(&[row(1)]);
    });
}
