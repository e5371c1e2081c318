//! What is wanted, as queries, and what came back, as rows.

use bytes::Bytes;
use punctual_core::store::{
    Bodies, Find, FindBack, Found, Key, Page, Position, Row, Scan, ScanBack, ShardId, StoreError, StoredRow, Table,
    Tallies, Want,
};
use punctual_core::{Name, Timestamp};
use tokio_postgres::types::Type;

use crate::column::Column;
use crate::number::{number, shard_number, stored_number, stored_time};
use crate::statement::{Query, Statement, Value, value};

/// How many rows a page has at most; who wants more reads on.
const PAGE_ROWS: usize = 10_000;
/// How many rows of other topics, or of other tables, a read looks at before it says how far it came.
const LOOK_ROWS: usize = 4_096;
/// After how many bytes of bodies a page ends; the statements have the same number.
const PAGE_BYTES: usize = 8 << 20;

/// What to ask for a want.
pub(crate) fn query(of: ShardId, want: &Want<'_>) -> Query {
    let shard = value(shard_number(of));
    match want {
        Want::Keys(keys, bodies) => Query::new(Statement::Keys, keyed(of, keys, *bodies)),
        Want::Positions(positions, bodies) => {
            let (mut at, mut seq) = (Column::new(Type::INT8), Column::new(Type::INT8));
            for position in *positions {
                at.int8(position.at.as_millis());
                seq.int8(position.seq);
            }
            Query::new(Statement::Positions, vec![shard, value(at), value(seq), with(*bodies)])
        }
        Want::Numbers(numbers, bodies) => {
            let mut seq = Column::new(Type::INT8);
            numbers.iter().for_each(|number| seq.int8(*number));
            Query::new(Statement::Numbers, vec![shard, value(seq), with(*bodies)])
        }
        Want::Scan(scan) => {
            let Scan { table, from, until, topic, limit, bodies } = scan;
            let statements = (Statement::Scan, Statement::ScanTopic);
            spanning(statements, shard, *table, *from, *until, *limit, *bodies, topic.as_ref())
        }
        Want::ScanBack(back) => {
            let ScanBack { table, before, from, topic, limit, bodies } = back;
            let statements = (Statement::ScanBack, Statement::ScanBackTopic);
            // Rows without a time are left out.
            let before = (*before).min(Position::start_of(Timestamp::NEVER));
            spanning(statements, shard, *table, before, *from, *limit, *bodies, topic.as_ref())
        }
        Want::Find(find) => {
            let Find { table, group, from_seq, limit, bodies } = find;
            grouped(Statement::Find, of, *table, group, *from_seq, *limit, *bodies)
        }
        Want::FindBack(back) => {
            let FindBack { table, group, before_seq, limit, bodies } = back;
            grouped(Statement::FindBack, of, *table, group, *before_seq, *limit, *bodies)
        }
        Want::Tallies => Query::new(Statement::Tallies, vec![shard]),
    }
}

fn keyed(of: ShardId, keys: &[Key], bodies: Bodies) -> Vec<Value> {
    let [mut topic, mut id, mut queue] = [(); 3].map(|()| Column::new(Type::TEXT));
    for key in keys {
        topic.bytes(key.topic().as_bytes());
        id.bytes(key.id().as_bytes());
        queue.bytes(key.queue().as_bytes());
    }
    let (shard, space) = (value(shard_number(of)), value(space(of, Table::Live)));
    vec![shard, space, value(topic), value(id), value(queue), with(bodies)]
}

#[expect(clippy::too_many_arguments, reason = "each is a parameter of the statement")]
fn spanning(
    (plain, by_topic): (Statement, Statement),
    shard: Value,
    table: Table,
    begin: Position,
    end: Timestamp,
    limit: usize,
    bodies: Bodies,
    topic: Option<&Name>,
) -> Query {
    let (at, seq) = (number(begin.at.as_millis()), number(begin.seq));
    let mut values = vec![shard, value(table as i16), value(at), value(seq), value(number(end.as_millis()))];
    values.extend([value(rows(limit)), with(bodies)]);
    match topic {
        None => Query::new(plain, values),
        Some(topic) => {
            values.extend([value(topic.to_string()), value(looked(limit))]);
            Query::new(by_topic, values)
        }
    }
}

fn grouped(
    statement: Statement,
    of: ShardId,
    table: Table,
    group: &Name,
    begin: u64,
    limit: usize,
    bodies: Bodies,
) -> Query {
    let mut values = vec![value(shard_number(of)), value(space(of, table)), value(table as i16)];
    values.extend([value(group.to_string()), value(number(begin))]);
    values.extend([value(rows(limit)), with(bodies), value(looked(limit))]);
    Query::new(statement, values)
}

/// Within what a key of a table stands once; the commit says the same.
fn space(of: ShardId, table: Table) -> i32 {
    shard_number(of) * 2 + i32::from(table == Table::Settings)
}

fn with(bodies: Bodies) -> Value {
    value(bodies == Bodies::With)
}

