//! Facts about reading against the order: the latest rows first, and the greatest numbers of a group first.

use punctual_core::Timestamp;
use punctual_core::store::{Bodies, FindBack, Key, Position, Row, ScanBack, Table};

use crate::stage::{Outcome, Stage, at, insert, name, remove, row, same_rows, update};

crate::listed![
    a_scan_back_gives_the_latest_rows_first,
    a_scan_back_begins_before_its_position_and_ends_with_its_time,
    a_scan_back_gives_at_most_its_limit,
    a_scan_back_of_a_topic_gives_its_rows_only,
    a_scan_back_leaves_out_rows_without_a_time,
    a_scan_back_sees_what_moved_and_not_what_is_gone,
    a_find_back_gives_the_greatest_numbers_first,
];

/// All of a table, the latest first.
fn latest(table: Table) -> ScanBack {
    let (before, from) = (Position { at: Timestamp::NEVER, seq: u64::MAX }, Timestamp::ZERO);
    ScanBack { table, before, from, topic: None, limit: 100_000, bodies: Bodies::With }
}

/// All of a group, the greatest number first.
fn last_members(table: Table, group: &str) -> FindBack {
    FindBack { table, group: name(group), before_seq: u64::MAX, limit: 100_000, bodies: Bodies::With }
}

/// Rows whose order by time, number and key all differ, the latest first.
fn backwards() -> Vec<Row> {
    let places = [(100, 3), (9, 12), (1_000, 1), (9, 2), (10, 5), (9, 101), (100, 20), (0, 7), (1_000, 4), (99, 6)];
    let mut rows = places.map(|(millis, seq)| row(Table::History, &(1_000 - seq).to_string(), seq, millis)).to_vec();
    rows.sort_by_key(|row| std::cmp::Reverse(row.position()));
    rows
}

fn a_scan_back_gives_the_latest_rows_first(stage: &mut Stage<'_>) -> Outcome {
    let rows = backwards();
    stage.commit(rows.iter().map(insert).collect())?;
    same_rows("scan back", &stage.scan_back(&latest(Table::History))?, &rows)?;
    same_rows("scan back of another table", &stage.scan_back(&latest(Table::Dead))?, &[])
}

fn a_scan_back_begins_before_its_position_and_ends_with_its_time(stage: &mut Stage<'_>) -> Outcome {
    let rows = backwards();
    stage.commit(rows.iter().map(insert).collect())?;
    for (index, row) in rows.iter().enumerate() {
        let before = |before| ScanBack { before, ..latest(Table::History) };
        let place = row.position();
        same_rows(format_args!("before {place:?}"), &stage.scan_back(&before(place))?, &rows[index + 1..])?;
        same_rows(format_args!("up to {place:?}"), &stage.scan_back(&before(place.next()))?, &rows[index..])?;
        let from = ScanBack { from: row.at, ..latest(Table::History) };
        let end = rows.partition_point(|other| other.at >= row.at);
        same_rows(format_args!("from {}", row.at), &stage.scan_back(&from)?, &rows[..end])?;
    }
    let both = ScanBack { before: Position::start_of(at(100)), from: at(10), ..latest(Table::History) };
    same_rows("scan back with both bounds", &stage.scan_back(&both)?, &rows[4..6])?;
    let none = ScanBack { before: Position::start_of(at(10)), from: at(10), ..latest(Table::History) };
    same_rows("scan back that ends where it begins", &stage.scan_back(&none)?, &[])
}

fn a_scan_back_gives_at_most_its_limit(stage: &mut Stage<'_>) -> Outcome {
    let rows = backwards();
    stage.commit(rows.iter().map(insert).collect())?;
    for limit in [0, 1, 3, rows.len(), rows.len() + 1, usize::MAX] {
        let back = ScanBack { limit, bodies: Bodies::Without, ..latest(Table::History) };
        let expected: Vec<Row> = rows.iter().take(limit).cloned().map(Row::without_body).collect();
        same_rows(format_args!("scan back of at most {limit}"), &stage.scan_back(&back)?, &expected)?;
    }
    Ok(())
}

fn a_scan_back_of_a_topic_gives_its_rows_only(stage: &mut Stage<'_>) -> Outcome {
    let topics = ["order", "orders", "o%"];
    let of = |n: u64| Key::new(topics[n as usize % 3], &n.to_string(), "");
    let rows: Vec<Row> =
        (1..=12).rev().map(|n| Row { key: of(n), ..row(Table::Dead, &n.to_string(), n, n / 4) }).collect();
    stage.commit(rows.iter().map(insert).collect())?;
    for topic in ["order", "orders", "o%", "Orders"] {
        let expected: Vec<Row> = rows.iter().filter(|row| row.key.topic() == topic).cloned().collect();
        let back = ScanBack { topic: Some(name(topic)), ..latest(Table::Dead) };
        same_rows(format_args!("scan back of {topic}"), &stage.scan_back(&back)?, &expected)?;
        let back = ScanBack { limit: 2, ..back };
        let first = &expected[..expected.len().min(2)];
        same_rows(format_args!("the latest two of {topic}"), &stage.scan_back(&back)?, first)?;
    }
    Ok(())
}

fn a_scan_back_leaves_out_rows_without_a_time(stage: &mut Stage<'_>) -> Outcome {
    let timed = row(Table::Live, "timed", 1, 5);
    let last = Row { at: Timestamp::LAST, ..row(Table::Live, "last", 2, 0) };
    let never = Row { at: Timestamp::NEVER, group: Some(name("g")), ..row(Table::Live, "never", 3, 0) };
    stage.commit([&timed, &last, &never].map(insert).into())?;
    same_rows("scan back", &stage.scan_back(&latest(Table::Live))?, &[last, timed])
}

fn a_scan_back_sees_what_moved_and_not_what_is_gone(stage: &mut Stage<'_>) -> Outcome {
    let rows = backwards();
    stage.commit(rows.iter().map(insert).collect())?;
    let moved = Row { at: at(5_000), ..rows[6].clone() };
    stage.commit(vec![update(&rows[6], &moved), remove(&rows[0]), remove(&rows[9])])?;
    let mut expected = vec![moved];
    expected.extend((1..9).filter(|index| *index != 6).map(|index| rows[index].clone()));
    same_rows("scan back", &stage.scan_back(&latest(Table::History))?, &expected)
}

/// A group whose order by number differs from that by time, the greatest number first.
fn group() -> Vec<Row> {
    let places = [(1_000, 300), (101, 50), (11, 100), (10, 400), (9, 100), (2, 500)];
    let member =
        |(seq, millis)| Row { group: Some(name("g")), ..row(Table::History, &format!("task-{seq}"), seq, millis) };
    places.map(member).into()
}

fn a_find_back_gives_the_greatest_numbers_first(stage: &mut Stage<'_>) -> Outcome {
    let rows = group();
    stage.commit(rows.iter().map(insert).collect())?;
    for before_seq in [0, 2, 3, 10, 11, 12, 1_000, 1_001, u64::MAX] {
        for limit in [0, 1, 2, 6, 7, usize::MAX] {
            let fitting: Vec<Row> = rows.iter().filter(|row| row.seq < before_seq).take(limit).cloned().collect();
            let back = FindBack { before_seq, limit, ..last_members(Table::History, "g") };
            same_rows(format_args!("find before {before_seq}, at most {limit}"), &stage.find_back(&back)?, &fitting)?;
        }
    }
    same_rows("find back of another table", &stage.find_back(&last_members(Table::Live, "g"))?, &[])?;
    same_rows("find back of another group", &stage.find_back(&last_members(Table::History, "G"))?, &[])
}
