//! A caller that breaks the contract: nothing of it is written, the almanac goes on, and the directory opens again.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::sync::Arc;

use punctual_almanac::Almanac;
use punctual_core::store::{
    Batch, Bodies, Change, Claim, Fence, Key, Place, Position, Row, ShardId, Store, StoreError, Table,
};
use punctual_core::{Millis, Name, Timestamp};
use punctual_simulated_disk::SimulatedDisk;

use stage::{ManualClock, tiny};

const SHARD: ShardId = ShardId(0);

fn open(disk: &SimulatedDisk) -> (Almanac, Fence) {
    let almanac = Almanac::open(Arc::new(disk.clone()), tiny(), Arc::new(ManualClock::default())).unwrap();
    let Claim::Granted(fence) = almanac.claim(SHARD, &Name::new("a").unwrap(), Millis(1)).unwrap() else { panic!() };
    (almanac, fence)
}

fn row(id: &str, seq: u64) -> Row {
    let at = Timestamp::from_millis(seq * 10);
    let key = Key::new("topic", id, "");
    Row { table: Table::Live, key, seq, at, group: None, state: "state".into(), body: "body".into() }
}

fn insert(row: Row) -> Change {
    Change::Insert { row, replaces: None }
}

fn batch(fence: Fence, changes: Vec<Change>) -> Batch {
    Batch { shard: SHARD, fence, changes, tallies: Vec::new() }
}

/// Commits a breach beside a right change, and looks at what is there afterwards.
fn breach(in_run: bool, breach: Change) -> String {
    let disk = SimulatedDisk::new(1);
    let (almanac, fence) = open(&disk);
    almanac.commit(vec![batch(fence, vec![insert(row("a", 1)), insert(row("b", 2))])]).unwrap().remove(0).unwrap();
    if in_run {
        almanac.checkpoint().unwrap();
    }
    let answer = almanac.commit(vec![batch(fence, vec![insert(row("c", 3)), breach])]);
    let Err(StoreError::Unavailable(why)) = answer else { panic!("{answer:?}") };
    almanac.commit(vec![batch(fence, vec![insert(row("d", 4))])]).unwrap().remove(0).expect("it goes on");
    drop(almanac);
    let (almanac, _) = open(&disk);
    let keys = [row("a", 1), row("b", 2), row("c", 3)].map(|row| row.key);
    let found = almanac.get(SHARD, &keys, Bodies::With).unwrap();
    assert_eq!(found, [Some(row("a", 1)), Some(row("b", 2)), None], "nothing of the commit was written");
    why
}

#[test]
fn a_change_to_a_row_that_is_not_there_is_refused_before_it_is_written() {
    for in_run in [false, true] {
        let why = breach(in_run, Change::Remove { place: row("nobody", 9).place() });
        assert!(why.contains("broke the store's contract") && why.contains("topicnobody"), "{why}");
    }
}

#[test]
fn a_change_to_a_row_that_stands_elsewhere_is_refused_before_it_is_written() {
    for in_run in [false, true] {
        let elsewhere = Position { at: Timestamp::from_millis(77), seq: 1 };
        let place = Place { position: elsewhere, ..row("a", 1).place() };
        breach(in_run, Change::Update { place, table: Table::Dead, at: Timestamp::ZERO, state: "new".into() });
    }
}

#[test]
fn a_recent_key_is_not_inserted_twice() {
    breach(false, insert(row("a", 9)));
}

#[test]
fn a_later_batch_of_a_commit_builds_on_the_earlier_ones() {
    let (almanac, fence) = open(&SimulatedDisk::new(1));
    let moved = Row { at: Timestamp::from_millis(500), state: "new".into(), ..row("a", 1) };
    let update = Change::Update { place: row("a", 1).place(), table: Table::Live, at: moved.at, state: "new".into() };
    let batches = [insert(row("a", 1)), update, Change::Remove { place: moved.place() }];
    let verdicts = almanac.commit(batches.map(|change| batch(fence, vec![change])).to_vec()).unwrap();
    assert!(verdicts.iter().all(Result::is_ok));
    assert_eq!(almanac.get(SHARD, &[moved.key], Bodies::With).unwrap(), [None]);
}
