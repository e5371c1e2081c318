//! Names, bodies and counts that are unlike most.

use std::thread;
use std::time::{Duration, Instant};

use crate::ground::{MARIA, SHARD, batch, commit, config, insert, numbered, open, prefix, row, row_with, take};
use bytes::Bytes;
use punctual_core::store::{
    Batch, Bodies, Change, Find, Hardship, Key, Look, Place, Position, Refusal, Row, Scan, Store, StoreError, Table,
    Tally, TallyKind,
};
use punctual_core::{Name, Timestamp};
use punctual_engines::Maria;
use punctual_mysql::{Config, Database};

/// Names that differ in what some collation, character set or mode of the server does not see, or takes for its own.
fn odd_names() -> Vec<String> {
    let odd = [
        "a",
        "A",
        "\u{e4}",
        "a\u{308}",
        "\u{ff41}",
        "\u{df}",
        "ss",
        "a ",
        " a",
        "a\t",
        "a\0",
        "a\0 ",
        "'",
        "''",
        "\"",
        "\\",
        "\\'",
        "\\\\",
        "`",
        "%",
        "_",
        ";",
        "--",
        "/*",
        "x'00'",
        "\u{1f600}",
        "\u{8868}",
        "\u{bf}\u{27}",
        "NULL",
        "",
    ];
    odd.iter().map(|name| (*name).to_owned()).chain([String::from("x").repeat(255)]).collect()
}

fn odd_rows() -> Vec<Row> {
    let names = odd_names();
    let keys = names.iter().map(|name| Key::new(name, name, "")).chain(names.iter().map(|name| Key::new("", "", name)));
    // The empty name is both of an empty topic and id, and of an empty queue.
    let keys: std::collections::BTreeSet<Key> = keys.collect();
    let odd_group = |seq: u64| Name::new(["'", "\\", "\u{e4}", "a\u{308}", "%"][seq as usize % 5]).unwrap();
    let rows = keys.into_iter().zip(1..).map(|(key, seq)| Row {
        key,
        group: Some(odd_group(seq)),
        state: Bytes::copy_from_slice(&[0, 0x27, 0x5c, 0xff, seq as u8]),
        ..row_with(seq, (0..=255).collect::<Vec<u8>>())
    });
    rows.collect()
}

