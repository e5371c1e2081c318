//! Facts about single rows: how they come, change, move and go, and by which reads they are found.

use bytes::Bytes;
use punctual_core::Timestamp;
use punctual_core::store::{Bodies, Change, Find, Key, Position, Row, Scan, ShardId, Table};

use crate::stage::{Outcome, SHARD, Stage, at, insert, members, name, remove, row, same, same_rows, update, whole};

crate::listed![
    an_empty_store_has_nothing,
    a_live_row_is_found_by_key_by_position_and_by_time,
    a_row_stands_in_its_table_and_in_no_other,
    get_finds_a_row_in_whichever_table_has_it,
    get_answers_in_the_order_of_the_keys,
    fetch_answers_in_the_order_of_the_positions,
    fetch_finds_only_live_rows_and_only_at_their_exact_position,
    numbered_answers_in_the_order_of_the_numbers_from_whichever_table,
    a_row_keeps_its_number_wherever_it_goes,
    an_update_changes_time_and_state_and_keeps_the_rest,
    an_update_of_the_state_alone_keeps_the_position,
    the_last_of_many_updates_counts,
    a_row_moves_between_the_tables_with_all_it_has,
    a_removed_row_is_gone_from_every_read,
    a_removed_key_can_be_inserted_again,
    an_insert_replaces_the_row_of_its_key,
    a_replacement_may_have_another_number,
    a_replacement_may_stand_in_another_table,
    settings_and_other_rows_may_share_a_key,
    reads_without_bodies_give_all_but_the_bodies,
];

/// A row with a group, so that it is found in every way.
fn grouped(table: Table, id: &str, seq: u64, millis: u64) -> Row {
    Row { group: Some(name("customer-1")), ..row(table, id, seq, millis) }
}

fn an_empty_store_has_nothing(stage: &mut Stage<'_>) -> Outcome {
    for shard in [SHARD, ShardId(8)] {
        for table in Table::ALL {
            same_rows(format_args!("rows of {table:?}"), &stage.scan_of(shard, &whole(table))?, &[])?;
            same_rows(format_args!("a group in {table:?}"), &stage.find_by(9, shard, &members(table, "none"))?, &[])?;
        }
        same("a get", stage.get_all(shard, &[Key::new("a", "b", "")], Bodies::With)?, vec![None])?;
        same("a fetch", stage.fetch_all(shard, &[Position::START], Bodies::With)?, vec![None])?;
        same("a number", stage.numbered(shard, &[1], Bodies::With)?, vec![None])?;
        same("the tallies", stage.tallies(shard)?, vec![])?;
    }
    Ok(())
}

fn a_live_row_is_found_by_key_by_position_and_by_time(stage: &mut Stage<'_>) -> Outcome {
    let row = grouped(Table::Live, "1", 1, 1_000);
    stage.commit(vec![insert(&row)])?;
    same("get", stage.get(&row.key)?, Some(row.clone()))?;
    same("fetch", stage.fetch(row.position())?, Some(row.clone()))?;
    same_rows("scan", &stage.scan(&whole(Table::Live))?, std::slice::from_ref(&row))?;
    same_rows("find", &stage.find(&members(Table::Live, "customer-1"))?, &[row])
}

fn a_row_stands_in_its_table_and_in_no_other(stage: &mut Stage<'_>) -> Outcome {
    let rows: Vec<Row> = (1..).zip(Table::ALL).map(|(n, table)| grouped(table, &n.to_string(), n, 100 * n)).collect();
    stage.commit(rows.iter().map(insert).collect())?;
    stage.expect_rows(&rows)?;
    for row in &rows {
        let found = stage.find(&members(row.table, "customer-1"))?;
        same_rows(format_args!("the group in {:?}", row.table), &found, std::slice::from_ref(row))?;
    }
    Ok(())
}

fn get_finds_a_row_in_whichever_table_has_it(stage: &mut Stage<'_>) -> Outcome {
    let rows = [row(Table::Live, "a", 1, 5), row(Table::Dead, "b", 2, 5), row(Table::History, "c", 3, 5)];
    stage.commit(rows.iter().map(insert).collect())?;
    for row in rows {
        let table = row.table;
        same(format_args!("get in {table:?}"), stage.get(&row.key)?, Some(row))?;
    }
    Ok(())
}

