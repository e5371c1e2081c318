//! What the contract says of commits: what is there happens no second time, what was lost is missed, and a caller whose
//! memory is not what the store has is told so. Nothing of what is refused is written, and the directory opens again.

use std::io::ErrorKind;
use std::sync::Arc;

use punctual_almanac::Almanac;
use punctual_core::Timestamp;
use punctual_core::store::{
    Batch, Bodies, Change, Claim, Fence, Key, Look, Place, Position, Refusal, Row, ShardId, Store, StoreError, Table,
    Tenure, Want,
};
use punctual_simulated_disk::{Call, Fault, SimulatedDisk};

use crate::stage::{ManualClock, batch, claim, commit, life, tiny};

const SHARD: ShardId = ShardId(0);
const OTHER: ShardId = ShardId(1);

fn open(disk: &SimulatedDisk) -> (Almanac, Tenure) {
    let almanac = Almanac::open(Arc::new(disk.clone()), tiny(), Arc::new(ManualClock::default())).unwrap();
    let tenure = claim(&almanac, SHARD).unwrap();
    (almanac, tenure)
}

fn row(id: &str, seq: u64) -> Row {
    let at = Timestamp::from_millis(seq * 10);
    let key = Key::new("topic", id, "");
    Row { table: Table::Live, key, seq, at, group: None, state: "state".into(), body: "body".into() }
}

fn insert(row: Row) -> Change {
    Change::Insert { row, replaces: None }
}

/// Batches of one change each, one after the other.
fn chain(shard: ShardId, tenure: Tenure, changes: impl IntoIterator<Item = Change>) -> Vec<Batch> {
    let each = changes.into_iter().zip(tenure.serial..);
    each.map(|(change, serial)| batch(shard, Tenure { serial, ..tenure }, vec![change])).collect()
}

fn ids(almanac: &Almanac, ids: &[&str]) -> Vec<bool> {
    let keys: Vec<Key> = ids.iter().map(|id| row(id, 0).key).collect();
    almanac.get(SHARD, &keys, Bodies::With).unwrap().iter().map(Option::is_some).collect()
}

/// Commits a breach beside a right change, and another shard's batch; looks at what is there afterwards.
fn breach(in_run: bool, breach: Change) -> String {
    let disk = SimulatedDisk::new(1);
    let (almanac, mut tenure) = open(&disk);
    commit(&almanac, SHARD, &mut tenure, vec![insert(row("a", 1)), insert(row("b", 2))]);
    if in_run {
        almanac.checkpoint().unwrap();
    }
    let other = claim(&almanac, OTHER).unwrap();
    let batches =
        vec![batch(SHARD, tenure, vec![insert(row("c", 3)), breach]), batch(OTHER, other, vec![insert(row("c", 3))])];
    let answers = almanac.commit(batches).unwrap();
    let [Err(Refusal::Astray(why)), Ok(())] = &answers[..] else { panic!("{answers:?}") };
    commit(&almanac, SHARD, &mut tenure, vec![insert(row("d", 4))]);
    drop(almanac);
    let (almanac, _) = open(&disk);
    assert_eq!(ids(&almanac, &["a", "b", "c", "d"]), [true, true, false, true], "nothing of the batch was written");
    assert!(almanac.get(OTHER, &[row("c", 3).key], Bodies::With).unwrap()[0].is_some(), "another shard goes its way");
    why.clone()
}

