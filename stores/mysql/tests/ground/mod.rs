//! What the tests stand on: a server that they share, stores with tables of their own, and short words for rows.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use punctual_core::store::{
    Batch, Bodies, Change, Claim, Fence, Incarnation, Key, Look, Refusal, Row, ShardId, Store, StoreError, Table,
    Tenure,
};
use punctual_core::{Name, Timestamp};
use punctual_engines::Maria;
use punctual_mysql::{Config, Database, MysqlStore};

pub const SHARD: ShardId = ShardId(3);

/// The server of all tests of a file that do it no harm.
pub static MARIA: LazyLock<Maria> = LazyLock::new(Maria::start);

/// A configuration with tables that nobody else uses.
pub fn config(url: impl Into<String>) -> Config {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let prefix = format!("t{}_", NEXT.fetch_add(1, Ordering::SeqCst));
    Config { prefix: Some(prefix), ..Config::new(url) }
}

/// What the names of its tables begin with.
pub fn prefix(config: &Config) -> &str {
    config.prefix.as_deref().unwrap()
}

/// Such a configuration, and not patient.
pub fn hasty(url: impl Into<String>) -> Config {
    Config { patience: Duration::from_secs(1), ..config(url) }
}

pub fn open(config: &Config) -> MysqlStore {
    MysqlStore::open(config.clone()).unwrap()
}

pub fn node(name: &str) -> Incarnation {
    Incarnation { node: Name::new(name).unwrap(), number: 1 }
}

/// Claims the shard, whatever fence is in force.
pub fn take(store: &MysqlStore) -> Tenure {
    let mut seen = Fence::default();
    loop {
        match store.claim(&node("a"), &[(SHARD, seen)]).unwrap()[0] {
            Claim::Granted(tenure) => return tenure,
            Claim::Outrun(current) => seen = current,
        }
    }
}

pub fn row(seq: u64) -> Row {
    row_with(seq, &b"body"[..])
}

pub fn row_with(seq: u64, body: impl Into<bytes::Bytes>) -> Row {
    Row {
        table: Table::Live,
        key: Key::new("orders", &seq.to_string(), ""),
        seq,
        at: Timestamp::from_millis(1_000 + seq),
        group: None,
        state: "state".into(),
        body: body.into(),
    }
}

pub fn insert(row: &Row) -> Change {
    Change::Insert { row: row.clone(), replaces: None }
}

pub fn batch(fence: Fence, serial: u64, changes: Vec<Change>) -> Batch {
    Batch { shard: SHARD, fence, serial, changes, tallies: Vec::new() }
}

/// Commits one batch.
pub fn commit(store: &MysqlStore, batch: Batch) -> Result<Result<(), Refusal>, StoreError> {
    Ok(store.commit(vec![batch])?.remove(0))
}

/// The row with this number, as anybody sees it.
pub fn numbered(store: &MysqlStore, seq: u64) -> Option<Row> {
    store.numbered(SHARD, &[seq], Bodies::With).unwrap().remove(0)
}
