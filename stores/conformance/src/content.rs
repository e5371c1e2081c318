//! Facts about what rows may contain: any name, any bytes. A store must not fold, trim, escape or
//! reinterpret any of it; databases like to.

use bytes::Bytes;
use punctual_core::Name;
use punctual_core::store::{Key, Row, Scan, Table, Tally, TallyKind};

use crate::stage::{Outcome, SHARD, Stage, at, insert, members, name, remove, row, same, same_rows, update, whole};

crate::listed![
    names_of_any_visible_text_are_kept,
    names_that_look_alike_are_different_keys,
    names_that_look_alike_are_different_topics,
    names_that_look_alike_are_different_groups,
    names_that_look_alike_are_different_tallies,
    keys_that_share_their_text_are_different,
    the_parts_of_a_key_may_be_empty,
    the_longest_names_are_kept,
    bodies_of_any_bytes_are_kept,
    a_body_of_a_mebibyte_is_kept_through_a_life,
    states_of_any_bytes_are_kept,
];

/// Names that mean something to some language, protocol or file system.
const ODD: [&str; 20] = [
    "'",
    "\"",
    "`",
    "\\",
    "\\'",
    "'; DROP TABLE rows; --",
    "%",
    "_",
    "{tag}",
    "{}",
    "$1",
    ":name",
    "?",
    "*",
    "../..",
    "\\x00",
    "&amp;",
    "注文",
    "🕰️",
    "a\u{301}",
];

/// Names that some comparison takes for equal: by case, accent, width, ligature, composition,
/// ignorable characters, numeric value or script.
pub(crate) const ALIKE: [&str; 30] = [
    "a",
    "A",
    "á",
    "a\u{301}",
    "à",
    "ａ",
    "ª",
    "a\u{fe0f}",
    "ss",
    "ß",
    "SS",
    "ſs",
    "1",
    "１",
    "①",
    "01",
    "1.0",
    "か",
    "が",
    "カ",
    "i",
    "I",
    "ı",
    "İ",
    "æ",
    "ae",
    "k",
    "\u{212a}",
    "-",
    "‐",
];

fn odd_names() -> impl Iterator<Item = Name> {
    // White space is not visible, so it is not in names; the rest of the temptations is.
    ODD.iter().map(|text| name(&text.replace(' ', "/")))
}

fn names_of_any_visible_text_are_kept(stage: &mut Stage<'_>) -> Outcome {
    let row = |(seq, odd): (u64, Name)| {
        let key = Key::new(&odd, &odd, &odd);
        Row { key, group: Some(odd), ..row(Table::Live, "", seq, 10) }
    };
    let rows: Vec<Row> = (1..).zip(odd_names()).map(row).collect();
    stage.commit(rows.iter().map(insert).collect())?;
    stage.expect_rows(&rows)?;
    for (row, odd) in rows.iter().zip(odd_names()) {
        same(format_args!("get of {odd}"), stage.get(&row.key)?, Some(row.clone()))?;
        let found = stage.find(&members(Table::Live, &odd))?;
        same_rows(format_args!("find in group {odd}"), &found, std::slice::from_ref(row))?;
        let scan = Scan { topic: Some(odd.clone()), ..whole(Table::Live) };
        same_rows(format_args!("scan of topic {odd}"), &stage.scan(&scan)?, std::slice::from_ref(row))?;
    }
    stage.commit(rows.iter().map(remove).collect())?;
    stage.expect_rows(&[])
}

fn names_that_look_alike_are_different_keys(stage: &mut Stage<'_>) -> Outcome {
    type Part = fn(&str) -> Key;
    let parts: [Part; 3] =
        [|text| Key::new(text, "x", "x"), |text| Key::new("x", text, "x"), |text| Key::new("x", "x", text)];
    for (n, part) in (0..).zip(parts) {
        let of = |(m, text): (u64, &&str)| Row { key: part(text), ..row(Table::Live, text, 100 * n + m, 10) };
        let rows: Vec<Row> = (1..).zip(&ALIKE).map(of).collect();
        stage.commit(rows.iter().map(insert).collect())?;
        for row in &rows {
            same(format_args!("get of {:?}", row.key), stage.get(&row.key)?, Some(row.clone()))?;
        }
        let (gone, kept) = rows.split_at(rows.len() / 2);
        stage.commit(gone.iter().map(remove).collect())?;
        stage.expect_rows(kept)?;
        stage.commit(kept.iter().map(remove).collect())?;
    }
    Ok(())
}