#[test]
fn a_change_to_a_row_that_is_not_there_is_refused_before_it_is_written() {
    for in_run in [false, true] {
        let why = breach(in_run, Change::Remove { place: row("nobody", 9).place() });
        assert!(why.contains("has no row") && why.contains("topicnobody"), "{why}");
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
    let (almanac, tenure) = open(&SimulatedDisk::new(1));
    let moved = Row { at: Timestamp::from_millis(500), state: "new".into(), ..row("a", 1) };
    let update = Change::Update { place: row("a", 1).place(), table: Table::Live, at: moved.at, state: "new".into() };
    let changes = [insert(row("a", 1)), update, Change::Remove { place: moved.place() }, insert(row("a", 5))];
    let verdicts = almanac.commit(chain(SHARD, tenure, changes)).unwrap();
    assert!(verdicts.iter().all(Result::is_ok), "{verdicts:?}");
    assert_eq!(almanac.get(SHARD, &[moved.key], Bodies::With).unwrap(), [Some(row("a", 5))]);
}

#[test]
fn a_later_batch_of_a_commit_goes_astray_by_the_earlier_ones_and_what_follows_it_is_missed() {
    let gone = || Change::Remove { place: row("a", 1).place() };
    for changes in [
        [insert(row("a", 1)), insert(row("a", 2)), insert(row("b", 3))],
        [insert(row("a", 1)), Change::Remove { place: row("a", 2).place() }, insert(row("b", 3))],
        [gone(), gone(), insert(row("b", 3))],
    ] {
        let disk = SimulatedDisk::new(1);
        let (almanac, mut tenure) = open(&disk);
        if matches!(changes[0], Change::Remove { .. }) {
            commit(&almanac, SHARD, &mut tenure, vec![insert(row("a", 1))]);
        }
        let answers = almanac.commit(chain(SHARD, tenure, changes)).unwrap();
        let [Ok(()), Err(Refusal::Astray(_)), Err(Refusal::Lost { .. })] = &answers[..] else { panic!("{answers:?}") };
        tenure.serial += 1;
        commit(&almanac, SHARD, &mut tenure, vec![insert(row("c", 4))]);
        drop(almanac);
        let (almanac, _) = open(&disk);
        assert_eq!(ids(&almanac, &["b", "c"]), [false, true]);
    }
}

#[test]
fn what_is_there_happens_no_second_time_also_within_a_commit() {
    let (almanac, tenure) = open(&SimulatedDisk::new(1));
    let one = batch(SHARD, tenure, vec![insert(row("a", 1))]);
    assert_eq!(almanac.commit(vec![one.clone(), one.clone()]), Ok(vec![Ok(()), Ok(())]));
    assert_eq!(almanac.commit(vec![one]), Ok(vec![Ok(())]));
    assert_eq!(almanac.numbered(SHARD, &[1], Bodies::With).unwrap(), [Some(row("a", 1))]);
}

#[test]
fn a_commit_that_found_no_room_does_not_count_and_is_tried_again_under_its_serial() {
    let disk = SimulatedDisk::new(1);
    let (almanac, tenure) = open(&disk);
    let kind = ErrorKind::StorageFull;
    disk.fail(Fault { call: Call::Write, name_contains: "journal-", after: 0, kind, lasting: true });
    let batches = chain(SHARD, tenure, [insert(row("a", 1)), insert(row("b", 2))]);
    let failed = almanac.commit(batches.clone());
    assert!(matches!(failed, Err(StoreError::Unavailable(_))), "{failed:?}");
    let confirmed = |serial| almanac.read(SHARD, Tenure { serial, ..tenure }, &[Want::Tallies]).map(drop);
    assert_eq!(confirmed(0), Ok(()));
    assert_eq!(confirmed(1), Err(Refusal::Lost { expected: 1, found: 0 }.into()));
    disk.heal();
    assert_eq!(almanac.commit(batches), Ok(vec![Ok(()), Ok(())]));
    assert_eq!(confirmed(2), Ok(()));
    assert_eq!(ids(&almanac, &["a", "b"]), [true, true]);
}

#[test]
fn several_shards_are_claimed_with_one_sync_and_each_by_itself() {
    let disk = SimulatedDisk::new(1);
    let (almanac, tenure) = open(&disk);
    let before = disk.calls();
    let wanted = [(OTHER, Fence::default()), (SHARD, Fence(7)), (ShardId(2), Fence::default())];
    let claims = almanac.claim(&life("other"), &wanted).unwrap();
    let [Claim::Granted(_), Claim::Outrun(fence), Claim::Granted(_)] = claims[..] else { panic!("{claims:?}") };
    assert_eq!(fence, tenure.fence);
    assert!(disk.calls() - before <= 6, "{} calls for two claims", disk.calls() - before);
    drop(almanac);
    let (almanac, _) = open(&disk);
    for (before, (shard, _)) in claims.iter().zip(wanted) {
        if let Claim::Granted(before) = before {
            let after = claim(&almanac, shard).unwrap();
            assert!(after.fence > before.fence, "{after:?} after {before:?}");
        }
    }
}
