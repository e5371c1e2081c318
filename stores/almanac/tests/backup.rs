//! A backup is one moment of an almanac that is in use: all that was confirmed before it began, and nothing torn.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use punctual_almanac::inspect::check;
use punctual_almanac::{Almanac, Config, Directory, OpenError, ReadOnlyDirectory, Tending, backup};
use punctual_core::store::{Batch, Bodies, Change, Claim, Fence, Key, Row, ShardId, Store, Table};
use punctual_core::{Millis, Name, Timestamp};

use stage::ManualClock;

const SHARD: ShardId = ShardId(0);

fn config() -> Config {
    Config { memory: 1 << 20, segment: 64 << 10, journal: 256 << 10, reserve: 64 << 10, ..Config::default() }
}

fn open(directory: &Path, config: Config) -> (Almanac, Fence) {
    let disk = Arc::new(Directory::open(directory).unwrap());
    let almanac = Almanac::open(disk, config, Arc::new(ManualClock::default())).unwrap();
    let Claim::Granted(fence) = almanac.claim(SHARD, &Name::new("a").unwrap(), Millis(1)).unwrap() else { panic!() };
    (almanac, fence)
}

fn row(number: u64) -> Row {
    let key = Key::new("orders", &format!("{number:08}"), "");
    let (at, body) = (Timestamp::from_millis(number), vec![number as u8; 3_000]);
    Row { table: Table::Live, key, seq: number + 1, at, group: None, state: "state".into(), body: body.into() }
}

fn commit(almanac: &Almanac, fence: Fence, change: Change) {
    almanac.commit(vec![Batch { shard: SHARD, fence, changes: vec![change], tallies: Vec::new() }]).unwrap()[0]
        .unwrap();
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
    let (almanac, fence) = open(&live, config());
    let (confirmed, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                commit(&almanac, fence, Change::Insert { row: row(number), replaces: None });
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
    let (almanac, fence) = open(&live, Config { tending: Tending::Manual, ..config() });
    (0..1_000).for_each(|number| commit(&almanac, fence, Change::Insert { row: row(number), replaces: None }));
    almanac.checkpoint().unwrap();
    assert!(backup(&live, &to).unwrap().linked > 0);
    // The room of dead rows would be given back now.
    (0..600).for_each(|number| commit(&almanac, fence, Change::Remove { place: row(number).place() }));
    almanac.checkpoint().unwrap();
    let report = check(&ReadOnlyDirectory::open(&to).unwrap(), &mut |_| ()).unwrap();
    assert!(report.is_clean(), "{report}");
    let (copy, fence_of_copy) = open(&to, Config { tending: Tending::Manual, ..config() });
    assert_eq!(count(&copy), 1_000);
    (600..900).for_each(|number| commit(&copy, fence_of_copy, Change::Remove { place: row(number).place() }));
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