fn get_answers_in_the_order_of_the_keys(stage: &mut Stage<'_>) -> Outcome {
    let rows = [row(Table::Live, "a", 1, 30), row(Table::Dead, "b", 2, 20), row(Table::Live, "c", 3, 10)];
    stage.commit(rows.iter().map(insert).collect())?;
    let [a, b, c] = rows;
    let none = Key::new("orders", "none", "");
    let keys = [c.key.clone(), none, a.key.clone(), b.key.clone(), a.key.clone()];
    let got = stage.get_all(SHARD, &keys, Bodies::With)?;
    same("get, one key twice and one unknown", got, vec![Some(c), None, Some(a.clone()), Some(b), Some(a)])?;
    same("get of no key", stage.get_all(SHARD, &[], Bodies::With)?, vec![])
}

fn fetch_answers_in_the_order_of_the_positions(stage: &mut Stage<'_>) -> Outcome {
    let rows = [row(Table::Live, "a", 1, 30), row(Table::Live, "b", 2, 20), row(Table::Live, "c", 3, 10)];
    stage.commit(rows.iter().map(insert).collect())?;
    let [a, b, c] = rows;
    let positions = [b.position(), Position { at: at(15), seq: 9 }, c.position(), a.position(), b.position()];
    let got = stage.fetch_all(SHARD, &positions, Bodies::With)?;
    same("fetch, one twice and one unknown", got, vec![Some(b.clone()), None, Some(c), Some(a), Some(b)])?;
    same("fetch of no position", stage.fetch_all(SHARD, &[], Bodies::With)?, vec![])
}

fn fetch_finds_only_live_rows_and_only_at_their_exact_position(stage: &mut Stage<'_>) -> Outcome {
    let (live, dead) = (row(Table::Live, "a", 1, 30), row(Table::Dead, "b", 2, 40));
    let (done, setting) = (row(Table::History, "c", 3, 50), row(Table::Settings, "d", 4, 0));
    stage.commit([&live, &dead, &done, &setting].map(insert).into())?;
    for position in [dead.position(), done.position(), setting.position()] {
        same("fetch of a row that is not live", stage.fetch(position)?, None)?;
    }
    same("fetch at another time", stage.fetch(Position { at: at(31), ..live.position() })?, None)?;
    same("fetch of another number", stage.fetch(Position { seq: 5, ..live.position() })?, None)
}

fn numbered_answers_in_the_order_of_the_numbers_from_whichever_table(stage: &mut Stage<'_>) -> Outcome {
    let rows = [row(Table::Live, "a", 1, 30), row(Table::Dead, "b", 2, 20), row(Table::History, "c", 3, 10)];
    let setting = row(Table::Settings, "d", 4, 0);
    stage.commit(rows.iter().chain([&setting]).map(insert).collect())?;
    let [a, b, c] = rows;
    let got = stage.numbered(SHARD, &[3, 9, 1, 2, 1, 4], Bodies::With)?;
    let expected = vec![Some(c.clone()), None, Some(a.clone()), Some(b.clone()), Some(a.clone()), None];
    same("numbered, one twice, one unknown and one of a setting", got, expected)?;
    same("numbered of no number", stage.numbered(SHARD, &[], Bodies::With)?, vec![])?;
    same("numbered of another shard", stage.numbered(ShardId(SHARD.0 + 1), &[1], Bodies::With)?, vec![None])
}

fn a_row_keeps_its_number_wherever_it_goes(stage: &mut Stage<'_>) -> Outcome {
    let before = grouped(Table::Live, "1", 1, 1_000);
    stage.commit(vec![insert(&before)])?;
    let moved = Row { at: at(500), state: "new".into(), ..before.clone() };
    let dead = Row { table: Table::Dead, at: at(600), ..moved.clone() };
    for (old, new) in [(&before, &moved), (&moved, &dead)] {
        stage.commit(vec![update(old, new)])?;
        let got = stage.numbered(SHARD, &[1], Bodies::With)?;
        same("numbered after a change", got, vec![Some(new.clone())])?;
    }
    let bare = stage.numbered(SHARD, &[1], Bodies::Without)?;
    same("numbered without bodies", bare, vec![Some(dead.clone().without_body())])?;
    stage.commit(vec![Change::Remove { place: dead.place() }])?;
    same("numbered of a removed row", stage.numbered(SHARD, &[1], Bodies::With)?, vec![None])
}