fn names_that_look_alike_are_different_topics(stage: &mut Stage<'_>) -> Outcome {
    let of = |(seq, text): (u64, &&str)| Row { key: Key::new(text, "1", ""), ..row(Table::History, text, seq, 10) };
    let rows: Vec<Row> = (1..).zip(&ALIKE).map(of).collect();
    stage.commit(rows.iter().map(insert).collect())?;
    for (row, text) in rows.iter().zip(ALIKE) {
        let scan = Scan { topic: Some(name(text)), ..whole(Table::History) };
        same_rows(format_args!("scan of topic {text:?}"), &stage.scan(&scan)?, std::slice::from_ref(row))?;
    }
    Ok(())
}

fn names_that_look_alike_are_different_groups(stage: &mut Stage<'_>) -> Outcome {
    let of = |(seq, text): (u64, &&str)| Row { group: Some(name(text)), ..row(Table::Live, text, seq, 10) };
    let rows: Vec<Row> = (1..).zip(&ALIKE).map(of).collect();
    stage.commit(rows.iter().map(insert).collect())?;
    for (row, text) in rows.iter().zip(ALIKE) {
        let found = stage.find(&members(Table::Live, text))?;
        same_rows(format_args!("find in group {text:?}"), &found, std::slice::from_ref(row))?;
    }
    Ok(())
}

fn names_that_look_alike_are_different_tallies(stage: &mut Stage<'_>) -> Outcome {
    let names = ALIKE.iter().map(|text| name(text)).chain(odd_names());
    let of = |(count, name): (i64, Name)| (Tally::named(TallyKind::Waiting, &name), count);
    let mut tallies: Vec<(Tally, i64)> = (1..).zip(names).map(of).collect();
    // One odd name is also among those that look alike.
    tallies.sort();
    tallies.dedup_by(|later, earlier| later.0 == earlier.0);
    stage.count(tallies.clone())?;
    same("the tallies", stage.tallies(SHARD)?, tallies)
}

fn keys_that_share_their_text_are_different(stage: &mut Stage<'_>) -> Outcome {
    let parts = [
        ("ab", "c", "d"),
        ("a", "bc", "d"),
        ("a", "b", "cd"),
        ("abc", "d", ""),
        ("abcd", "", ""),
        ("a/b", "c", "d"),
        ("a", "b/c", "d"),
        ("a", "b", "c/d"),
    ];
    let of = |(seq, (topic, id, queue)): (u64, (&str, &str, &str))| Row {
        key: Key::new(topic, id, queue),
        ..row(Table::Live, &format!("{topic}-{id}-{queue}"), seq, 10)
    };
    let rows: Vec<Row> = (1..).zip(parts).map(of).collect();
    stage.commit(rows.iter().map(insert).collect())?;
    for row in &rows {
        same(format_args!("get of {:?}", row.key), stage.get(&row.key)?, Some(row.clone()))?;
    }
    let absent = Key::new("", "abcd", "");
    same("get of the same text in a part of its own", stage.get(&absent)?, None)?;
    stage.commit(vec![remove(&rows[0])])?;
    stage.expect_rows(&rows[1..])
}

fn the_parts_of_a_key_may_be_empty(stage: &mut Stage<'_>) -> Outcome {
    let parts = [("", "", ""), ("t", "", ""), ("", "i", ""), ("", "", "q"), ("t", "", "q"), ("", "i", "q")];
    for (n, table) in (0..).zip([Table::Live, Table::Settings]) {
        let of = |(seq, (topic, id, queue)): (u64, (&str, &str, &str))| Row {
            key: Key::new(topic, id, queue),
            ..row(table, &format!("{topic}-{id}-{queue}"), 10 * n + seq, 0)
        };
        let rows: Vec<Row> = (1..).zip(parts).map(of).collect();
        stage.commit(rows.iter().map(insert).collect())?;
        same_rows(format_args!("scan of {table:?}"), &stage.scan(&whole(table))?, &rows)?;
        let scan = Scan { topic: Some(name("t")), ..whole(table) };
        same_rows("scan of a topic", &stage.scan(&scan)?, &[rows[1].clone(), rows[4].clone()])?;
    }
    same("get of the empty key", stage.get(&Key::new("", "", ""))?.map(|row| row.seq), Some(1))
}

