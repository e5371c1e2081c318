//! The server goes the same way for a statement whatever it believes of the tables.

use std::time::{Duration, Instant};

use punctual_core::store::{Batch, Bodies, Change, Find, Key, Look, Position, Row, Scan, Store, Table, Want};
use punctual_core::{Name, Timestamp};
use punctual_engines::Postgres;

use crate::owner::{Owner, SHARD, insert, open_with, row, waiting};

/// Enough that looking at all rows for each of them would take many times as long as anybody waits.
const ROWS: u64 = 12_000;

fn grouped(seq: u64) -> Row {
    Row { group: Some(Name::stored("g")), ..row(seq) }
}

/// Everything that can be asked, for all rows.
fn ask(owner: &Owner, rows: u64) {
    let keys: Vec<Key> = (1..=rows).map(|seq| row(seq).key).collect();
    let numbers: Vec<u64> = (1..=rows).collect();
    let positions: Vec<Position> = (1..=rows).map(|seq| row(seq).position()).collect();
    let (until, bodies) = (Timestamp::NEVER, Bodies::With);
    let scan = Scan { table: Table::Live, from: Position::START, until, topic: None, limit: 5_000, bodies };
    let by_topic = Scan { topic: Some(Name::stored("orders")), ..scan.clone() };
    let find = Find { table: Table::Live, group: Name::stored("g"), from_seq: 0, limit: 5_000, bodies };
    let wants = [
        Want::Keys(&keys, bodies),
        Want::Numbers(&numbers, bodies),
        Want::Positions(&positions, bodies),
        Want::Scan(&scan),
        Want::Scan(&by_topic),
        Want::Find(&find),
    ];
    for want in wants {
        let began = Instant::now();
        owner.store.look_for(SHARD, want).unwrap();
        let took = began.elapsed();
        assert!(took < Duration::from_secs(4), "{took:?} for {}", &format!("{want:?}")[..9]);
    }
}

#[test]
fn plans_that_were_made_for_empty_tables_are_good_for_full_ones() {
    let postgres = Postgres::start_with(&["fsync=off", "autovacuum=off"]);
    // One connection, so that what is planned first is what is used.
    let store = open_with(&postgres.url(), |config| config.connections = 1);
    let mut owner = Owner::of(&store, SHARD, "a");
    // The server knows for sure that the tables are empty.
    postgres.sql("VACUUM ANALYZE");
    ask(&owner, 1);
    let rows: Vec<Row> = (1..=ROWS).map(grouped).collect();
    for part in rows.chunks(2_000) {
        owner.commit(part.iter().cloned().map(insert).collect()).unwrap().unwrap();
    }
    ask(&owner, ROWS);
    let changes = rows.iter().map(|row| Change::Update {
        place: row.place(),
        table: Table::Live,
        at: row.at,
        state: "changed".into(),
    });
    let began = Instant::now();
    owner.commit(changes.collect()).unwrap().unwrap();
    let remove = |row: &Row| Change::Remove { place: row.place() };
    let removals = owner.batch(rows.iter().map(remove).collect());
    let removals = Batch { tallies: vec![(waiting(), -(ROWS as i64))], ..removals };
    store.commit(vec![removals]).unwrap().remove(0).unwrap();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    owner.expect(&[]);
}