fn an_update_changes_time_and_state_and_keeps_the_rest(stage: &mut Stage<'_>) -> Outcome {
    let before = grouped(Table::Live, "1", 1, 1_000);
    let after = Row { at: at(500), state: "new".into(), ..before.clone() };
    stage.commit(vec![insert(&before)])?;
    stage.commit(vec![update(&before, &after)])?;
    same("get", stage.get(&after.key)?, Some(after.clone()))?;
    same("fetch at the new position", stage.fetch(after.position())?, Some(after.clone()))?;
    same("fetch at the old position", stage.fetch(before.position())?, None)?;
    same_rows("find", &stage.find(&members(Table::Live, "customer-1"))?, std::slice::from_ref(&after))?;
    stage.expect_rows(&[after])
}

fn an_update_of_the_state_alone_keeps_the_position(stage: &mut Stage<'_>) -> Outcome {
    for (n, table) in (1..).zip(Table::ALL) {
        let before = row(table, &n.to_string(), n, 77);
        let after = Row { state: "new".into(), ..before.clone() };
        stage.commit(vec![insert(&before)])?;
        stage.commit(vec![update(&before, &after)])?;
        same_rows(format_args!("scan of {table:?}"), &stage.scan(&whole(table))?, &[after])?;
    }
    Ok(())
}

fn the_last_of_many_updates_counts(stage: &mut Stage<'_>) -> Outcome {
    let mut current = row(Table::Live, "1", 1, 0);
    stage.commit(vec![insert(&current)])?;
    for step in 1..=50_u64 {
        let next = Row { at: at(step * 37 % 11), state: Bytes::from(step.to_string()), ..current.clone() };
        stage.commit(vec![update(&current, &next)])?;
        current = next;
    }
    same("get", stage.get(&current.key)?, Some(current.clone()))?;
    stage.expect_rows(&[current])
}

fn a_row_moves_between_the_tables_with_all_it_has(stage: &mut Stage<'_>) -> Outcome {
    let mut current = grouped(Table::Live, "1", 1, 1_000);
    stage.commit(vec![insert(&current)])?;
    let ways = [Table::Dead, Table::Live, Table::History, Table::Dead, Table::History, Table::Live];
    for (step, table) in (1..).zip(ways) {
        // Every other move keeps the time, so that only the table tells the places apart.
        let next = Row { table, at: at(1_000 + step / 2), state: Bytes::from(step.to_string()), ..current.clone() };
        stage.commit(vec![update(&current, &next)])?;
        current = next;
        same(format_args!("get, moved to {table:?}"), stage.get(&current.key)?, Some(current.clone()))?;
        let live = (table == Table::Live).then(|| current.clone());
        same(format_args!("fetch, moved to {table:?}"), stage.fetch(current.position())?, live)?;
        stage.expect_rows(std::slice::from_ref(&current))?;
    }
    Ok(())
}

fn a_removed_row_is_gone_from_every_read(stage: &mut Stage<'_>) -> Outcome {
    let rows: Vec<Row> = (1..).zip(Table::ALL).map(|(n, table)| grouped(table, &n.to_string(), n, 100)).collect();
    stage.commit(rows.iter().map(insert).collect())?;
    for (index, row) in rows.iter().enumerate() {
        stage.commit(vec![remove(row)])?;
        same("get", stage.get(&row.key)?, None)?;
        same("fetch", stage.fetch(row.position())?, None)?;
        same_rows("find", &stage.find(&members(row.table, "customer-1"))?, &[])?;
        stage.expect_rows(&rows[index + 1..])?;
    }
    Ok(())
}

fn a_removed_key_can_be_inserted_again(stage: &mut Stage<'_>) -> Outcome {
    let (first, second) = (grouped(Table::Live, "1", 1, 1_000), grouped(Table::Live, "1", 2, 1_000));
    stage.commit(vec![insert(&first)])?;
    stage.commit(vec![remove(&first)])?;
    stage.commit(vec![insert(&second)])?;
    same("get", stage.get(&second.key)?, Some(second.clone()))?;
    same("fetch of the first", stage.fetch(first.position())?, None)?;
    stage.expect_rows(&[second])
}