fn the_longest_names_are_kept(stage: &mut Stage<'_>) -> Outcome {
    let texts = ["x".repeat(255), format!("{}y", "x".repeat(254)), "注".repeat(85), format!("a{}bc", "🕰".repeat(63))];
    let of = |(seq, text): (u64, &String)| Row {
        key: Key::new(text, text, text),
        group: Some(name(text)),
        ..row(Table::Live, "", seq, 10)
    };
    let rows: Vec<Row> = (1..).zip(&texts).map(of).collect();
    stage.commit(rows.iter().map(insert).collect())?;
    stage.expect_rows(&rows)?;
    for (row, text) in rows.iter().zip(&texts) {
        same("get", stage.get(&row.key)?, Some(row.clone()))?;
        same_rows("find", &stage.find(&members(Table::Live, text))?, std::slice::from_ref(row))?;
    }
    Ok(())
}

/// Bytes that break what takes them for text, for numbers or for the end.
pub(crate) fn any_bytes() -> Vec<Bytes> {
    let all: Vec<u8> = (0..=255).collect();
    let one: &[&'static [u8]] =
        &[b"", b"\0", b"\0\0\0", b"a\0b", b"\xff\xfe", b"\xc3\x28", b"\\x41", b"'\"\\", b"\r\n", b"1"];
    one.iter().map(|bytes| Bytes::from_static(bytes)).chain([Bytes::from(all)]).collect()
}

fn bodies_of_any_bytes_are_kept(stage: &mut Stage<'_>) -> Outcome {
    let of = |(seq, body): (u64, Bytes)| Row { body, ..row(Table::Live, &seq.to_string(), seq, 10) };
    let rows: Vec<Row> = (1..).zip(any_bytes()).map(of).collect();
    stage.commit(rows.iter().map(insert).collect())?;
    stage.expect_rows(&rows)
}

fn a_body_of_a_mebibyte_is_kept_through_a_life(stage: &mut Stage<'_>) -> Outcome {
    let body: Vec<u8> = (0..1 << 20).map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let live = Row { body: body.into(), ..row(Table::Live, "1", 1, 10) };
    let leased = Row { at: at(20), state: "leased".into(), ..live.clone() };
    let done = Row { table: Table::History, state: "done".into(), ..leased.clone() };
    stage.commit(vec![insert(&live)])?;
    stage.commit(vec![update(&live, &leased)])?;
    same("fetch", stage.fetch(leased.position())?, Some(leased.clone()))?;
    stage.commit(vec![update(&leased, &done)])?;
    same("get", stage.get(&done.key)?, Some(done.clone()))?;
    stage.expect_rows(&[done])
}

fn states_of_any_bytes_are_kept(stage: &mut Stage<'_>) -> Outcome {
    let of = |(seq, state): (u64, Bytes)| Row { state, ..row(Table::Live, &seq.to_string(), seq, 10) };
    let long = Bytes::from(vec![0xA5; 4_096]);
    let rows: Vec<Row> = (1..).zip(any_bytes().into_iter().chain([long])).map(of).collect();
    stage.commit(rows.iter().map(insert).collect())?;
    stage.expect_rows(&rows)?;
    let turned = |(index, row): (usize, &Row)| Row { state: rows[rows.len() - 1 - index].state.clone(), ..row.clone() };
    let turned: Vec<Row> = rows.iter().enumerate().map(turned).collect();
    stage.commit(rows.iter().zip(&turned).map(|(from, to)| update(from, to)).collect())?;
    stage.expect_rows(&turned)
}
