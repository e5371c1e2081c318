//! Pages: parts of a table in time order, or of a group by its numbers. A page is bounded by its rows, by the rows that
//! were looked at for it, and by the bytes of its bodies.
//!
//! Where rows are looked at that may not belong to the page (other topics, other tables), the server first finds out how
//! far it may go, into variables of the session, and then reads up to there: `@a` for a time and `@q` for a number.

use std::collections::VecDeque;

use punctual_core::store::{
    Bodies, Find, FindBack, Found, Page, Position, Row, Scan, ScanBack, ShardId, StoreError, Table,
};
use punctual_core::{Name, Timestamp};

use crate::answer::{Answer, Record};
use crate::name;
use crate::read::{COLUMNS, Gathered, damaged, instant, next, row};
use crate::sql::{Sql, Tables};

/// At most so many rows in a page, with and without bodies.
const ROWS_WITH_BODIES: usize = 1_024;
const ROWS: usize = 4_096;
/// At most so many rows are looked at for one.
const LOOKED_AT: usize = 2_000;
/// At most so many bytes of bodies, or one body.
const BYTES: u64 = 8 << 20;
/// Longer bodies are fetched after the page, as far as they fit. Any page of short ones fits.
const SHORT: u64 = BYTES / ROWS_WITH_BODIES as u64;

/// The rows of a page, and how far it goes.
struct Walk {
    /// The table that is gone through, with the index that has the order.
    through: String,
    /// What else is needed of a row.
    joined: String,
    /// Where to begin and to end.
    range: Sql,
    order: &'static str,
    /// How far to go at most, if rows are passed over on the way.
    bound: Option<Bound>,
    limit: usize,
    bodies: Bodies,
}

struct Bound {
    /// The columns and the variables of a place on the way.
    place: &'static str,
    variables: &'static str,
    /// The values of the variables if the end comes before the bound.
    end: String,
    /// The row that is noted as the bound, and up to where that lets the page go.
    row: usize,
    up_to: &'static str,
    /// Which rows belong to the page.
    filter: Sql,
}

impl Walk {
    fn through_time(tables: &Tables) -> Walk {
        let Tables { rows, names, .. } = tables;
        Walk {
            through: format!("{rows} r FORCE INDEX (time)"),
            joined: format!(" STRAIGHT_JOIN {names} n ON n.shard=r.shard AND n.seq=r.seq"),
            range: Sql::default(),
            order: "",
            bound: None,
            limit: 0,
            bodies: Bodies::Without,
        }
    }

    fn through_group(tables: &Tables) -> Walk {
        let Tables { rows, names, members, .. } = tables;
        Walk {
            through: format!("{members} m"),
            joined: format!(
                " STRAIGHT_JOIN {rows} r ON r.shard=m.shard AND r.seq=m.seq \
                 STRAIGHT_JOIN {names} n ON n.shard=m.shard AND n.seq=m.seq"
            ),
            ..Walk::through_time(tables)
        }
    }

    fn ask(&self, tables: &Tables) -> Vec<Sql> {
        if self.limit == 0 {
            return Vec::new();
        }
        let Walk { through, joined, order, .. } = self;
        let mut statements = Vec::new();
        if let Some(Bound { place, variables, end, row, .. }) = &self.bound {
            statements.push(Sql::from(format!("SET {end}")));
            let mut bound = Sql::from(format!("SELECT {place} INTO {variables} FROM {through} WHERE "));
            bound.add(&self.range).raw(&format!(" ORDER BY {order} LIMIT 1 OFFSET {row}"));
            statements.push(bound);
        }
        let (columns, bodies) = match self.bodies {
            Bodies::Without => ("", String::new()),
            Bodies::With => (
                ",n.size,b.body",
                format!(" LEFT JOIN {} b ON b.shard=n.shard AND b.seq=n.seq AND n.size<={SHORT}", tables.names),
            ),
        };
        let mut page = Sql::from(format!("SELECT {COLUMNS}{columns} FROM {through}{joined}{bodies} WHERE "));
        page.add(&self.range);
        if let Some(Bound { up_to, filter, .. }) = &self.bound {
            page.raw(" AND ").raw(up_to).raw(" AND ").add(filter);
        }
        // One more than the page takes shows where the next one begins.
        page.raw(&format!(" ORDER BY {order} LIMIT {}", rows_of(self.limit, self.bodies) + 1));
        statements.push(page);
        if let Some(Bound { variables, .. }) = &self.bound {
            statements.push(Sql::from(format!("SELECT {variables}")));
        }
        statements
    }
}

