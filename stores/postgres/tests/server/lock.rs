//! Somebody else's transaction that holds what a commit needs.

use std::thread;
use std::time::{Duration, Instant};

use punctual_engines::Postgres;

/// Does something in a transaction, holds its locks for so long that others are sure to meet them, and ends it.
pub fn hold(postgres: &Postgres, database: &str, doing: &str, end: &str) {
    let timeouts = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0";
    postgres.sql_in(database, &format!("{timeouts}; BEGIN READ WRITE; {doing}; SELECT pg_sleep(2); {end}"));
}

/// Waits until somebody holds locks on rows of the shards.
pub fn wait_for_holder(postgres: &Postgres, database: &str) {
    let held = "SELECT count(*) FROM pg_locks WHERE relation = 'punctual.shards'::regclass \
                AND mode IN ('RowShareLock', 'RowExclusiveLock')";
    wait_while(|| postgres.sql_in(database, held) == "0");
}

/// Waits until somebody waits for a lock.
pub fn wait_for_waiter(postgres: &Postgres) {
    wait_while(|| postgres.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == "0");
}

fn wait_while(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while is_so() {
        assert!(began.elapsed() < Duration::from_secs(10), "the other transaction was not met");
        thread::sleep(Duration::from_millis(5));
    }
}
