//! A batch as statements. Each that has to find its rows is followed by a guard, which fails if it did not find them all:
//! the server does not go on after a failure, and the transaction is rolled back.

use punctual_core::Timestamp;
use punctual_core::store::{Batch, Change, Place, Row, Table};

use crate::name;
use crate::read::written;
use crate::server::Product;
use crate::sql::{Sql, Tables};

/// A statement of a commit, and what it says if it fails.
pub(crate) struct Statement {
    pub(crate) sql: Sql,
    pub(crate) part: Part,
}

/// What a statement is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// To see that the batch with this index comes from the shard's owner and is the next one.
    Turn(usize),
    /// To change rows of the batch with this index.
    Rows(usize),
    /// To begin or to end.
    Frame,
}

/// Longer lists make the server look for other ways than the index.
const LISTED: usize = 500;

/// How statements are written for a server.
pub(crate) struct Writer<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) product: Product,
    /// A statement that has become longer than this takes no more rows.
    pub(crate) chunk: usize,
}

/// The rows of a batch by what happens to them, each in the order of the numbers, which is that of the server's pages.
#[derive(Default)]
struct Sorted<'a> {
    removed: Vec<&'a Place>,
    inserted: Vec<&'a Row>,
    updated: Vec<Updated<'a>>,
}

struct Updated<'a> {
    place: &'a Place,
    table: Table,
    at: Timestamp,
    state: &'a [u8],
}