fn rows_of(limit: usize, bodies: Bodies) -> usize {
    limit.min(if bodies == Bodies::With { ROWS_WITH_BODIES } else { ROWS })
}

pub(crate) fn scan(tables: &Tables, shard: ShardId, scan: &Scan) -> Vec<Sql> {
    let (at, seq, until) = (scan.from.at.as_millis(), scan.from.seq, scan.until.as_millis());
    let from = match seq {
        0 => format!("r.at>={at}"),
        _ => format!("(r.at>{at} OR (r.at={at} AND r.seq>={seq}))"),
    };
    let bound = |topic| Bound {
        place: "r.at,r.seq",
        variables: "@a,@q",
        end: format!("@a={until},@q=0"),
        row: LOOKED_AT,
        up_to: "(r.at<@a OR (r.at=@a AND r.seq<@q))",
        filter: of_topic(scan.table, topic),
    };
    let walk = Walk {
        range: Sql::from(format!("r.shard={} AND r.tbl={} AND {from} AND r.at<{until}", shard.0, scan.table as u8)),
        order: "r.at,r.seq",
        bound: scan.topic.as_ref().map(bound),
        limit: scan.limit,
        bodies: scan.bodies,
        ..Walk::through_time(tables)
    };
    walk.ask(tables)
}

pub(crate) fn scan_back(tables: &Tables, shard: ShardId, back: &ScanBack) -> Vec<Sql> {
    let (at, seq, from) = (back.before.at.as_millis(), back.before.seq, back.from.as_millis());
    let bound = |topic| Bound {
        place: "r.at,r.seq",
        variables: "@a,@q",
        end: format!("@a={from},@q=0"),
        row: LOOKED_AT - 1,
        up_to: "(r.at>@a OR (r.at=@a AND r.seq>=@q))",
        filter: of_topic(back.table, topic),
    };
    let walk = Walk {
        range: Sql::from(format!(
            "r.shard={} AND r.tbl={} AND (r.at<{at} OR (r.at={at} AND r.seq<{seq})) AND r.at>={from} AND r.at<{}",
            shard.0,
            back.table as u8,
            Timestamp::NEVER.as_millis()
        )),
        order: "r.at DESC,r.seq DESC",
        bound: back.topic.as_ref().map(bound),
        limit: back.limit,
        bodies: back.bodies,
        ..Walk::through_time(tables)
    };
    walk.ask(tables)
}

pub(crate) fn find(tables: &Tables, shard: ShardId, find: &Find) -> Vec<Sql> {
    let bound = Bound {
        place: "m.seq",
        variables: "@q",
        end: format!("@q={}", u64::MAX),
        row: LOOKED_AT,
        up_to: "m.seq<@q",
        filter: Sql::from(format!("r.tbl={}", find.table as u8)),
    };
    let walk = Walk {
        range: of_group(shard, &find.group, format!("m.seq>={}", find.from_seq)),
        order: "m.seq",
        bound: Some(bound),
        limit: find.limit,
        bodies: find.bodies,
        ..Walk::through_group(tables)
    };
    walk.ask(tables)
}

pub(crate) fn find_back(tables: &Tables, shard: ShardId, back: &FindBack) -> Vec<Sql> {
    let bound = Bound {
        place: "m.seq",
        variables: "@q",
        end: "@q=0".to_owned(),
        row: LOOKED_AT - 1,
        up_to: "m.seq>=@q",
        filter: Sql::from(format!("r.tbl={}", back.table as u8)),
    };
    let walk = Walk {
        range: of_group(shard, &back.group, format!("m.seq<{}", back.before_seq)),
        order: "m.seq DESC",
        bound: Some(bound),
        limit: back.limit,
        bodies: back.bodies,
        ..Walk::through_group(tables)
    };
    walk.ask(tables)
}

fn of_topic(table: Table, topic: &Name) -> Sql {
    let prefix = name::topic_prefix(table, topic);
    let mut sql = Sql::from(format!("LEFT(n.name,{})=", prefix.len()));
    sql.bytes(&prefix);
    sql
}

fn of_group(shard: ShardId, group: &Name, numbers: String) -> Sql {
    let mut sql = Sql::from(format!("m.shard={} AND {numbers} AND m.grp=", shard.0));
    sql.bytes(group.as_bytes());
    sql
}

/// What came back for a page.
struct Gone {
    rows: Vec<Row>,
    /// The first row that is not in the page any more.
    left_out: Option<Row>,
    /// How far the server went.
    bound: Vec<u64>,
    /// The rows whose bodies are long.
    long: Vec<(usize, u64)>,
}

