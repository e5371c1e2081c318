//! Who is there, who owns what, and what all share: each call is one round trip.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::time::Instant;

use punctual_core::Millis;
use punctual_core::store::{
    Beat, Claim, Entry, Fence, Held, Incarnation, Outdated, Present, Refusal, Roll, ShardId, StoreError, Tenure,
};

use crate::MysqlStore;
use crate::answer::{Answer, Record};
use crate::commit::Standing;
use crate::pool::Line;
use crate::read::{damaged, instant, named, next};
use crate::sql::{NOW, Sql, Tables};
use crate::trouble::Trouble;

pub(crate) fn beat(store: &MysqlStore, beat: &Beat) -> Result<Roll, StoreError> {
    let Tables { nodes, shards, cluster, .. } = &store.tables;
    let Beat { who, address, lease } = beat;
    // Another life of the node whose lease is not over is left alone.
    let counts = format!("(incarnation={} OR until_ms<=@now DIV 1000)", who.number);
    let mut sql = Sql::from(format!("SET @now={NOW};"));
    if *lease == Millis::ZERO {
        sql.raw(&format!("DELETE FROM {nodes} WHERE {counts} AND node=")).bytes(who.node.as_bytes());
    } else {
        let until = format!("@now DIV 1000+{}", lease.0.min(Millis::from_hours(24 * 365).0));
        sql.raw(&format!("INSERT INTO {nodes} (node,incarnation,address,until_ms) VALUES ("));
        sql.bytes(who.node.as_bytes()).raw(",").number(who.number).raw(",").bytes(address.as_bytes());
        // The columns change one after the other, and the last one looks at what the one before it has become.
        sql.raw(&format!(",{until}) ON DUPLICATE KEY UPDATE address=IF({counts},")).bytes(address.as_bytes());
        sql.raw(&format!(
            ",address),incarnation=IF({counts},{number},incarnation),until_ms=IF(incarnation={number},{until},until_ms)",
            number = who.number
        ));
    }
    sql.raw(&format!(
        ";SELECT @now;SELECT node,incarnation,address,until_ms FROM {nodes} ORDER BY node;\
         SELECT shard,fence,node,incarnation FROM {shards} ORDER BY shard;\
         SELECT entry,revision FROM {cluster} ORDER BY entry"
    ));
    let answers = store.beats.retry_for(beat.patience(), |line, deadline| ask(line, &sql, deadline))?;
    let mut answers = VecDeque::from(answers);
    answers.drain(..2);
    let micros = next(&mut answers)?.first_mut().map_or(Ok(0), Record::number).map_err(damaged)?;
    Ok(Roll {
        micros,
        nodes: next(&mut answers)?.into_iter().map(present).collect::<Result<_, _>>()?,
        shards: next(&mut answers)?.into_iter().map(held).collect::<Result<_, _>>()?,
        revisions: next(&mut answers)?.into_iter().map(revision).collect::<Result<_, _>>()?,
    })
}

fn present(mut record: Record) -> Result<Present, StoreError> {
    let node = named(&record.bytes().map_err(damaged)?.unwrap_or_default())?;
    let number = record.number().map_err(damaged)?;
    let address = record.text().map_err(damaged)?;
    let until = instant(record.number().map_err(damaged)?);
    Ok(Present { who: Incarnation { node, number }, address, until })
}

fn held(mut record: Record) -> Result<Held, StoreError> {
    let shard = u16::try_from(record.number().map_err(damaged)?).map_err(damaged)?;
    let fence = Fence(record.number().map_err(damaged)?);
    let by = match record.bytes().map_err(damaged)? {
        Some(node) => Some(Incarnation { node: named(&node)?, number: record.number().map_err(damaged)? }),
        None => None,
    };
    Ok(Held { shard: ShardId(shard), fence, by })
}

fn revision(mut record: Record) -> Result<(String, u64), StoreError> {
    Ok((record.text().map_err(damaged)?, record.number().map_err(damaged)?))
}

pub(crate) fn claim(
    store: &MysqlStore,
    who: &Incarnation,
    wanted: &[(ShardId, Fence)],
) -> Result<Vec<Claim>, StoreError> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let shards = &store.tables.shards;
    let mut sql = Sql::from("BEGIN;");
    let unclaimed = || wanted.iter().filter(|(_, seen)| *seen == Fence::default());
    if unclaimed().next().is_some() {
        sql.raw(&format!("INSERT IGNORE INTO {shards} (shard,fence,serial) VALUES "));
        sql.list(unclaimed(), |sql, (shard, _)| sql.raw("(").number(shard.0.into()).raw(",0,0)")).raw(";");
    }
    // Held from here on, always in the same order, so that claims and commits do not block each other.
    let mut look = Sql::from(format!("SELECT shard,fence,serial FROM {shards} WHERE shard IN ("));
    look.list(wanted, |sql, (shard, _)| sql.number(shard.0.into())).raw(") ORDER BY shard");
    sql.add(&look).raw(&format!(" FOR UPDATE;UPDATE {shards} SET fence=GREATEST(fence+1,{NOW}),node="));
    sql.bytes(who.node.as_bytes()).raw(",incarnation=").number(who.number).raw(" WHERE (shard,fence) IN (");
    sql.list(wanted, |sql, (shard, seen)| sql.raw("(").number(shard.0.into()).raw(",").number(seen.0).raw(")"));
    sql.raw(");").add(&look).raw(";COMMIT");
    let answers = store.pool.retry(|line, deadline| ask_once(line, &sql, deadline))?;
    let mut found = answers.into_iter().map(Answer::rows).filter(|rows| !rows.is_empty());
    let before = tenures(found.next().unwrap_or_default())?;
    let mut after = tenures(found.next().unwrap_or_default())?;
    let mut grant = |(shard, seen): &(ShardId, Fence)| {
        let was = before.get(shard).map_or(Fence::default(), |tenure| tenure.fence);
        let is = after.get(shard).copied().unwrap_or_default();
        // Whoever asks for the same shard twice in one call gets it once.
        match was == *seen && is.fence != was && after.remove(shard).is_some() {
            true => Claim::Granted(is),
            false => Claim::Outrun(is.fence),
        }
    };
    Ok(wanted.iter().map(&mut grant).collect())
}

