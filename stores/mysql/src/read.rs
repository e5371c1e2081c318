//! Reading: every want becomes statements, all of them one text, and the answers become rows again.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use punctual_core::store::{Bodies, Found, Key, Row, ShardId, StoreError, StoredRow, Table, Tallies, Tally, Want};
use punctual_core::{Name, Timestamp};

use crate::answer::{Answer, Record};
use crate::name;
use crate::page;
use crate::sql::{Sql, Tables};

/// Longer lists make the server look for other ways than the index.
const LISTED: usize = 500;

/// The columns of a row as [`row`] reads them, from the tables `r` and `n`; the body comes after them.
pub(crate) const COLUMNS: &str = "r.seq,r.tbl,r.at,n.name,n.grp,r.state";

/// What was found, and the rows of it whose bodies are long and to be fetched in a second round: index and number.
pub(crate) type Gathered = (Found, Vec<(usize, u64)>);

/// Adds the statements for a want.
pub(crate) fn ask(statements: &mut Vec<Sql>, tables: &Tables, shard: ShardId, want: &Want<'_>) {
    match want {
        Want::Keys(keys, bodies) => {
            statements.extend(keys.chunks(LISTED).map(|keys| by_keys(tables, shard, keys, *bodies)));
        }
        Want::Positions(positions, bodies) => statements.extend(positions.chunks(LISTED).map(|positions| {
            by_numbers(tables, shard, "r.tbl=1", positions.iter().map(|position| position.seq), *bodies)
        })),
        Want::Numbers(numbers, bodies) => statements.extend(
            numbers
                .chunks(LISTED)
                .map(|numbers| by_numbers(tables, shard, "r.tbl<4", numbers.iter().copied(), *bodies)),
        ),
        Want::Scan(scan) => statements.extend(page::scan(tables, shard, scan)),
        Want::ScanBack(back) => statements.extend(page::scan_back(tables, shard, back)),
        Want::Find(find) => statements.extend(page::find(tables, shard, find)),
        Want::FindBack(back) => statements.extend(page::find_back(tables, shard, back)),
        Want::Tallies => statements.push(tallies(tables, shard)),
    }
}

/// What the answers to [`ask`] say.
pub(crate) fn gather(answers: &mut VecDeque<Answer>, want: &Want<'_>) -> Result<Gathered, StoreError> {
    let each = match want {
        Want::Keys(keys, bodies) => {
            let rows = listed(answers, keys.len(), *bodies)?;
            let by_key: HashMap<&Key, &Row> = rows.iter().map(|row| (&row.key, row)).collect();
            keys.iter().map(|key| by_key.get(key).map(|row| (*row).clone())).collect()
        }
        Want::Positions(positions, bodies) => {
            let rows = listed(answers, positions.len(), *bodies)?;
            let by_position: HashMap<_, &Row> = rows.iter().map(|row| (row.position(), row)).collect();
            positions.iter().map(|position| by_position.get(position).map(|row| (*row).clone())).collect()
        }
        Want::Numbers(numbers, bodies) => {
            let rows = listed(answers, numbers.len(), *bodies)?;
            let by_number: HashMap<u64, &Row> = rows.iter().map(|row| (row.seq, row)).collect();
            numbers.iter().map(|number| by_number.get(number).map(|row| (*row).clone())).collect()
        }
        Want::Scan(scan) => return page::scanned(answers, scan),
        Want::ScanBack(back) => return page::scanned_back(answers, back),
        Want::Find(find) => return page::found(answers, find),
        Want::FindBack(back) => return page::found_back(answers, back),
        Want::Tallies => return Ok((Found::Tallies(counted(next(answers)?)?.into_vec()), Vec::new())),
    };
    Ok((Found::Each(each), Vec::new()))
}

/// The answer to the next statement.
pub(crate) fn next(answers: &mut VecDeque<Answer>) -> Result<Vec<Record>, StoreError> {
    let missing = || StoreError::Unavailable("the server left a statement without an answer".to_owned());
    Ok(answers.pop_front().ok_or_else(missing)?.rows())
}

/// The rows of lists of this length together.
fn listed(answers: &mut VecDeque<Answer>, length: usize, bodies: Bodies) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    for _ in 0..length.div_ceil(LISTED) {
        for mut record in next(answers)? {
            let mut row = row(&mut record)?;
            if bodies == Bodies::With {
                row.body = record.bytes().map_err(damaged)?.unwrap_or_default();
            }
            rows.push(row);
        }
    }
    Ok(rows)
}

