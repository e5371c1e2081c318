//! Facts about time order: scans, their cursors and bounds, and rows at the ends of time.

use bytes::Bytes;
use punctual_core::Timestamp;
use punctual_core::store::{Key, Position, Row, Scan, Table};

use crate::stage::{Outcome, Stage, at, insert, members, name, row, same, same_rows, update, whole};

crate::listed![
    a_scan_is_ordered_by_time_and_then_by_number,
    a_scan_begins_with_its_position,
    a_scan_stops_before_its_end,
    a_scan_that_ends_before_it_begins_is_empty,
    a_scan_gives_at_most_its_limit,
    a_scan_of_a_topic_gives_its_rows_only,
    the_limit_of_a_scan_counts_only_rows_of_its_topic,
    an_updated_row_is_scanned_at_its_new_time_only,
    rows_without_a_time_are_left_out_of_scans_only,
    times_are_kept_exactly_up_to_the_last,
    numbers_are_kept_exactly_up_to_2_to_the_63rd,
];

/// Rows whose order by time, number, key and insertion all differ, and in which text order
/// and number order differ too.
fn shuffled() -> Vec<Row> {
    let places = [(100, 3), (9, 12), (1_000, 1), (9, 2), (10, 5), (9, 101), (100, 20), (0, 7), (1_000, 4), (99, 6)];
    places.map(|(millis, seq)| row(Table::Live, &(1_000 - seq).to_string(), seq, millis)).into()
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by_key(Row::position);
    rows
}

fn a_scan_is_ordered_by_time_and_then_by_number(stage: &mut Stage<'_>) -> Outcome {
    let rows = shuffled();
    stage.commit(rows.iter().map(insert).collect())?;
    same_rows("scan", &stage.scan(&whole(Table::Live))?, &sorted(rows))
}

fn a_scan_begins_with_its_position(stage: &mut Stage<'_>) -> Outcome {
    let rows = sorted(shuffled());
    stage.commit(rows.iter().map(insert).collect())?;
    for (index, row) in rows.iter().enumerate() {
        let scan = |from| Scan { from, ..whole(Table::Live) };
        let place = row.position();
        same_rows(format_args!("scan from {place:?}"), &stage.scan(&scan(place))?, &rows[index..])?;
        same_rows(format_args!("scan after {place:?}"), &stage.scan(&scan(place.next()))?, &rows[index + 1..])?;
    }
    let between = Scan { from: Position::start_of(at(11)), ..whole(Table::Live) };
    same_rows("scan from where no row is", &stage.scan(&between)?, &rows[5..])
}

fn a_scan_stops_before_its_end(stage: &mut Stage<'_>) -> Outcome {
    let rows = sorted(shuffled());
    stage.commit(rows.iter().map(insert).collect())?;
    for millis in [0, 1, 9, 10, 99, 100, 1_000, 1_001] {
        let scan = Scan { until: at(millis), ..whole(Table::Live) };
        let earlier = rows.partition_point(|row| row.at < at(millis));
        same_rows(format_args!("scan until {millis} ms"), &stage.scan(&scan)?, &rows[..earlier])?;
    }
    let scan = Scan { from: rows[2].position(), until: at(100), ..whole(Table::Live) };
    same_rows("scan with both bounds", &stage.scan(&scan)?, &rows[2..6])
}

fn a_scan_that_ends_before_it_begins_is_empty(stage: &mut Stage<'_>) -> Outcome {
    stage.commit(shuffled().iter().map(insert).collect())?;
    for (from, until) in [(at(100), at(99)), (at(9), at(9)), (Timestamp::NEVER, Timestamp::NEVER)] {
        let scan = Scan { from: Position { at: from, seq: 2 }, until, ..whole(Table::Live) };
        same_rows(format_args!("scan from {from} until {until}"), &stage.scan(&scan)?, &[])?;
    }
    Ok(())
}

fn a_scan_gives_at_most_its_limit(stage: &mut Stage<'_>) -> Outcome {
    let rows = sorted(shuffled());
    stage.commit(rows.iter().map(insert).collect())?;
    for limit in [0, 1, 3, rows.len(), rows.len() + 1, usize::MAX] {
        let scan = Scan { limit, ..whole(Table::Live) };
        let expected = &rows[..limit.min(rows.len())];
        same_rows(format_args!("scan of at most {limit}"), &stage.scan(&scan)?, expected)?;
    }
    Ok(())
}

/// Rows of three topics in turns, whose names tempt a pattern search.
fn of_topics() -> Vec<Row> {
    let topics = ["order", "orders", "o%"];
    let of = |n: u64| Key::new(topics[n as usize % 3], &n.to_string(), "");
    (1..=12).map(|n| Row { key: of(n), ..row(Table::Dead, &n.to_string(), n, n / 4) }).collect()
}