fn odd_names_come_back(config: &Config) {
    let store = open(config);
    let tenure = take(&store);
    let rows = odd_rows();
    assert_eq!(commit(&store, batch(tenure.fence, 1, rows.iter().map(insert).collect())), Ok(Ok(())));
    let keys: Vec<Key> = rows.iter().map(|row| row.key.clone()).collect();
    let found = store.get(SHARD, &keys, Bodies::With).unwrap();
    assert_eq!(found.into_iter().flatten().collect::<Vec<_>>(), rows);
    for name in odd_names().into_iter().filter_map(|name| Name::new(name).ok()) {
        let scan = Scan {
            table: Table::Live,
            from: Position::START,
            until: Timestamp::NEVER,
            topic: Some(name.clone()),
            limit: 10,
            bodies: Bodies::With,
        };
        let of_topic: Vec<Row> = rows.iter().filter(|row| row.key.topic() == &*name).cloned().collect();
        assert_eq!(store.scan(SHARD, &scan).unwrap().rows, of_topic, "{name:?}");
        let find = Find { table: Table::Live, group: name.clone(), from_seq: 0, limit: 100, bodies: Bodies::With };
        let of_group: Vec<Row> = rows.iter().filter(|row| row.group.as_ref() == Some(&name)).cloned().collect();
        assert_eq!(store.find(SHARD, &find).unwrap().rows, of_group, "{name:?}");
    }
    for name in odd_names().iter().filter(|name| !name.is_empty()) {
        assert!(store.cluster_put(name, 0, name.as_bytes()).unwrap().is_ok(), "{name:?}");
        assert_eq!(store.cluster_get(name).unwrap().unwrap().value, name.as_bytes());
    }
    let removals = rows.iter().map(|row| Change::Remove { place: row.place() });
    assert_eq!(commit(&store, batch(tenure.fence, 2, removals.collect())), Ok(Ok(())));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn odd_names_come_back_as_they_were() {
    odd_names_come_back(&config(MARIA.url()));
}

#[test]
fn odd_names_come_back_from_an_oddly_set_up_server() {
    let maria = Maria::start_with(&[
        "innodb_flush_method=nosync",
        "character-set-server=sjis",
        "sql-mode=NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PAD_CHAR_TO_FULL_LENGTH,NO_UNSIGNED_SUBTRACTION",
        "default-time-zone=+05:30",
        "init-connect=SET NAMES gbk, autocommit=0, sql_safe_updates=1, unique_checks=0",
        "transaction-isolation=SERIALIZABLE",
        "completion-type=CHAIN",
        "max-statement-time=0.5",
    ]);
    // The server does not impose it on root.
    maria.sql("CREATE USER me@'%' IDENTIFIED BY 'secret'; GRANT ALL ON punctual.* TO me@'%'");
    let url = maria.url().replace("root@", "me:secret@");
    odd_names_come_back(&config(url));
}

#[test]
fn a_batch_longer_than_a_packet_is_still_one() {
    let maria = Maria::start_with(&["innodb_flush_method=nosync", "max-allowed-packet=4M"]);
    let config = config(maria.url());
    let store = open(&config);
    let tenure = take(&store);
    let long = |seq: u64| row_with(seq, vec![seq as u8; 1_400_000]);
    let rows: Vec<Row> = (1..=5).map(long).collect();
    let trips = store.status().round_trips;
    assert_eq!(commit(&store, batch(tenure.fence, 1, rows.iter().map(insert).collect())), Ok(Ok(())));
    assert!(store.status().round_trips - trips >= 4, "it took several packets");
    for row in &rows {
        assert_eq!(numbered(&store, row.seq).as_ref(), Some(row));
    }
    // The last part fails, and the first ones go with it.
    let more = (6..=9).map(|seq| insert(&long(seq))).chain([insert(&row(1))]).collect();
    let astray = commit(&store, batch(tenure.fence, 2, more)).unwrap();
    assert!(matches!(astray, Err(Refusal::Astray(_))), "{astray:?}");
    assert_eq!(numbered(&store, 6), None);
    let terms = store.terms();
    assert!(terms.batch_bytes < 2 << 20, "{terms:?}");
    let giant = commit(&store, batch(tenure.fence, 2, vec![insert(&row_with(10, vec![0; 3 << 20]))]));
    assert!(matches!(&giant, Err(StoreError::Unavailable(why)) if why.contains("max_allowed_packet")), "{giant:?}");
}

#[test]
fn a_page_ends_when_its_bodies_are_long() {
    let store = open(&config(MARIA.url()));
    let tenure = take(&store);
    let sizes = [10, 8_192, 8_193, 5_000_000, 4_000_000, 100, 20_000, 0];
    let rows: Vec<Row> = sizes.iter().zip(1..).map(|(size, seq)| row_with(seq, vec![seq as u8; *size])).collect();
    for row in &rows {
        assert_eq!(commit(&store, batch(tenure.fence, row.seq, vec![insert(row)])), Ok(Ok(())));
    }
    let (mut found, mut pages, mut from) = (Vec::new(), 0, Position::START);
    loop {
        let scan =
            Scan { table: Table::Live, from, until: Timestamp::NEVER, topic: None, limit: 100, bodies: Bodies::With };
        let page = store.scan(SHARD, &scan).unwrap();
        assert!(page.rows.iter().map(|row| row.body.len()).sum::<usize>() <= 8 << 20);
        found.extend(page.rows);
        pages += 1;
        match page.next {
            Some(next) => from = next,
            None => break,
        }
    }
    assert_eq!((pages, found), (2, rows));
}

#[test]
fn counts_are_folded_and_stay_what_they_are() {
    let config = config(MARIA.url());
    let store = open(&config);
    let tenure = take(&store);
    let tally = |slot| Tally::slot(TallyKind::DueMinute, slot);
    let commits = 1_030;
    for serial in 1..=commits {
        let tallies = vec![(tally(serial % 7), 1), (tally(100 + serial % 3), -2)];
        let batch = Batch { tallies, ..batch(tenure.fence, serial, vec![]) };
        assert_eq!(commit(&store, batch), Ok(Ok(())));
    }
    let expected = |slot: u64| match slot {
        0..7 => (1..=commits).filter(|serial| serial % 7 == slot).count() as i64,
        _ => (1..=commits).filter(|serial| 100 + serial % 3 == slot).count() as i64 * -2,
    };
    let slots = (0..7).chain(100..103);
    let all: Vec<(Tally, i64)> = slots.map(|slot| (tally(slot), expected(slot))).collect();
    let began = Instant::now();
    let deltas =
        || MARIA.sql(&format!("SELECT COUNT(*) FROM punctual.{}deltas", prefix(&config))).parse::<u64>().unwrap();
    while deltas() > 512 {
        assert!(began.elapsed() < Duration::from_secs(20), "they are folded soon");
        assert_eq!(store.tallies(SHARD).unwrap(), all, "also meanwhile");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(store.tallies(SHARD).unwrap(), all);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn what_is_elsewhere_than_its_writer_says_is_astray_and_nothing_changes() {
    let store = open(&config(MARIA.url()));
    let tenure = take(&store);
    let one = row(1);
    assert_eq!(commit(&store, batch(tenure.fence, 1, vec![insert(&one)])), Ok(Ok(())));
    let at = |millis| Timestamp::from_millis(millis);
    let elsewhere = [
        Place { position: Position { at: at(1), seq: 1 }, ..one.place() },
        Place { table: Table::Dead, ..one.place() },
        Place { position: Position { seq: 2, ..one.position() }, ..one.place() },
    ];
    for place in elsewhere {
        let update = Change::Update { place: place.clone(), table: Table::Live, at: at(5), state: "x".into() };
        for change in [update, Change::Remove { place: place.clone() }] {
            let answer = commit(&store, batch(tenure.fence, 2, vec![insert(&row(7)), change])).unwrap();
            assert!(matches!(answer, Err(Refusal::Astray(_))), "{place:?}: {answer:?}");
            assert_eq!((numbered(&store, 1).as_ref(), numbered(&store, 7)), (Some(&one), None));
        }
    }
}

#[test]
fn a_server_without_room_is_a_hardship_and_what_it_has_can_be_read() {
    let maria = Maria::start_with(&[
        "innodb_flush_method=nosync",
        "innodb-file-per-table=OFF",
        "innodb-data-file-path=ibdata1:12M:autoextend:max:24M",
    ]);
    let store = open(&Config { patience: Duration::from_secs(2), ..config(maria.url()) });
    let tenure = take(&store);
    let body = vec![7; 200_000];
    let mut serial = 0;
    let failed = loop {
        match commit(&store, batch(tenure.fence, serial + 1, vec![insert(&row_with(serial + 1, body.clone()))])) {
            Ok(answer) => assert_eq!(answer, Ok(())),
            Err(failed) => break failed,
        }
        serial += 1;
        assert!(serial < 1_000, "24 MB are full by now");
        assert_eq!(store.hardship(), None);
    };
    assert!(matches!(failed, StoreError::Unavailable(_)), "{failed:?}");
    assert!(matches!(store.hardship(), Some(Hardship::NoRoom(_))), "{failed}: {:?}", store.hardship());
    assert_eq!(numbered(&store, serial).unwrap().body, body);
    let began = Instant::now();
    while store.hardship().is_some() {
        assert!(began.elapsed() < Duration::from_secs(10), "somebody tries again after a while");
        thread::sleep(Duration::from_millis(50));
    }
}