/// A row, from the [`COLUMNS`]; without its body.
pub(crate) fn row(record: &mut Record) -> Result<Row, StoreError> {
    let seq = record.number().map_err(damaged)?;
    let table = record.number().map_err(damaged)?;
    let at = record.number().map_err(damaged)?;
    let key = record.bytes().map_err(damaged)?.unwrap_or_default();
    let group = record.bytes().map_err(damaged)?;
    let state = record.bytes().map_err(damaged)?.unwrap_or_default();
    let key = name::parts(&key).ok_or_else(|| StoreError::damaged(format_args!("row {seq}"), "its key is none"))?;
    // A state outlives the row's body in memory, so it has memory of its own.
    let (state, body) = (Bytes::copy_from_slice(&state), Bytes::new());
    StoredRow { table, key, seq, at, group: group.as_deref(), state, body }.read()
}

/// A time, also the one after all others.
pub(crate) fn instant(millis: u64) -> Timestamp {
    if millis >= Timestamp::NEVER.as_millis() { Timestamp::NEVER } else { Timestamp::from_millis(millis) }
}

/// A name that was stored.
pub(crate) fn named(bytes: &[u8]) -> Result<Name, StoreError> {
    let text = std::str::from_utf8(bytes).map_err(damaged)?;
    Name::read_back(text).map_err(damaged)
}

/// What is in the tables was not written by a store like this one.
pub(crate) fn damaged(why: impl std::fmt::Display) -> StoreError {
    StoreError::damaged("something in the tables", why)
}

fn by_keys(tables: &Tables, shard: ShardId, keys: &[Key], bodies: Bodies) -> Sql {
    let Tables { names, rows, .. } = tables;
    let body = if bodies == Bodies::With { ",n.body" } else { "" };
    let mut sql = Sql::from(format!(
        "SELECT {COLUMNS}{body} FROM {names} n FORCE INDEX (name) STRAIGHT_JOIN {rows} r \
         ON r.shard=n.shard AND r.seq=n.seq WHERE n.shard={} AND n.name IN (",
        shard.0
    ));
    // All tables but that of the settings share one space of keys.
    sql.list(keys, |sql, key| sql.bytes(&name::encode(Table::Live, key))).raw(")");
    sql
}

fn by_numbers(tables: &Tables, shard: ShardId, which: &str, numbers: impl Iterator<Item = u64>, bodies: Bodies) -> Sql {
    let Tables { names, rows, .. } = tables;
    let body = if bodies == Bodies::With { ",n.body" } else { "" };
    let mut sql = Sql::from(format!(
        "SELECT {COLUMNS}{body} FROM {rows} r FORCE INDEX (PRIMARY) STRAIGHT_JOIN {names} n \
         ON n.shard=r.shard AND n.seq=r.seq WHERE r.shard={} AND {which} AND r.seq IN (",
        shard.0
    ));
    sql.list(numbers, |sql, number| sql.number(number)).raw(")");
    sql
}

/// The counts as of a commit and what was added since, in one statement: they change places when deltas are folded.
pub(crate) fn tallies(tables: &Tables, shard: ShardId) -> Sql {
    let (Tables { tallies, deltas, .. }, shard) = (tables, shard.0);
    Sql::from(format!(
        "SELECT serial,counts FROM {tallies} WHERE shard={shard} UNION ALL SELECT serial,counts FROM {deltas} WHERE shard={shard}"
    ))
}

/// The sum of the counts in the second columns.
pub(crate) fn counted(records: Vec<Record>) -> Result<Tallies, StoreError> {
    let mut sum = Tallies::default();
    for mut record in records {
        let _serial = record.number().map_err(damaged)?;
        let counts = record.bytes().map_err(damaged)?.unwrap_or_default();
        if !counts.is_empty() {
            sum.add_bytes(&counts).map_err(|error| StoreError::damaged("a part of the counts", error))?;
        }
    }
    Ok(sum)
}

/// The tallies as they are written.
pub(crate) fn written(tallies: &[(Tally, i64)]) -> Vec<u8> {
    tallies.iter().cloned().collect::<Tallies>().to_bytes()
}

#[cfg(test)]
mod tests {
    use mysql_async::Value;
    use punctual_chance::Chance;

    use super::*;

    #[test]
    fn whatever_a_server_answers_is_a_row_or_refused() {
        let mut chance = Chance::new(7);
        let mut text = |bytes: Vec<u8>| match chance.below(8) {
            0 => Value::NULL,
            1 => Value::Int(-1),
            2 => Value::Bytes(bytes.iter().map(|byte| byte ^ chance.below(256) as u8).collect()),
            3 => Value::Bytes(bytes[..chance.index(bytes.len() + 1)].to_vec()),
            4 => Value::Bytes(chance.draw().to_string().into_bytes()),
            _ => Value::Bytes(bytes),
        };
        let key = name::encode(Table::Live, &Key::new("orders", "42", "mail"));
        let (mut read, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let columns = [&b"7"[..], b"1", b"9", &key, b"spring", b"state"].map(|column| text(column.to_vec()));
            match row(&mut Record::new(columns.into())) {
                Ok(_) => read += 1,
                Err(StoreError::Poisoned(_)) => refused += 1,
                Err(other) => panic!("{other:?}"),
            }
        }
        assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
    }
}
