//! Facts about groups: which rows are found together, and in which order.

use punctual_core::Timestamp;
use punctual_core::store::{Find, Row, Table};

use crate::stage::{Outcome, Stage, at, insert, members, name, remove, row, same_rows, update};

crate::listed![
    a_group_is_found_in_the_order_of_the_numbers,
    a_group_is_found_table_by_table,
    a_find_begins_with_its_number_and_gives_at_most_its_limit,
    a_shift_in_time_does_not_change_the_order_of_a_group,
    a_row_takes_its_group_to_another_table,
    a_removed_row_leaves_its_group,
    rows_without_a_group_are_in_none,
    groups_with_similar_names_are_apart,
];

fn member(table: Table, group: &str, seq: u64, millis: u64) -> Row {
    Row { group: Some(name(group)), ..row(table, &format!("task-{seq}"), seq, millis) }
}

/// A group whose order by number differs from that by time, key text and insertion.
fn scattered() -> Vec<Row> {
    let places = [(2, 500), (9, 100), (10, 400), (11, 100), (101, 50), (1_000, 300)];
    places.map(|(seq, millis)| member(Table::Live, "g", seq, millis)).into()
}

fn a_group_is_found_in_the_order_of_the_numbers(stage: &mut Stage<'_>) -> Outcome {
    let rows = scattered();
    stage.commit(rows.iter().rev().map(insert).collect())?;
    same_rows("find", &stage.find(&members(Table::Live, "g"))?, &rows)
}

fn a_group_is_found_table_by_table(stage: &mut Stage<'_>) -> Outcome {
    let of = |n: u64| member(Table::ALL[n as usize % 4], "g", n, 100 - n);
    let rows: Vec<Row> = (1..=12).map(of).collect();
    stage.commit(rows.iter().map(insert).collect())?;
    for table in Table::ALL {
        let expected: Vec<Row> = rows.iter().filter(|row| row.table == table).cloned().collect();
        same_rows(format_args!("find in {table:?}"), &stage.find(&members(table, "g"))?, &expected)?;
    }
    Ok(())
}

fn a_find_begins_with_its_number_and_gives_at_most_its_limit(stage: &mut Stage<'_>) -> Outcome {
    let rows = scattered();
    stage.commit(rows.iter().map(insert).collect())?;
    for from_seq in [0, 2, 3, 9, 10, 12, 1_000, 1_001] {
        for limit in [0, 1, 2, 6, 7, usize::MAX] {
            let begin = rows.partition_point(|row| row.seq < from_seq);
            let expected = &rows[begin..begin + limit.min(rows.len() - begin)];
            let find = Find { from_seq, limit, ..members(Table::Live, "g") };
            same_rows(format_args!("find from {from_seq}, at most {limit}"), &stage.find(&find)?, expected)?;
        }
    }
    Ok(())
}

fn a_shift_in_time_does_not_change_the_order_of_a_group(stage: &mut Stage<'_>) -> Outcome {
    let mut rows = scattered();
    stage.commit(rows.iter().map(insert).collect())?;
    for (index, time) in [(0, Timestamp::NEVER), (3, at(9_999)), (5, at(0))] {
        let shifted = Row { at: time, ..rows[index].clone() };
        stage.commit(vec![update(&rows[index], &shifted)])?;
        rows[index] = shifted;
        same_rows("find", &stage.find(&members(Table::Live, "g"))?, &rows)?;
    }
    Ok(())
}

fn a_row_takes_its_group_to_another_table(stage: &mut Stage<'_>) -> Outcome {
    let mut rows = scattered();
    stage.commit(rows.iter().map(insert).collect())?;
    let live = rows.remove(2);
    let dead = Row { table: Table::Dead, ..live.clone() };
    stage.commit(vec![update(&live, &dead)])?;
    same_rows("find among the live", &stage.find(&members(Table::Live, "g"))?, &rows)?;
    same_rows("find among the dead", &stage.find(&members(Table::Dead, "g"))?, std::slice::from_ref(&dead))?;
    stage.commit(vec![update(&dead, &live)])?;
    rows.insert(2, live);
    same_rows("find among the live again", &stage.find(&members(Table::Live, "g"))?, &rows)?;
    same_rows("find among the dead again", &stage.find(&members(Table::Dead, "g"))?, &[])
}

fn a_removed_row_leaves_its_group(stage: &mut Stage<'_>) -> Outcome {
    let mut rows = scattered();
    stage.commit(rows.iter().map(insert).collect())?;
    while !rows.is_empty() {
        let gone = rows.remove(rows.len() / 2);
        stage.commit(vec![remove(&gone)])?;
        same_rows("find", &stage.find(&members(Table::Live, "g"))?, &rows)?;
    }
    Ok(())
}

fn rows_without_a_group_are_in_none(stage: &mut Stage<'_>) -> Outcome {
    let (with, without) = (member(Table::Live, "g", 1, 10), row(Table::Live, "2", 2, 10));
    stage.commit(vec![insert(&with), insert(&without)])?;
    for text in ["null", "NULL", "None", "0"] {
        same_rows(format_args!("find in {text}"), &stage.find(&members(Table::Live, text))?, &[])?;
    }
    same_rows("find in g", &stage.find(&members(Table::Live, "g"))?, &[with])
}

fn groups_with_similar_names_are_apart(stage: &mut Stage<'_>) -> Outcome {
    let groups = ["g", "gg", "g1", "g:1", "g%", "g_", "G", "*", "g*"];
    let rows: Vec<Row> = (1..).zip(groups).map(|(n, group)| member(Table::Live, group, n, 10)).collect();
    stage.commit(rows.iter().map(insert).collect())?;
    for (row, group) in rows.iter().zip(groups) {
        let found = stage.find(&members(Table::Live, group))?;
        same_rows(format_args!("find in {group}"), &found, std::slice::from_ref(row))?;
    }
    Ok(())
}
