//! Damage that only shows in the tables themselves.

use punctual_core::store::StoreError;

use crate::MysqlStore;
use crate::answer::Record;
use crate::read::damaged;
use crate::sql::Tables;

/// A line for each kind of damage, and none for a store that is well.
pub(crate) fn check(store: &MysqlStore) -> Result<Vec<String>, StoreError> {
    let mut lines = Vec::new();
    for (question, what) in questions(&store.tables) {
        let count = store.survey(question)?.first_mut().map_or(Ok(0), Record::number).map_err(damaged)?;
        if count > 0 {
            lines.push(format!("{count} {what}"));
        }
    }
    Ok(lines)
}

fn questions(tables: &Tables) -> Vec<(String, &'static str)> {
    let Tables { shards, names, members, rows, tallies, deltas, .. } = tables;
    let orphans = |these: &str, those: &str| {
        format!(
            "SELECT COUNT(*) FROM {these} a LEFT JOIN {those} b ON b.shard=a.shard AND b.seq=a.seq WHERE b.seq IS NULL"
        )
    };
    let listed: Vec<String> = tables.all().iter().map(|table| table.replace('`', "'")).collect();
    vec![
        (
            format!(
                "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA=DATABASE() AND ENGINE<>'InnoDB' AND TABLE_NAME IN ({})",
                listed.join(",")
            ),
            "tables are not of the engine InnoDB: ALTER TABLE them to it",
        ),
        (
            format!("SELECT COUNT(*) FROM {rows} WHERE tbl NOT BETWEEN 1 AND 4 OR at>9007199254740991"),
            "rows are in a table that is none, or at a time after the end of time",
        ),
        (
            format!(
                "SELECT COUNT(*) FROM {rows} r JOIN {names} n ON n.shard=r.shard AND n.seq=r.seq \
                 WHERE ORD(n.name)<>IF(r.tbl=4,1,0)"
            ),
            "settings are among the tasks, or tasks among the settings",
        ),
        (orphans(rows, names), "rows have no key and no body"),
        (orphans(names, rows), "keys have no row"),
        (orphans(members, names), "members of groups have no row"),
        (
            format!(
                "SELECT COUNT(*) FROM {names} n LEFT JOIN {members} m ON m.shard=n.shard AND m.grp=n.grp AND m.seq=n.seq \
                 WHERE n.grp IS NOT NULL AND m.seq IS NULL"
            ),
            "rows are not among the members of their group",
        ),
        (format!("SELECT COUNT(*) FROM {names} WHERE size<>LENGTH(body)"), "bodies have another length than they had"),
        (
            format!(
                "SELECT COUNT(*) FROM {rows} r LEFT JOIN {shards} s ON s.shard=r.shard WHERE s.shard IS NULL OR r.serial>s.serial"
            ),
            "rows were written by commits that are not there",
        ),
        (
            format!("SELECT COUNT(*) FROM {deltas} d JOIN {tallies} t ON t.shard=d.shard WHERE d.serial<=t.serial"),
            "counts are there twice",
        ),
    ]
}
