//! Who is there and who owns what, as queries, and what came back.

use bytes::Bytes;
use punctual_core::store::{
    Beat, Claim, Entry, Fence, Held, Incarnation, Outdated, Present, Refusal, Roll, ShardId, StoreError, Tenure,
};
use punctual_core::{Millis, Name, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::column::Column;
use crate::commit::tenure;
use crate::number::{bits, number, shard_number, stored_bits, stored_number, stored_shard};
use crate::statement::{Query, Statement, Value, value};

/// A beat, and the roll after it.
pub(crate) fn beat(beat: &Beat) -> Vec<Query> {
    let Beat { who, address, lease } = beat;
    let [node, incarnation] = named(Some(who));
    let first = match *lease {
        Millis::ZERO => Query::new(Statement::Leave, vec![node, incarnation]),
        Millis(lease) => {
            let values = vec![node, incarnation, value(address.clone()), value(number(lease))];
            Query::new(Statement::Beat, values)
        }
    };
    let rolls = [Statement::RollNodes, Statement::RollShards, Statement::RollRevisions];
    let rolls = rolls.map(|statement| Query::new(statement, Vec::new()));
    std::iter::once(first).chain(rolls).collect()
}

pub(crate) fn roll(answer: &[Vec<Row>]) -> Result<Roll, StoreError> {
    let named = |text: &str| Name::read_back(text).map_err(|error| StoreError::damaged("the name of a node", error));
    let present = |row: &Row| {
        Ok(Present {
            who: Incarnation { node: named(row.get(0))?, number: stored_bits(row.get(1)) },
            address: row.get(2),
            until: Timestamp::from_millis(stored_number(row.get(3))),
        })
    };
    let held = |row: &Row| {
        let (shard, node): (i32, Option<&str>) = (row.get(0), row.get(2));
        let incarnation = row.get::<_, Option<i64>>(3).map(stored_bits);
        let shard = stored_shard(shard).ok_or_else(|| StoreError::damaged("a shard's owner", "there is no such shard"));
        Ok(Held {
            shard: shard?,
            fence: Fence(stored_number(row.get(1))),
            by: node.map(named).transpose()?.zip(incarnation).map(|(node, number)| Incarnation { node, number }),
        })
    };
    Ok(Roll {
        micros: answer[0].first().map_or(0, |row| stored_number(row.get(0))),
        nodes: answer[1].iter().map(present).collect::<Result<_, StoreError>>()?,
        shards: answer[2].iter().map(held).collect::<Result<_, StoreError>>()?,
        revisions: answer[3].iter().map(|row| (row.get(0), stored_number(row.get(1)))).collect(),
    })
}

/// Shards are claimed in their order, whatever the order they are wanted in: see `commit.rs`.
pub(crate) fn claim(who: &Incarnation, wanted: &[(ShardId, Fence)]) -> Vec<Query> {
    let mut sorted = wanted.to_vec();
    sorted.sort_unstable();
    let columns = || {
        let (mut shards, mut seen) = (Column::new(Type::INT4), Column::new(Type::INT8));
        for (shard, fence) in &sorted {
            shards.int4(shard_number(*shard));
            seen.int8(fence.0);
        }
        (shards, seen)
    };
    let ((shards, seen), (new_shards, new_seen)) = (columns(), columns());
    let [node, incarnation] = named(Some(who));
    vec![
        Query::new(Statement::ClaimFirst, vec![value(new_shards), value(new_seen)]),
        Query::new(Statement::Claim, vec![value(shards), value(seen), node, incarnation]),
        Query::new(Statement::Standing, vec![value(columns().0)]),
    ]
}

/// What a claim came to, in the order in which the shards were wanted.
pub(crate) fn claims(wanted: &[(ShardId, Fence)], answer: &[Vec<Row>]) -> Vec<Claim> {
    let find = |rows: &[Row], shard: ShardId| -> Option<Tenure> {
        rows.iter().map(tenure).find(|(number, _)| *number == shard_number(shard)).map(|(_, tenure)| tenure)
    };
    let one = |(shard, _): &(ShardId, Fence)| match find(&answer[1], *shard) {
        Some(tenure) => Claim::Granted(tenure),
        None => Claim::Outrun(find(&answer[2], *shard).unwrap_or_default().fence),
    };
    wanted.iter().map(one).collect()
}

pub(crate) fn release(shard: ShardId, fence: Fence, to: Option<&Incarnation>) -> Vec<Query> {
    let [node, incarnation] = named(to);
    let mut shards = Column::new(Type::INT4);
    shards.int4(shard_number(shard));
    vec![
        Query::new(Statement::Release, vec![value(shard_number(shard)), value(number(fence.0)), node, incarnation]),
        Query::new(Statement::Standing, vec![value(shards)]),
    ]
}

/// The fence that came in force, or the one because of which nothing was released.
pub(crate) fn released(answer: &[Vec<Row>]) -> Result<Fence, Refusal> {
    match answer[0].first() {
        Some(row) => Ok(Fence(stored_number(row.get(0)))),
        None => {
            let current = answer[1].first().map(|row| tenure(row).1.fence).unwrap_or_default();
            Err(Refusal::Fenced { current })
        }
    }
}

pub(crate) fn entry(rows: &[Row]) -> Option<Entry> {
    let row = rows.first()?;
    Some(Entry { revision: stored_number(row.get(0)), value: Bytes::copy_from_slice(row.get(1)) })
}

pub(crate) fn put(key: &str, seen: u64, new: &[u8]) -> Vec<Query> {
    let key = || value(key.to_owned());
    vec![
        Query::new(Statement::ClusterPut, vec![key(), value(number(seen)), value(new.to_vec())]),
        Query::new(Statement::ClusterGet, vec![key()]),
    ]
}

/// Whether an entry was written. If it may have been before, without our having heard of it, what is there tells.
pub(crate) fn was_put(seen: u64, new: &[u8], is_repeated: bool, answer: &[Vec<Row>]) -> Result<u64, Outdated> {
    if let Some(row) = answer[0].first() {
        return Ok(stored_number(row.get(0)));
    }
    let found = entry(&answer[1]);
    let current = found.as_ref().map_or(0, |entry| entry.revision);
    let is_ours = is_repeated && current > seen && found.is_some_and(|entry| *entry.value == *new);
    if is_ours { Ok(current) } else { Err(Outdated { current }) }
}

/// A node's name and the number of its life, or nobody's.
fn named(who: Option<&Incarnation>) -> [Value; 2] {
    [value(who.map(|who| who.node.to_string())), value(who.map(|who| bits(who.number)))]
}