impl Gone {
    fn gather(answers: &mut VecDeque<Answer>, limit: usize, bodies: Bodies, bounded: bool) -> Result<Gone, StoreError> {
        if bounded {
            // The variables were set, and set again.
            next(answers)?;
            next(answers)?;
        }
        let mut gone = Gone { rows: Vec::new(), left_out: None, bound: Vec::new(), long: Vec::new() };
        let mut bytes = 0;
        for mut record in next(answers)? {
            let mut row = row(&mut record)?;
            let size = if bodies == Bodies::With { record.number().map_err(damaged)? } else { 0 };
            bytes += size;
            if gone.rows.len() == rows_of(limit, bodies) || (bytes > BYTES && !gone.rows.is_empty()) {
                gone.left_out = Some(row);
                break;
            }
            if size > SHORT {
                gone.long.push((gone.rows.len(), row.seq));
            } else if bodies == Bodies::With {
                row.body = record.bytes().map_err(damaged)?.unwrap_or_default();
            }
            gone.rows.push(row);
        }
        if bounded {
            gone.bound = next(answers)?.first_mut().map(numbers).transpose()?.unwrap_or_default();
        }
        Ok(gone)
    }

    fn last(&self) -> Option<&Row> {
        self.rows.last()
    }
}

fn numbers(record: &mut Record) -> Result<Vec<u64>, StoreError> {
    let mut numbers = Vec::new();
    while !record.is_read() {
        numbers.push(record.number().map_err(damaged)?);
    }
    Ok(numbers)
}

/// The place where the server stopped, unless it came to the end, which is this one.
fn stopped(bound: &[u64], end: Position) -> Option<Position> {
    let [at, seq] = bound else { return None };
    Some(Position { at: instant(*at), seq: *seq }).filter(|place| *place != end)
}

pub(crate) fn scanned(answers: &mut VecDeque<Answer>, scan: &Scan) -> Result<Gathered, StoreError> {
    if scan.limit == 0 {
        return Ok(span(Vec::new(), Some(scan.from), Vec::new()));
    }
    let gone = Gone::gather(answers, scan.limit, scan.bodies, scan.topic.is_some())?;
    let next = match &gone.left_out {
        Some(row) => Some(row.position()),
        None => stopped(&gone.bound, Position::start_of(scan.until)),
    };
    Ok(span(gone.rows, next, gone.long))
}

pub(crate) fn scanned_back(answers: &mut VecDeque<Answer>, back: &ScanBack) -> Result<Gathered, StoreError> {
    if back.limit == 0 {
        return Ok(span(Vec::new(), Some(back.before), Vec::new()));
    }
    let gone = Gone::gather(answers, back.limit, back.bodies, back.topic.is_some())?;
    let next = match gone.left_out {
        Some(_) => gone.last().map(Row::position),
        None => stopped(&gone.bound, Position::start_of(back.from)),
    };
    Ok(span(gone.rows, next, gone.long))
}

pub(crate) fn found(answers: &mut VecDeque<Answer>, find: &Find) -> Result<Gathered, StoreError> {
    if find.limit == 0 {
        return Ok(members(Vec::new(), Some(find.from_seq), Vec::new()));
    }
    let gone = Gone::gather(answers, find.limit, find.bodies, true)?;
    let next = match &gone.left_out {
        Some(row) => Some(row.seq),
        None => gone.bound.first().copied().filter(|seq| *seq != u64::MAX),
    };
    Ok(members(gone.rows, next, gone.long))
}

pub(crate) fn found_back(answers: &mut VecDeque<Answer>, back: &FindBack) -> Result<Gathered, StoreError> {
    if back.limit == 0 {
        return Ok(members(Vec::new(), Some(back.before_seq), Vec::new()));
    }
    let gone = Gone::gather(answers, back.limit, back.bodies, true)?;
    let next = match gone.left_out {
        Some(_) => gone.last().map(|row| row.seq),
        None => gone.bound.first().copied().filter(|seq| *seq != 0),
    };
    Ok(members(gone.rows, next, gone.long))
}

fn span(rows: Vec<Row>, next: Option<Position>, long: Vec<(usize, u64)>) -> Gathered {
    (Found::Span(Page { rows, next }), long)
}

fn members(rows: Vec<Row>, next: Option<u64>, long: Vec<(usize, u64)>) -> Gathered {
    (Found::Members(Page { rows, next }), long)
}
