//! Facts about pages: each says where the next one begins, and all of them together have every row exactly once, also where
//! thousands of rows of other topics lie between.

use punctual_core::Timestamp;
use punctual_core::store::{Bodies, Find, FindBack, Found, Key, Position, Row, Scan, ScanBack, Table, Want};

use crate::stage::{Outcome, SHARD, Stage, at, holds, insert, members, name, row, same_rows, whole};

crate::listed![
    pages_of_a_table_join_to_the_whole,
    pages_of_a_table_back_join_to_the_whole,
    pages_of_a_group_join_to_the_whole,
    pages_of_a_group_back_join_to_the_whole,
    pages_of_a_rare_topic_join_to_the_whole,
    pages_within_bounds_end_at_the_bounds,
    a_page_for_no_rows_is_not_the_last_if_there_are_some,
];

/// How many rows a page may have.
const SIZES: [usize; 4] = [1, 2, 3, 7];

/// Rows whose order by time, number, key and insertion all differ, some at equal times, of a group in turns.
fn scattered() -> Vec<Row> {
    let of = |n: u64| {
        let (seq, millis) = (1 + n * 17 % 40, n * 11 % 13 * 100);
        Row { group: seq.is_multiple_of(2).then(|| name("g")), ..row(Table::Dead, &n.to_string(), seq, millis) }
    };
    (0..40).map(of).collect()
}

fn in_time(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by_key(Row::position);
    rows
}

fn in_group() -> Vec<Row> {
    let mut rows: Vec<Row> = scattered().into_iter().filter(|row| row.group.is_some()).collect();
    rows.sort_by_key(|row| row.seq);
    rows
}

fn reversed(mut rows: Vec<Row>) -> Vec<Row> {
    rows.reverse();
    rows
}

fn back(table: Table) -> ScanBack {
    let before = Position { at: Timestamp::NEVER, seq: u64::MAX };
    ScanBack { table, before, from: Timestamp::ZERO, topic: None, limit: usize::MAX, bodies: Bodies::With }
}

fn pages_of_a_table_join_to_the_whole(stage: &mut Stage<'_>) -> Outcome {
    stage.commit(scattered().iter().map(insert).collect())?;
    for size in SIZES {
        let joined = stage.scan_by(size, SHARD, &whole(Table::Dead))?;
        same_rows(format_args!("pages of {size}"), &joined, &in_time(scattered()))?;
    }
    Ok(())
}

fn pages_of_a_table_back_join_to_the_whole(stage: &mut Stage<'_>) -> Outcome {
    stage.commit(scattered().iter().map(insert).collect())?;
    for size in SIZES {
        let joined = stage.scan_back_by(size, SHARD, &back(Table::Dead))?;
        same_rows(format_args!("pages of {size}"), &joined, &reversed(in_time(scattered())))?;
    }
    Ok(())
}

fn pages_of_a_group_join_to_the_whole(stage: &mut Stage<'_>) -> Outcome {
    stage.commit(scattered().iter().map(insert).collect())?;
    for size in SIZES {
        let joined = stage.find_by(size, SHARD, &members(Table::Dead, "g"))?;
        same_rows(format_args!("pages of {size}"), &joined, &in_group())?;
    }
    Ok(())
}

fn pages_of_a_group_back_join_to_the_whole(stage: &mut Stage<'_>) -> Outcome {
    stage.commit(scattered().iter().map(insert).collect())?;
    let Find { table, group, limit, bodies, .. } = members(Table::Dead, "g");
    let back = FindBack { table, group, before_seq: u64::MAX, limit, bodies };
    for size in SIZES {
        let joined = stage.find_back_by(size, SHARD, &back)?;
        same_rows(format_args!("pages of {size}"), &joined, &reversed(in_group()))?;
    }
    Ok(())
}

/// How many rows lie between those of the rare topic, more or less; many enough for a store to stop on the way.
const BETWEEN: u64 = 5_000;

/// Rows of a rare topic: at the beginning, some together in the midst, and at the very end.
fn rare() -> Vec<Row> {
    let places = [1, BETWEEN, BETWEEN + 1, BETWEEN + 2, 2 * BETWEEN];
    let rare = |n: u64| Row { key: Key::new("rare", &n.to_string(), ""), ..row(Table::Live, "", n, n) };
    places.map(rare).into()
}

fn pages_of_a_rare_topic_join_to_the_whole(stage: &mut Stage<'_>) -> Outcome {
    let rare = rare();
    let other = |n: u64| row(Table::Live, &n.to_string(), n, n);
    let others = (1..=2 * BETWEEN).filter(|n| rare.iter().all(|row| row.seq != *n)).map(other);
    stage.commit_in_parts(others.chain(rare.clone()).map(|row| insert(&row)).collect())?;
    let topic = Some(name("rare"));
    for size in SIZES {
        let scan = Scan { topic: topic.clone(), ..whole(Table::Live) };
        same_rows(format_args!("pages of {size}"), &stage.scan_by(size, SHARD, &scan)?, &rare)?;
        let back = ScanBack { topic: topic.clone(), ..back(Table::Live) };
        let joined = stage.scan_back_by(size, SHARD, &back)?;
        same_rows(format_args!("pages of {size}, the latest first"), &joined, &reversed(rare.clone()))?;
    }
    let none = Scan { topic: Some(name("rarest")), ..whole(Table::Live) };
    same_rows("pages of a topic that has no rows", &stage.scan_by(7, SHARD, &none)?, &[])
}

fn pages_within_bounds_end_at_the_bounds(stage: &mut Stage<'_>) -> Outcome {
    stage.commit(scattered().iter().map(insert).collect())?;
    let (from, until) = (Position { at: at(300), seq: 9 }, at(900));
    let within = |row: &Row| row.position() >= from && row.at < until;
    let expected: Vec<Row> = in_time(scattered()).into_iter().filter(within).collect();
    let before = |row: &Row| row.position() < from && row.at >= at(100);
    let earlier: Vec<Row> = reversed(in_time(scattered())).into_iter().filter(before).collect();
    for size in SIZES {
        let scan = Scan { from, until, ..whole(Table::Dead) };
        same_rows(format_args!("pages of {size}"), &stage.scan_by(size, SHARD, &scan)?, &expected)?;
        let back = ScanBack { before: from, from: at(100), ..back(Table::Dead) };
        let joined = stage.scan_back_by(size, SHARD, &back)?;
        same_rows(format_args!("pages of {size}, the latest first"), &joined, &earlier)?;
    }
    Ok(())
}

fn a_page_for_no_rows_is_not_the_last_if_there_are_some(stage: &mut Stage<'_>) -> Outcome {
    stage.commit(scattered().iter().map(insert).collect())?;
    let scan = Scan { limit: 0, ..whole(Table::Dead) };
    let back = ScanBack { limit: 0, ..back(Table::Dead) };
    let find = Find { limit: 0, ..members(Table::Dead, "g") };
    let Find { table, group, limit, bodies, .. } = find.clone();
    let find_back = FindBack { table, group, before_seq: u64::MAX, limit, bodies };
    for want in [Want::Scan(&scan), Want::ScanBack(&back), Want::Find(&find), Want::FindBack(&find_back)] {
        let (rows, is_last) = match stage.read(SHARD, want)? {
            Found::Span(page) => (page.rows, page.next.is_none()),
            Found::Members(page) => (page.rows, page.next.is_none()),
            other => return holds(format_args!("{want:?} is answered in kind, not by {other:?}"), false),
        };
        same_rows("a page for no rows", &rows, &[])?;
        holds(format_args!("{want:?} leaves all rows to the next page"), !is_last)?;
    }
    Ok(())
}