fn of_topic(topic: &str) -> Vec<Row> {
    of_topics().into_iter().filter(|row| row.key.topic() == topic).collect()
}

fn a_scan_of_a_topic_gives_its_rows_only(stage: &mut Stage<'_>) -> Outcome {
    stage.commit(of_topics().iter().map(insert).collect())?;
    for topic in ["order", "orders", "o%", "Orders", "other"] {
        let scan = Scan { topic: Some(name(topic)), ..whole(Table::Dead) };
        same_rows(format_args!("scan of topic {topic}"), &stage.scan(&scan)?, &of_topic(topic))?;
    }
    Ok(())
}

fn the_limit_of_a_scan_counts_only_rows_of_its_topic(stage: &mut Stage<'_>) -> Outcome {
    stage.commit(of_topics().iter().map(insert).collect())?;
    let expected = of_topic("orders");
    let scan = Scan { topic: Some(name("orders")), limit: 2, ..whole(Table::Dead) };
    same_rows("the first page", &stage.scan(&scan)?, &expected[..2])?;
    let scan = Scan { from: expected[1].position().next(), ..scan };
    same_rows("the second page", &stage.scan(&scan)?, &expected[2..4])
}

fn an_updated_row_is_scanned_at_its_new_time_only(stage: &mut Stage<'_>) -> Outcome {
    let mut rows = shuffled();
    stage.commit(rows.iter().map(insert).collect())?;
    for (index, millis) in [(0, 5), (7, 2_000), (2, 9), (0, 100)] {
        let moved = Row { at: at(millis), state: Bytes::from_static(b"moved"), ..rows[index].clone() };
        stage.commit(vec![update(&rows[index], &moved)])?;
        rows[index] = moved;
        same_rows("scan", &stage.scan(&whole(Table::Live))?, &sorted(rows.clone()))?;
    }
    Ok(())
}

fn rows_without_a_time_are_left_out_of_scans_only(stage: &mut Stage<'_>) -> Outcome {
    let never = Row { at: Timestamp::NEVER, group: Some(name("g")), ..row(Table::Live, "1", 1, 0) };
    let last = Row { at: Timestamp::LAST, ..row(Table::Live, "2", 2, 0) };
    stage.commit(vec![insert(&never), insert(&last)])?;
    same_rows("scan", &stage.scan(&whole(Table::Live))?, std::slice::from_ref(&last))?;
    same("get", stage.get(&never.key)?, Some(never.clone()))?;
    same("fetch", stage.fetch(never.position())?, Some(never.clone()))?;
    same_rows("find", &stage.find(&members(Table::Live, "g"))?, std::slice::from_ref(&never))?;
    let timed = Row { at: at(5), ..never.clone() };
    stage.commit(vec![update(&never, &timed)])?;
    same_rows("scan, with a time again", &stage.scan(&whole(Table::Live))?, &[timed.clone(), last.clone()])?;
    stage.commit(vec![update(&timed, &never)])?;
    same_rows("scan, without a time again", &stage.scan(&whole(Table::Live))?, &[last])
}

fn times_are_kept_exactly_up_to_the_last(stage: &mut Stage<'_>) -> Outcome {
    let last = Timestamp::LAST.as_millis();
    let times = [0, 1, u64::from(u32::MAX), u64::from(u32::MAX) + 1, 1 << 52, last - 1, last];
    let rows: Vec<Row> = (1..).zip(times).map(|(n, millis)| row(Table::History, &n.to_string(), n, millis)).collect();
    stage.commit(rows.iter().rev().map(insert).collect())?;
    same_rows("scan", &stage.scan(&whole(Table::History))?, &rows)?;
    let scan = Scan { from: Position::start_of(at(last)), ..whole(Table::History) };
    same_rows("scan of the last instant", &stage.scan(&scan)?, &rows[6..])?;
    let scan = Scan { from: Position::start_of(at(last - 1)), until: at(last), ..scan };
    same_rows("scan of the last instant but one", &stage.scan(&scan)?, &rows[5..6])
}

fn numbers_are_kept_exactly_up_to_2_to_the_63rd(stage: &mut Stage<'_>) -> Outcome {
    let numbers = [1, 255, 256, 1 << 32, 1 << 53, (1 << 53) + 1, (1 << 53) + 2, (1 << 63) - 2, (1 << 63) - 1];
    let rows = numbers.map(|seq| Row { group: Some(name("g")), ..row(Table::Live, &seq.to_string(), seq, 500) });
    stage.commit(rows.iter().rev().map(insert).collect())?;
    same_rows("scan", &stage.scan(&whole(Table::Live))?, &rows)?;
    same_rows("find", &stage.find(&members(Table::Live, "g"))?, &rows)?;
    for row in rows {
        same("fetch", stage.fetch(row.position())?, Some(row))?;
    }
    Ok(())
}
