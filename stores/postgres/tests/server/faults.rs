//! A network that cuts and hangs: nothing is lost, nothing happens twice, and every call ends.

use std::thread;
use std::time::{Duration, Instant};

use punctual_core::store::{Batch, Beat, Change, Fence, Hardship, Refusal, Row, ShardId, Store, StoreError, Table};
use punctual_core::{Millis, Timestamp};
use punctual_engines::{Postgres, Proxy, Way};
use punctual_postgres::Database;

use crate::owner::{Owner, SHARD, insert, life, open, open_with, row, waiting};

/// The changes that lead to the next state: a new row comes, the one before it changes, and the one before that goes.
fn turn(number: u64, rows: &mut Vec<Row>) -> Vec<Change> {
    let mut changes = vec![insert(row(number))];
    if let Some(last) = rows.last_mut() {
        let place = last.place();
        last.state = format!("changed by {number}").into();
        last.at = Timestamp::from_millis(2_000 + last.seq);
        changes.push(Change::Update { place, table: Table::Live, at: last.at, state: last.state.clone() });
    }
    if rows.len() > 2 {
        changes.push(Change::Remove { place: rows.remove(0).place() });
    }
    rows.push(row(number));
    rows.sort_by_key(Row::position);
    changes
}

/// Commits turn after turn, each cut off after one more byte, until none is any more.
fn cut_every_byte(postgres: &Postgres, way: Way, shard: ShardId) {
    let proxy = Proxy::to(postgres.port());
    let store = open(&Postgres::url_at(proxy.port()));
    let mut owner = Owner::of(&store, shard, "a");
    let mut rows = Vec::new();
    let mut number = 0;
    let mut next = |owner: &mut Owner| {
        number += 1;
        let changes = turn(number, &mut rows);
        let batch = owner.batch(changes);
        // What the tally counts is what `expect` counts: what comes and goes.
        let count = if number > 3 { 0 } else { 1 };
        let batch = Batch { tallies: vec![(waiting(), count)], ..batch };
        assert_eq!(owner.store.commit(vec![batch]).unwrap(), [Ok(())]);
        owner.tenure.serial += 1;
    };
    (0..5).for_each(|_| next(&mut owner));
    let before = proxy.passed(way);
    next(&mut owner);
    let bytes = proxy.passed(way) - before;
    assert!(bytes > 20, "a commit has {bytes} bytes in the direction {way:?}");
    for byte in 0..=bytes {
        proxy.cut_after(way, byte);
        next(&mut owner);
        proxy.disarm();
    }
    assert!(store.status().retries >= bytes, "{bytes} cuts and {:?}", store.status());
    owner.expect(&rows);
}

#[test]
fn a_commit_that_is_cut_at_any_byte_of_its_way_there_happens_once() {
    cut_every_byte(&Postgres::start(), Way::There, SHARD);
}

#[test]
fn a_commit_that_is_cut_at_any_byte_of_its_way_back_happens_once() {
    cut_every_byte(&Postgres::start(), Way::Back, SHARD);
}

#[test]
fn an_entry_that_is_cut_at_any_byte_is_written_and_its_revision_told() {
    let postgres = Postgres::start();
    let proxy = Proxy::to(postgres.port());
    let store = open(&Postgres::url_at(proxy.port()));
    let mut seen = 0;
    let mut next = || {
        let value = format!("after {seen}");
        let given = store.cluster_put("key", seen, value.as_bytes()).unwrap().unwrap();
        assert!(given > seen, "{given} comes after {seen}");
        proxy.disarm();
        let entry = store.cluster_get("key").unwrap().unwrap();
        assert_eq!((entry.revision, &*entry.value), (given, value.as_bytes()));
        seen = given;
    };
    next();
    for way in [Way::There, Way::Back] {
        let before = proxy.passed(way);
        next();
        let bytes = proxy.passed(way) - before;
        for byte in 0..=bytes {
            proxy.cut_after(way, byte);
            next();
        }
    }
}

#[test]
fn a_beat_that_is_not_answered_leaves_time_for_another() {
    let postgres = Postgres::start();
    let proxy = Proxy::to(postgres.port());
    let store = open(&Postgres::url_at(proxy.port()));
    proxy.hang();
    let began = Instant::now();
    let beat = Beat { who: life("a"), address: String::new(), lease: Millis::from_secs(3) };
    assert!(matches!(store.beat(&beat), Err(StoreError::Unavailable(_))));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    proxy.pass();
    store.beat(&beat).unwrap();
}

