//! What is in the tables, for `punctual store show`.

use std::sync::Arc;

use punctual_core::store::StoreError;
use punctual_database::{Contents, Part, ShardContents, Threads};
use tokio_postgres::{Client, Error, Row};

use crate::aside::aside;
use crate::courier::Courier;
use crate::migrate::VERSION;
use crate::number::{stored_number, stored_shard};
use crate::target::Target;

const TABLES: &str = "SELECT name, pg_total_relation_size(c.oid), coalesce(s.n_dead_tup, 0) \
    FROM unnest($1::text[]) AS t (name) JOIN pg_class c ON c.oid = to_regclass(name) \
    LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid ORDER BY 2 DESC, 1";

const SHARDS: &str = "SELECT s.shard, s.serial, coalesce(live, 0), coalesce(dead, 0), coalesce(history, 0), \
    coalesce(settings, 0) FROM {shards} s LEFT JOIN (SELECT shard, count(*) FILTER (WHERE tbl = 1) AS live, \
    count(*) FILTER (WHERE tbl = 2) AS dead, count(*) FILTER (WHERE tbl = 3) AS history, \
    count(*) FILTER (WHERE tbl = 4) AS settings FROM {rows} GROUP BY shard) r ON r.shard = s.shard ORDER BY s.shard";

/// Counts everything.
pub(crate) fn contents(courier: &Arc<Courier>, threads: &Threads) -> Result<Contents, StoreError> {
    aside(courier, threads, |client, target| Box::pin(look(client, target)))
}

async fn look(client: &Client, target: &Target) -> Result<Contents, Error> {
    let names: Vec<String> = target.layout.tables().collect();
    let tables = client.query(TABLES, &[&names]).await?;
    let shards = client.query(&target.layout.fill(SHARDS), &[]).await?;
    let part = |row: &Row| {
        let (name, dead): (&str, i64) = (row.get(0), row.get(2));
        Part { name: format!("{name}, {dead} dead rows to be vacuumed"), bytes: stored_number(row.get(1)) }
    };
    let shard = |row: &Row| {
        let rows = [2, 3, 4, 5].map(|column| stored_number(row.get(column)));
        Some(ShardContents { shard: stored_shard(row.get(0))?, serial: stored_number(row.get(1)), rows })
    };
    Ok(Contents {
        version: VERSION,
        parts: tables.iter().map(part).collect(),
        shards: shards.iter().filter_map(shard).collect(),
    })
}
