//! Somebody else's transaction that holds what a commit needs.

use std::thread;
use std::time::Duration;

use punctual_engines::Postgres;

/// Does something in a transaction, holds its locks for most of a second, and ends it.
pub fn hold(postgres: &Postgres, database: &str, doing: &str, end: &str) {
    let timeouts = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0";
    postgres.sql_in(database, &format!("{timeouts}; BEGIN; {doing}; SELECT pg_sleep(0.8); {end}"));
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
    while is_so() {
        thread::sleep(Duration::from_millis(5));
    }
}
