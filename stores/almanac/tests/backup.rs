//! A backup is one moment of an almanac that is in use: all that was confirmed before it began, and nothing torn.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use punctual_almanac::inspect::check;
use punctual_almanac::{Almanac, Config, Directory, OpenError, ReadOnlyDirectory, Tending, backup};
use punctual_core::Timestamp;
use punctual_core::store::{Bodies, Change, Key, Look, Row, ShardId, Store, Table, Tenure};

use crate::stage::{ManualClock, claim, commit};

const SHARD: ShardId = ShardId(0);

fn config() -> Config {
    Config { memory: 1 << 20, segment: 64 << 10, journal: 256 << 10, reserve: 64 << 10, ..Config::default() }
}

fn open(directory: &Path, config: Config) -> (Almanac, Tenure) {
    let disk = Arc::new(Directory::open(directory).unwrap());
    let almanac = Almanac::open(disk, config, Arc::new(ManualClock::default())).unwrap();
    let tenure = claim(&almanac, SHARD).unwrap();
    (almanac, tenure)
}

fn row(number: u64) -> Row {
    let key = Key::new("orders", &format!("{number:08}"), "");
    let (at, body) = (Timestamp::from_millis(number), vec![number as u8; 3_000]);
    Row { table: Table::Live, key, seq: number + 1, at, group: None, state: "state".into(), body: body.into() }
}

fn insert(almanac: &Almanac, tenure: &mut Tenure, number: u64) {
    commit(almanac, SHARD, tenure, vec![Change::Insert { row: row(number), replaces: None }]);
}

fn remove(almanac: &Almanac, tenure: &mut Tenure, number: u64) {
    commit(almanac, SHARD, tenure, vec![Change::Remove { place: row(number).place() }]);
}

/// How many rows there are from the first on, each as it was stored.
fn count(almanac: &Almanac) -> u64 {
    (0..)
        .take_while(|number| {
            let found = almanac.get(SHARD, &[row(*number).key], Bodies::With).unwrap().remove(0);
            found.inspect(|found| assert_eq!(*found, row(*number))).is_some()
        })
        .count() as u64
}

#[test]
fn a_backup_taken_while_it_is_written_to_has_all_that_was_confirmed_before() {
    let directory = tempfile::tempdir().unwrap();
    let live = directory.path().join("live");
    let (almanac, mut tenure) = open(&live, config());
    let (confirmed, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                insert(&almanac, &mut tenure, number);
                confirmed.store(number + 1, Ordering::SeqCst);
                if stop.load(Ordering::SeqCst) {
                    return;
                }
            }
        });
        for number in 0..6 {
            let before = confirmed.load(Ordering::SeqCst);
            let to = directory.path().join(format!("backup-{number}"));
            let done = backup(&live, &to).unwrap();
            let after = confirmed.load(Ordering::SeqCst) + 1;
            assert_eq!(done.runs, done.linked, "runs of the same file system are linked");
            let report = check(&ReadOnlyDirectory::open(&to).unwrap(), &mut |_| ()).unwrap();
            assert!(report.is_clean(), "{report}");
            let (copy, _) = open(&to, Config { tending: Tending::Manual, ..config() });
            let found = count(&copy);
            assert!((before..=after).contains(&found), "{found} of {before} to {after}");
            // More is written than fits into the journal until the next one.
            while confirmed.load(Ordering::SeqCst) < after + 100 {
                thread::yield_now();
            }
        }
        stop.store(true, Ordering::SeqCst);
    });
}

#[test]
fn neither_the_backup_nor_what_it_was_made_of_can_spoil_the_other() {
    let directory = tempfile::tempdir().unwrap();
    let (live, to) = (directory.path().join("live"), directory.path().join("backup"));
    let (almanac, mut tenure) = open(&live, Config { tending: Tending::Manual, ..config() });
    (0..1_000).for_each(|number| insert(&almanac, &mut tenure, number));
    let seen = almanac.cluster_put("level", 0, b"7").unwrap().unwrap();
    almanac.checkpoint().unwrap();
    almanac.cluster_put("secret", 0, b"only in the journal").unwrap().unwrap();
    assert!(backup(&live, &to).unwrap().linked > 0);
    almanac.cluster_put("level", seen, b"8").unwrap().unwrap();
    // The room of dead rows would be given back now.
    (0..600).for_each(|number| remove(&almanac, &mut tenure, number));
    almanac.checkpoint().unwrap();
    let report = check(&ReadOnlyDirectory::open(&to).unwrap(), &mut |_| ()).unwrap();
    assert!(report.is_clean(), "{report}");
    let (copy, mut tenure_of_copy) = open(&to, Config { tending: Tending::Manual, ..config() });
    assert_eq!(count(&copy), 1_000);
    let entry = |key| copy.cluster_get(key).unwrap().map(|entry| entry.value);
    assert_eq!(entry("level").as_deref(), Some(&b"7"[..]));
    assert_eq!(entry("secret").as_deref(), Some(&b"only in the journal"[..]));
    (600..900).for_each(|number| remove(&copy, &mut tenure_of_copy, number));
    copy.checkpoint().unwrap();
    drop((almanac, copy));
    let report = check(&ReadOnlyDirectory::open(&live).unwrap(), &mut |_| ()).unwrap();
    assert!(report.is_clean(), "{report}");
    let (again, _) = open(&live, Config { tending: Tending::Manual, ..config() });
    assert!(again.get(SHARD, &[row(700).key], Bodies::With).unwrap()[0].as_ref() == Some(&row(700)));
}

#[test]
fn a_backup_is_not_made_over_anything_nor_of_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (live, to) = (directory.path().join("live"), directory.path().join("backup"));
    assert!(backup(&live, &to).is_err());
    drop(open(&live, config()));
    std::fs::create_dir_all(&to).unwrap();
    std::fs::write(to.join("mine"), "").unwrap();
    let error = backup(&live, &to).unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }) && error.to_string().contains("choose another"), "{error}");
    assert!(to.join("mine").exists());
}