/// How many rows a page has if so many are wanted.
fn rows(limit: usize) -> i64 {
    limit.min(PAGE_ROWS) as i64
}

/// How many rows are looked at for such a page.
fn looked(limit: usize) -> i64 {
    rows(limit).max(LOOK_ROWS as i64)
}

/// What was found for a want.
pub(crate) fn found(want: &Want<'_>, answer: &[tokio_postgres::Row]) -> Result<Found, StoreError> {
    Ok(match want {
        Want::Keys(keys, _) => Found::Each(each(keys.len(), answer)?),
        Want::Positions(positions, _) => Found::Each(each(positions.len(), answer)?),
        Want::Numbers(numbers, _) => Found::Each(each(numbers.len(), answer)?),
        Want::Scan(scan) => {
            let part = Part::of(answer, scan.topic.is_some())?;
            Found::Span(part.page(scan.limit, scan.from, Position::next))
        }
        Want::ScanBack(back) => {
            let part = Part::of(answer, back.topic.is_some())?;
            Found::Span(part.page(back.limit, back.before, |position| position))
        }
        Want::Find(find) => {
            let part = Part::of(answer, true)?;
            let from = Position { at: Timestamp::ZERO, seq: find.from_seq };
            Found::Members(numbers(part.page(find.limit, from, Position::next)))
        }
        Want::FindBack(back) => {
            let part = Part::of(answer, true)?;
            let before = Position { at: Timestamp::ZERO, seq: back.before_seq };
            Found::Members(numbers(part.page(back.limit, before, |position| position)))
        }
        Want::Tallies => {
            let mut tallies = Tallies::default();
            for row in answer {
                tallies.add_bytes(row.get(1)).map_err(|error| StoreError::damaged("a part of the counts", error))?;
            }
            Found::Tallies(tallies.into_vec())
        }
    })
}

fn numbers(page: Page<Position>) -> Page<u64> {
    Page { rows: page.rows, next: page.next.map(|position| position.seq) }
}

/// Each row at the place of what it was asked by.
fn each(count: usize, answer: &[tokio_postgres::Row]) -> Result<Vec<Option<Row>>, StoreError> {
    let mut found = vec![None; count];
    for row in answer {
        let place = stored_number(row.get::<_, i64>(0)) as usize;
        found[place - 1] = Some(read(row)?);
    }
    Ok(found)
}

/// A part of a table or a group: the rows, and how far the store has looked.
struct Part {
    rows: Vec<Row>,
    bytes: usize,
    /// If not all rows that were looked at are among the rows: how many they were, and the last.
    looked: Option<(i64, Position)>,
}

impl Part {
    fn of(answer: &[tokio_postgres::Row], says_how_far: bool) -> Result<Part, StoreError> {
        let (answer, last) = match answer.split_last() {
            Some((last, rows)) if says_how_far => (rows, Some(last)),
            _ => (answer, None),
        };
        let rows = answer.iter().map(read).collect::<Result<Vec<Row>, StoreError>>()?;
        let bytes = rows.iter().map(|row| row.body.len()).sum();
        Ok(Part { rows, bytes, looked: last.map(|row| (row.get(0), position(row))) })
    }

    /// The page, with where to go on: after the rows, if it ended because of them, else after what was looked at, if that
    /// was as much as could be.
    fn page(self, limit: usize, begin: Position, after: impl Fn(Position) -> Position) -> Page<Position> {
        let Part { rows, bytes, looked: seen } = self;
        let is_full = rows.len() as i64 == self::rows(limit) || bytes >= PAGE_BYTES;
        let next = match (is_full, rows.last(), seen) {
            (true, Some(last), _) => Some(after(last.position())),
            (true, None, _) => Some(begin),
            (false, _, Some((count, last))) if count == looked(limit) => Some(after(last)),
            (false, ..) => None,
        };
        Page { rows, next }
    }
}

fn position(row: &tokio_postgres::Row) -> Position {
    Position { seq: stored_number(row.get(1)), at: stored_time(row.get(2)) }
}

/// A row, from: place, seq, at, table, state, topic, id, queue, group, body.
fn read(row: &tokio_postgres::Row) -> Result<Row, StoreError> {
    let unsigned = |number: i64| u64::try_from(number).unwrap_or(u64::MAX);
    let seq: i64 = row.get(1);
    let stored = StoredRow {
        table: unsigned(row.get::<_, i16>(3).into()),
        key: [5, 6, 7].map(|column| row.get::<_, &str>(column).as_bytes()),
        seq: u64::try_from(seq).map_err(|_| StoreError::damaged(format_args!("row {seq}"), "it has no such number"))?,
        at: unsigned(row.get(2)),
        group: row.get::<_, Option<&str>>(8).map(str::as_bytes),
        state: Bytes::copy_from_slice(row.get(4)),
        body: row.get::<_, Option<&[u8]>>(9).map(Bytes::copy_from_slice).unwrap_or_default(),
    };
    stored.read()
}
