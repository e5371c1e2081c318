//! What is in the tables, for people and for `punctual store show`.

use std::fmt;
use std::sync::Arc;

use punctual_core::store::StoreError;
use tokio_postgres::Client;

use crate::config::Target;
use crate::error::Trouble;
use crate::link::{Link, Threads};
use crate::migrate::VERSION;
use crate::number::stored_number;
use crate::session::connect;

/// What the tables of a store hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Where they are: host, database and schema.
    pub place: String,
    /// Their version.
    pub version: u32,
    /// Each table with its indexes.
    pub tables: Vec<TableContents>,
    /// Each shard that was ever claimed.
    pub shards: Vec<ShardContents>,
}

/// What a table takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableContents {
    /// The table, with its schema, as SQL names it.
    pub name: String,
    /// About how many rows it has, as of the last vacuum.
    pub rows: u64,
    /// How many of them, more or less, are dead and wait for the next vacuum.
    pub dead: u64,
    /// How many bytes it takes, with its indexes.
    pub bytes: u64,
}

/// How it stands with a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardContents {
    /// Its number.
    pub shard: u64,
    /// The number of its latest commit.
    pub serial: u64,
    /// The node that has it.
    pub node: Option<String>,
    /// How many rows it has that are live, dead letters, history, and settings.
    pub rows: [u64; 4],
}

const TABLES: &str = "SELECT name, greatest(c.reltuples, 0)::int8, coalesce(s.n_dead_tup, 0), pg_total_relation_size(c.oid) \
    FROM unnest($1::text[]) AS t (name) JOIN pg_class c ON c.oid = to_regclass(name) \
    LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid ORDER BY 4 DESC, 1";

const SHARDS: &str = "SELECT s.shard, s.serial, s.node, coalesce(live, 0), coalesce(dead, 0), coalesce(history, 0), \
    coalesce(settings, 0) FROM {shards} s LEFT JOIN (SELECT shard, count(*) FILTER (WHERE tbl = 1) AS live, \
    count(*) FILTER (WHERE tbl = 2) AS dead, count(*) FILTER (WHERE tbl = 3) AS history, \
    count(*) FILTER (WHERE tbl = 4) AS settings FROM {rows} GROUP BY shard) r ON r.shard = s.shard ORDER BY s.shard";

/// Counts everything.
pub(crate) fn show(link: &Arc<Link>, threads: &Threads) -> Result<Contents, StoreError> {
    let target = link.target().clone();
    let place = target.place();
    let contents = threads.run(async move {
        let (client, driver) = connect(&target).await?;
        let contents = look(&client, &target).await;
        driver.abort();
        contents
    });
    contents.map_err(|trouble| StoreError::Unavailable(format!("{place}: {}", trouble.text())))
}

async fn look(client: &Client, target: &Target) -> Result<Contents, Trouble> {
    let names: Vec<String> = target.layout.tables().collect();
    let tables = client.query(TABLES, &[&names]).await.map_err(|error| Trouble::of(&error))?;
    let shards = client.query(&target.layout.fill(SHARDS), &[]).await.map_err(|error| Trouble::of(&error))?;
    let table = |row: &tokio_postgres::Row| TableContents {
        name: row.get(0),
        rows: stored_number(row.get(1)),
        dead: stored_number(row.get(2)),
        bytes: stored_number(row.get(3)),
    };
    let shard = |row: &tokio_postgres::Row| ShardContents {
        shard: stored_number(i64::from(row.get::<_, i32>(0))),
        serial: stored_number(row.get(1)),
        node: row.get(2),
        rows: [3, 4, 5, 6].map(|column| stored_number(row.get(column))),
    };
    Ok(Contents {
        place: format!("{}, schema {}", target.place(), target.layout.place()),
        version: VERSION,
        tables: tables.iter().map(table).collect(),
        shards: shards.iter().map(shard).collect(),
    })
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, version {}", self.place, self.version)?;
        for TableContents { name, rows, dead, bytes } in &self.tables {
            writeln!(f, "  {name}: {bytes} bytes, about {rows} rows and {dead} dead")?;
        }
        for ShardContents { shard, serial, node, rows: [live, dead, history, settings] } in &self.shards {
            let node = node.as_deref().unwrap_or("nobody");
            write!(f, "  shard {shard} of {node}, after commit {serial}: {live} live, {dead} dead letters, ")?;
            writeln!(f, "{history} in the history, {settings} settings")?;
        }
        Ok(())
    }
}
