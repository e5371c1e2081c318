//! What is in the tables, for `punctual store show`.

use std::collections::BTreeMap;

use punctual_core::store::{ShardId, StoreError, Table};
use punctual_database::{Contents, Part, ShardContents};

use crate::MysqlStore;
use crate::layout::VERSION;
use crate::read::damaged;
use crate::sql::Tables;

/// Counts everything.
pub(crate) fn contents(store: &MysqlStore) -> Result<Contents, StoreError> {
    let Tables { shards, rows, .. } = &store.tables;
    let mut found: BTreeMap<u64, ShardContents> = BTreeMap::new();
    for mut record in store.survey(format!("SELECT shard,serial FROM {shards}"))? {
        let number = record.number().map_err(damaged)?;
        let shard = ShardId(u16::try_from(number).map_err(damaged)?);
        let serial = record.number().map_err(damaged)?;
        found.insert(number, ShardContents { shard, serial, rows: [0; Table::ALL.len()] });
    }
    for mut record in store.survey(format!("SELECT shard,tbl,COUNT(*) FROM {rows} GROUP BY shard,tbl"))? {
        let mut number = || record.number().map_err(damaged);
        let (shard, table, count) = (number()?, number()?, number()?);
        // What stands where there is nothing is for a check to say.
        let place = Table::ALL.iter().position(|one| *one as u64 == table);
        if let Some((contents, place)) = found.get_mut(&shard).zip(place) {
            contents.rows[place] = count;
        }
    }
    Ok(Contents { version: VERSION, parts: parts(store)?, shards: found.into_values().collect() })
}

/// Each table, by the server's own estimate.
fn parts(store: &MysqlStore) -> Result<Vec<Part>, StoreError> {
    let listed: Vec<String> = store.tables.all().iter().map(|table| table.replace('`', "'")).collect();
    let records = store.survey(format!(
        "SELECT TABLE_NAME,CAST(COALESCE(DATA_LENGTH+INDEX_LENGTH,0) AS UNSIGNED) FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA=DATABASE() AND TABLE_NAME IN ({}) ORDER BY 2 DESC,1",
        listed.join(",")
    ))?;
    let part = |mut record: crate::answer::Record| {
        Ok(Part { name: record.text().map_err(damaged)?, bytes: record.number().map_err(damaged)? })
    };
    records.into_iter().map(part).collect()
}
