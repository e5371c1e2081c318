//! Looking for what only this store can see to be wrong. What every store must hold is looked at through the contract, by
//! whoever has any store before them.

use std::sync::Arc;

use punctual_core::store::{StoreError, Tallies};
use punctual_database::Threads;
use tokio_postgres::{Client, Error};

use crate::aside::aside;
use crate::courier::Courier;
use crate::target::Target;

/// What must not be, each as a text and a count of it.
const WRONGS: &[(&str, &str)] = &[
    (
        "rows that have no name",
        "SELECT count(*) FROM {rows} r WHERE NOT EXISTS (SELECT 1 FROM {names} n WHERE n.shard = r.shard AND n.seq = r.seq)",
    ),
    (
        "names that have no row",
        "SELECT count(*) FROM {names} n WHERE NOT EXISTS (SELECT 1 FROM {rows} r WHERE r.shard = n.shard AND r.seq = n.seq)",
    ),
    ("rows in a table that is none", "SELECT count(*) FROM {rows} WHERE tbl NOT BETWEEN 1 AND 4"),
    (
        "rows with a number or a time that there is not",
        "SELECT count(*) FROM {rows} WHERE seq < 0 OR at NOT BETWEEN 0 AND 9007199254740991",
    ),
    (
        "settings among the tasks, or tasks among the settings",
        "SELECT count(*) FROM {rows} r JOIN {names} n ON n.shard = r.shard AND n.seq = r.seq WHERE n.space <> n.shard * 2 + (r.tbl = 4)::int4",
    ),
    (
        "shards that have rows and were never claimed",
        "SELECT count(DISTINCT shard) FROM {rows} r WHERE NOT EXISTS (SELECT 1 FROM {shards} s WHERE s.shard = r.shard)",
    ),
    (
        "counts of commits that did not happen",
        "SELECT count(*) FROM (SELECT shard, serial FROM {tallies} UNION ALL SELECT shard, serial FROM {deltas}) c \
         WHERE NOT EXISTS (SELECT 1 FROM {shards} s WHERE s.shard = c.shard AND s.serial >= c.serial)",
    ),
];

/// All that is wrong, in words.
pub(crate) fn check(courier: &Arc<Courier>, threads: &Threads) -> Result<Vec<String>, StoreError> {
    aside(courier, threads, |client, target| Box::pin(look(client, target)))
}

async fn look(client: &Client, target: &Target) -> Result<Vec<String>, Error> {
    let mut wrongs = Vec::new();
    for (what, text) in WRONGS {
        let count: i64 = client.query_one(&target.layout.fill(text), &[]).await?.get(0);
        if count > 0 {
            wrongs.push(format!("{what}: {count}"));
        }
    }
    let all = "SELECT shard, counts FROM {tallies} UNION ALL SELECT shard, counts FROM {deltas}";
    for row in client.query(&target.layout.fill(all), &[]).await? {
        if Tallies::default().add_bytes(row.get(1)).is_err() {
            wrongs.push(format!("counts of shard {} that cannot be read", row.get::<_, i32>(0)));
        }
    }
    Ok(wrongs)
}