impl Writer<'_> {
    pub(crate) fn batch(&self, index: usize, batch: &Batch) -> Vec<Statement> {
        let mut statements: Vec<Statement> = Vec::new();
        let mut add = |sql: Sql, part| statements.push(Statement { sql, part });
        if batch.is_empty() {
            add(self.only_ask(batch), Part::Turn(index));
            return statements;
        }
        add(self.advance(batch), Part::Turn(index));
        add(guard(1), Part::Turn(index));
        let sorted = Sorted::of(&batch.changes);
        let rows = Part::Rows(index);
        for places in sorted.removed.chunks(LISTED) {
            self.remove(batch, places).into_iter().for_each(|sql| add(sql, rows));
        }
        self.insert(batch, &sorted.inserted).into_iter().for_each(|sql| add(sql, rows));
        self.update(batch, &sorted.updated).into_iter().for_each(|sql| add(sql, rows));
        if !batch.tallies.is_empty() {
            add(self.count(batch), rows);
        }
        statements
    }

    fn only_ask(&self, batch: &Batch) -> Sql {
        let Batch { shard, fence, serial, .. } = batch;
        Sql::from(format!(
            "{GUARD}((SELECT COUNT(*) FROM {} WHERE shard={} AND fence={} AND serial>={serial})<>1)",
            self.tables.shards, shard.0, fence.0
        ))
    }

    fn advance(&self, batch: &Batch) -> Sql {
        let Batch { shard, fence, serial, .. } = batch;
        Sql::from(format!(
            "UPDATE {} SET serial={serial} WHERE shard={} AND fence={} AND serial={}",
            self.tables.shards,
            shard.0,
            fence.0,
            serial.wrapping_sub(1)
        ))
    }

    fn remove(&self, batch: &Batch, places: &[&Place]) -> Vec<Sql> {
        let (Tables { rows, names, members, .. }, shard) = (self.tables, batch.shard.0);
        let mut numbers = Sql::default();
        numbers.list(places, |sql, place| sql.number(place.position.seq));
        let mut from_rows = Sql::from(format!("DELETE FROM {rows} WHERE shard={shard} AND seq IN ("));
        from_rows.add(&numbers).raw(") AND (seq,tbl,at) IN (");
        from_rows.list(places, |sql, place| {
            let (number, table, at) = (place.position.seq, place.table as u64, place.position.at.as_millis());
            sql.raw("(").number(number).raw(",").number(table).raw(",").number(at).raw(")")
        });
        from_rows.raw(")");
        let mut from_names = Sql::from(format!("DELETE FROM {names} WHERE shard={shard} AND seq IN ("));
        from_names.add(&numbers).raw(")");
        let mut statements = vec![from_rows, guard(places.len()), from_names, guard(places.len())];
        let grouped = || places.iter().filter_map(|place| Some((place.group.as_ref()?, place.position.seq)));
        if grouped().next().is_some() {
            let mut from_members = Sql::from(format!("DELETE FROM {members} WHERE (shard,grp,seq) IN ("));
            from_members.list(grouped(), |sql, (group, number)| {
                sql.raw("(").number(shard.into()).raw(",").bytes(group.as_bytes()).raw(",").number(number).raw(")")
            });
            from_members.raw(")");
            statements.extend([from_members, guard(grouped().count())]);
        }
        statements
    }

    fn insert(&self, batch: &Batch, rows: &[&Row]) -> Vec<Sql> {
        let (Tables { names, rows: table, members, .. }, shard) = (self.tables, u64::from(batch.shard.0));
        let begin = format!("INSERT INTO {names} (shard,seq,size,name,grp,body) VALUES ");
        let into_names = self.values(&begin, "", rows, |sql, row| {
            sql.number(shard).raw(",").number(row.seq).raw(",").number(row.body.len() as u64).raw(",");
            sql.bytes(&name::encode(row.table, &row.key)).raw(",");
            sql.bytes_or_null(row.group.as_ref().map(|group| group.as_bytes())).raw(",").bytes(&row.body);
        });
        let begin = format!("INSERT INTO {table} {ROW} VALUES ");
        let into_rows = self.values(&begin, "", rows, |sql, row| {
            sql.number(shard).raw(",").number(row.seq).raw(",").number(row.table as u64).raw(",");
            sql.number(row.at.as_millis()).raw(",").number(batch.serial).raw(",").bytes(&row.state);
        });
        let grouped: Vec<_> = rows.iter().filter_map(|row| Some((row.group.as_ref()?, row.seq))).collect();
        let begin = format!("INSERT INTO {members} (shard,grp,seq) VALUES ");
        let into_members = self.values(&begin, "", &grouped, |sql, (group, number)| {
            sql.number(shard).raw(",").bytes(group.as_bytes()).raw(",").number(*number);
        });
        into_names.into_iter().chain(into_rows).chain(into_members).map(|(sql, _)| sql).collect()
    }

    /// Inserting what is there already is the cheapest way for the server to change many rows. In place of its serial
    /// each new row has the place where the old one should be: a row elsewhere gets no time, which fails. One that is
    /// changed counts twice and one that was not there once, which the guard sees: every change changes the serial.
    fn update(&self, batch: &Batch, updated: &[Updated<'_>]) -> Vec<Sql> {
        let (rows, shard, serial) = (&self.tables.rows, u64::from(batch.shard.0), batch.serial);
        let (alias, new): (&str, fn(&str) -> String) = match self.product {
            Product::MariaDb => ("", |column| format!("VALUES({column})")),
            Product::MySql => (" AS new", |column| format!("new.{column}")),
        };
        let end = format!(
            "{alias} ON DUPLICATE KEY UPDATE at=IF({rows}.at*8+{rows}.tbl={},{},NULL),tbl={},state={},serial={serial}",
            new("serial"),
            new("at"),
            new("tbl"),
            new("state")
        );
        let begin = format!("INSERT INTO {rows} {ROW} VALUES ");
        let statements = self.values(&begin, &end, updated, |sql, Updated { place, table, at, state }| {
            let old = place.position.at.as_millis() * 8 + place.table as u64;
            sql.number(shard).raw(",").number(place.position.seq).raw(",").number(*table as u64).raw(",");
            sql.number(at.as_millis()).raw(",").number(old).raw(",").bytes(state);
        });
        statements.into_iter().flat_map(|(sql, count)| [sql, guard(2 * count)]).collect()
    }

    fn count(&self, batch: &Batch) -> Sql {
        let mut sql = Sql::from(format!("INSERT INTO {} (shard,serial,counts) VALUES (", self.tables.deltas));
        sql.number(batch.shard.0.into())
            .raw(",")
            .number(batch.serial)
            .raw(",")
            .bytes(&written(&batch.tallies))
            .raw(")");
        sql
    }

    /// A statement with many rows, or several if it would become too long; each with its number of rows.
    fn values<T>(&self, begin: &str, end: &str, items: &[T], add: impl Fn(&mut Sql, &T)) -> Vec<(Sql, usize)> {
        let mut statements: Vec<(Sql, usize)> = Vec::new();
        for item in items {
            match statements.last_mut().filter(|(sql, _)| sql.len() < self.chunk) {
                Some((sql, count)) => {
                    sql.raw(",(");
                    *count += 1;
                }
                None => statements.push((Sql::from(format!("{begin}(")), 1)),
            }
            if let Some((sql, _)) = statements.last_mut() {
                add(sql, item);
                sql.raw(")");
            }
        }
        for (sql, _) in &mut statements {
            sql.raw(end);
        }
        statements
    }
}

/// The columns of a changing row.
const ROW: &str = "(shard,seq,tbl,at,serial,state)";

/// Fails if one is added, since there is no greater number. It is not a DO, of which MariaDB forgives every failure.
const GUARD: &str = "SET @g=18446744073709551615+";

/// Fails if the statement before it has not affected so many rows.
fn guard(rows: usize) -> Sql {
    Sql::from(format!("{GUARD}(ROW_COUNT()<>{rows})"))
}

impl<'a> Sorted<'a> {
    fn of(changes: &'a [Change]) -> Sorted<'a> {
        let mut sorted = Sorted::default();
        for change in changes {
            match change {
                Change::Insert { row, replaces } => {
                    sorted.removed.extend(replaces);
                    sorted.inserted.push(row);
                }
                Change::Update { place, table, at, state } => {
                    sorted.updated.push(Updated { place, table: *table, at: *at, state });
                }
                Change::Remove { place } => sorted.removed.push(place),
            }
        }
        sorted.removed.sort_unstable_by_key(|place| place.position.seq);
        sorted.inserted.sort_unstable_by_key(|row| row.seq);
        sorted.updated.sort_unstable_by_key(|updated| updated.place.position.seq);
        sorted
    }
}