#[test]
fn a_server_that_hangs_is_given_up_in_time_and_a_late_commit_is_refused() {
    let postgres = Postgres::start();
    let proxy = Proxy::to(postgres.port());
    let patience = Duration::from_millis(700);
    let store = open_with(&Postgres::url_at(proxy.port()), |config| config.patience = patience);
    let mut owner = Owner::of(&store, SHARD, "a");
    owner.commit(vec![insert(row(1))]).unwrap().unwrap();
    proxy.hang();
    for _ in 0..2 {
        let began = Instant::now();
        let answer = owner.commit(vec![insert(row(2))]);
        assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
        assert!(began.elapsed() < patience * 3, "{:?}", began.elapsed());
    }
    let other = open(&postgres.url());
    let new = Owner::of(&other, SHARD, "b");
    // What hung arrives now, after the claim.
    proxy.pass();
    thread::sleep(Duration::from_millis(300));
    new.expect(&[row(1)]);
    let current = new.tenure.fence;
    assert_eq!(owner.commit(vec![insert(row(2))]).unwrap(), Err(Refusal::Fenced { current }));
}

#[test]
fn a_paused_server_is_given_up_in_time_and_is_back_when_it_goes_on() {
    let postgres = Postgres::start();
    let store = open_with(&postgres.url(), |config| config.patience = Duration::from_millis(500));
    let mut owner = Owner::of(&store, SHARD, "a");
    postgres.pause();
    let answer = owner.commit(vec![insert(row(1))]);
    assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    assert_eq!(store.status().failures, 1);
    postgres.go_on();
    let mut owner = Owner::of(&store, SHARD, "a");
    // The commit may have happened before the claim, and then it is there.
    if owner.tenure.serial == 0 {
        owner.commit(vec![insert(row(1))]).unwrap().unwrap();
    }
    owner.expect(&[row(1)]);
}

#[test]
fn what_was_done_before_the_answer_was_lost_and_the_shard_taken_is_not_called_refused() {
    let postgres = Postgres::start();
    let proxy = Proxy::to(postgres.port());
    let (store, other) = (open(&Postgres::url_at(proxy.port())), open(&postgres.url()));
    let mut owner = Owner::of(&store, SHARD, "a");
    owner.commit(vec![insert(row(1))]).unwrap().unwrap();
    let answer = thread::scope(|scope| {
        // The answer is lost, and there is no way to the server until another has the shard.
        proxy.cut_after(Way::Back, 0);
        let committing = scope.spawn(|| {
            let answer = owner.commit(vec![insert(row(2))]);
            (answer, owner)
        });
        while postgres.sql("SELECT serial FROM punctual.shards") != "2" {
            thread::sleep(Duration::from_millis(2));
        }
        proxy.refuse();
        let new = Owner::of(&other, SHARD, "b");
        proxy.pass();
        new.expect(&[row(1), row(2)]);
        committing.join().unwrap().0
    });
    // It may have been quicker than we with the proxy; then it has heard that all is well.
    assert!(!matches!(answer, Ok(Err(_))), "{answer:?}");
}

#[test]
fn a_full_disk_is_a_hardship_until_there_is_room_again() {
    let postgres = Postgres::start();
    let store = open(&postgres.url());
    let mut owner = Owner::of(&store, SHARD, "a");
    assert_eq!(store.hardship(), None);
    refuse_inserts(&postgres, "53100");
    let answer = owner.commit(vec![insert(row(1))]);
    assert!(matches!(&answer, Err(StoreError::Unavailable(text)) if text.contains("53100")), "{answer:?}");
    assert!(matches!(store.hardship(), Some(Hardship::NoRoom(_))), "{:?}", store.hardship());
    postgres.sql("DROP TRIGGER refuse ON punctual.names");
    owner.commit(vec![insert(row(1))]).unwrap().unwrap();
    assert_eq!(store.hardship(), None);
    owner.expect(&[row(1)]);
}

#[test]
fn a_server_that_only_reads_is_said_to() {
    let postgres = Postgres::start();
    let store = open_with(&postgres.url(), |config| config.patience = Duration::from_millis(300));
    let mut owner = Owner::of(&store, SHARD, "a");
    refuse_inserts(&postgres, "25006");
    assert!(owner.commit(vec![insert(row(1))]).is_err());
    assert!(matches!(store.hardship(), Some(Hardship::Failing(_))), "{:?}", store.hardship());
    assert_ne!(owner.tenure.fence, Fence::default());
}

/// Lets inserts fail as they do when the server is in such a state.
fn refuse_inserts(postgres: &Postgres, code: &str) {
    postgres.sql(&format!(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = '{code}'; END $$; \
         CREATE TRIGGER refuse BEFORE INSERT ON punctual.names EXECUTE FUNCTION refuse()"
    ));
}