fn tenures(records: Vec<Record>) -> Result<BTreeMap<ShardId, Tenure>, StoreError> {
    let mut tenures = BTreeMap::new();
    for mut record in records {
        let shard = u16::try_from(record.number().map_err(damaged)?).map_err(damaged)?;
        let tenure =
            Tenure { fence: Fence(record.number().map_err(damaged)?), serial: record.number().map_err(damaged)? };
        tenures.insert(ShardId(shard), tenure);
    }
    Ok(tenures)
}

pub(crate) fn release(
    store: &MysqlStore,
    shard: ShardId,
    fence: Fence,
    to: Option<&Incarnation>,
) -> Result<Fence, StoreError> {
    let mut sql = Sql::from(format!("BEGIN;UPDATE {} SET fence=GREATEST(fence+1,{NOW}),node=", store.tables.shards));
    sql.bytes_or_null(to.map(|to| to.node.as_bytes())).raw(",incarnation=");
    match to {
        Some(to) => sql.number(to.number),
        None => sql.raw("NULL"),
    };
    sql.raw(&format!(" WHERE shard={} AND fence={};", shard.0, fence.0));
    sql.add(&store.standing_of(shard)).raw(";COMMIT");
    let mut answers = store.pool.retry(|line, deadline| ask_once(line, &sql, deadline))?;
    let is_released = answers.get(1).is_some_and(|answer| answer.affected() == 1);
    let standing = Standing::read((answers.len() > 2).then(|| answers.swap_remove(2)))?;
    if is_released { Ok(standing.fence) } else { Err(Refusal::Fenced { current: standing.fence }.into()) }
}

pub(crate) fn get(store: &MysqlStore, key: &str) -> Result<Option<Entry>, StoreError> {
    let sql = entry(store, key);
    let answers = store.pool.retry(|line, deadline| ask(line, &sql, deadline))?;
    read_entry(answers.into_iter().next())
}

pub(crate) fn put(store: &MysqlStore, key: &str, seen: u64, value: &[u8]) -> Result<Result<u64, Outdated>, StoreError> {
    let cluster = &store.tables.cluster;
    // No revision is given twice, also after the database went back.
    let mut sql = Sql::from(format!("SET @revision=GREATEST({},{NOW});", seen.saturating_add(1)));
    if seen == 0 {
        sql.raw(&format!("INSERT INTO {cluster} (entry,revision,value) SELECT ")).bytes(key.as_bytes());
        sql.raw(",@revision,")
            .bytes(value)
            .raw(&format!(" FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM {cluster} WHERE entry="));
        sql.bytes(key.as_bytes()).raw(")");
    } else {
        sql.raw(&format!("UPDATE {cluster} SET revision=@revision,value=")).bytes(value);
        sql.raw(" WHERE entry=").bytes(key.as_bytes()).raw(" AND revision=").number(seen);
    }
    sql.raw(";SELECT @revision").then(&entry(store, key));
    let mut attempts = 0;
    let answers = store.pool.retry(|line, deadline| {
        attempts += 1;
        ask(line, &sql, deadline)
    })?;
    let mut answers = VecDeque::from(answers);
    answers.pop_front();
    let is_written = answers.pop_front().is_some_and(|answer| answer.affected() == 1);
    let given = next(&mut answers)?.first_mut().map_or(Ok(0), Record::number).map_err(damaged)?;
    if is_written {
        return Ok(Ok(given));
    }
    let found = read_entry(answers.pop_front())?;
    let current = found.as_ref().map_or(0, |entry| entry.revision);
    // The first attempt may have written it, and its answer was lost.
    let is_ours = attempts > 1 && current > seen && found.is_some_and(|entry| entry.value == value);
    Ok(if is_ours { Ok(current) } else { Err(Outdated { current }) })
}

fn entry(store: &MysqlStore, key: &str) -> Sql {
    let mut sql = Sql::from(format!("SELECT revision,value FROM {} WHERE entry=", store.tables.cluster));
    sql.bytes(key.as_bytes());
    sql
}

fn read_entry(answer: Option<Answer>) -> Result<Option<Entry>, StoreError> {
    let Some(mut record) = answer.and_then(|answer| answer.rows().into_iter().next()) else { return Ok(None) };
    let revision = record.number().map_err(damaged)?;
    Ok(Some(Entry { revision, value: record.bytes().map_err(damaged)?.unwrap_or_default() }))
}

fn ask(line: &mut Line<'_>, sql: &Sql, deadline: Instant) -> Result<Vec<Answer>, Trouble> {
    line.ask(sql, deadline).map_err(|stopped| stopped.why)
}

/// The same for what must not happen twice: whoever asked finds out by itself what became of it.
fn ask_once(line: &mut Line<'_>, sql: &Sql, deadline: Instant) -> Result<Vec<Answer>, Trouble> {
    ask(line, sql, deadline).map_err(Trouble::unclear_if_lost)
}