fn an_insert_replaces_the_row_of_its_key(stage: &mut Stage<'_>) -> Outcome {
    for (n, table) in (1..).zip(Table::ALL) {
        let old = Row { group: Some(name("old")), ..row(table, &n.to_string(), n, 0) };
        let new = Row { state: "new".into(), body: "other body".into(), group: Some(name("new")), ..old.clone() };
        stage.commit(vec![insert(&old)])?;
        stage.commit(vec![Change::Insert { row: new.clone(), replaces: Some(old.place()) }])?;
        same_rows(format_args!("scan of {table:?}"), &stage.scan(&whole(table))?, std::slice::from_ref(&new))?;
        same_rows("find in the old group", &stage.find(&members(table, "old"))?, &[])?;
        same_rows("find in the new group", &stage.find(&members(table, "new"))?, &[new])?;
    }
    Ok(())
}

fn a_replacement_may_have_another_number(stage: &mut Stage<'_>) -> Outcome {
    let old = Row { group: Some(name("both")), ..row(Table::Live, "1", 1, 1_000) };
    let new = Row { seq: 9, body: "other".into(), ..old.clone() };
    stage.commit(vec![insert(&old)])?;
    stage.commit(vec![Change::Insert { row: new.clone(), replaces: Some(old.place()) }])?;
    same("fetch at the old position", stage.fetch(old.position())?, None)?;
    same("fetch at the new position", stage.fetch(new.position())?, Some(new.clone()))?;
    same_rows("find in the group", &stage.find(&members(Table::Live, "both"))?, std::slice::from_ref(&new))?;
    stage.expect_rows(&[new])
}

fn a_replacement_may_stand_in_another_table(stage: &mut Stage<'_>) -> Outcome {
    let old = Row { group: Some(name("old")), ..row(Table::History, "1", 1, 1_000) };
    let new = Row { table: Table::Live, at: at(9_000), group: None, body: "other".into(), ..old.clone() };
    stage.commit(vec![insert(&old)])?;
    stage.commit(vec![Change::Insert { row: new.clone(), replaces: Some(old.place()) }])?;
    same("get", stage.get(&new.key)?, Some(new.clone()))?;
    same("fetch", stage.fetch(new.position())?, Some(new.clone()))?;
    same_rows("find in the old group", &stage.find(&members(Table::History, "old"))?, &[])?;
    stage.expect_rows(&[new])
}

fn settings_and_other_rows_may_share_a_key(stage: &mut Stage<'_>) -> Outcome {
    let (live, setting) = (row(Table::Live, "1", 1, 0), row(Table::Settings, "1", 2, 0));
    stage.commit(vec![insert(&setting)])?;
    same("get of a key that only a setting has", stage.get(&setting.key)?, None)?;
    stage.commit(vec![insert(&live)])?;
    same("get of a key that both have", stage.get(&live.key)?, Some(live.clone()))?;
    stage.expect_rows(&[live.clone(), setting.clone()])?;
    let changed = Row { state: "new".into(), ..setting.clone() };
    stage.commit(vec![update(&setting, &changed)])?;
    stage.expect_rows(&[live.clone(), changed.clone()])?;
    stage.commit(vec![remove(&live)])?;
    same("get after the live row went", stage.get(&live.key)?, None)?;
    stage.expect_rows(&[changed])
}

fn reads_without_bodies_give_all_but_the_bodies(stage: &mut Stage<'_>) -> Outcome {
    let row = grouped(Table::Live, "1", 1, 1_000);
    stage.commit(vec![insert(&row)])?;
    let (key, position, bare) = (row.key.clone(), row.position(), row.clone().without_body());
    let bodies = Bodies::Without;
    same("get", stage.get_all(SHARD, &[key], bodies)?, vec![Some(bare.clone())])?;
    same("fetch", stage.fetch_all(SHARD, &[position], bodies)?, vec![Some(bare.clone())])?;
    let scan = Scan { bodies, until: Timestamp::LAST, ..whole(Table::Live) };
    same_rows("scan", &stage.scan(&scan)?, std::slice::from_ref(&bare))?;
    let find = Find { bodies, ..members(Table::Live, "customer-1") };
    same_rows("find", &stage.find(&find)?, &[bare])?;
    same("get with bodies afterwards", stage.get(&row.key)?, Some(row))
}
