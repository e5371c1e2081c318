//! What the almanac does when its disk fails: it says so, never panics, and what was confirmed is there
//! when the disk is well again.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;

use punctual_almanac::{Almanac, Config, Directory, Disk, OpenError, SyncPolicy};
use punctual_core::store::{Bodies, Look, Store, StoreError};
use punctual_simulated_disk::{Call, Fault, SimulatedDisk};

use crate::stage::model::Model;
use crate::stage::scene::{SHARD, Scene, insert, key, remove, update};
use crate::stage::{ManualClock, tiny};

fn fault(call: Call, name_contains: &'static str) -> Fault {
    Fault { call, name_contains, after: 0, kind: ErrorKind::Other, lasting: false }
}

fn scene(seed: u64, commits: usize) -> (Scene, Almanac) {
    let mut scene = Scene::new(seed, tiny());
    let almanac = scene.open();
    for _ in 0..commits {
        scene.commit(&almanac).unwrap();
    }
    (scene, almanac)
}

#[test]
fn a_failed_sync_stops_the_almanac_and_what_was_confirmed_is_there_after_reopening() {
    for seed in 0..40 {
        let (mut scene, almanac) = scene(seed, 12);
        almanac.tend().unwrap();
        scene.change(&almanac, (0..seed % 3).map(|number| insert(number, 100)).collect()).unwrap();
        scene.disk.fail(fault(Call::Sync, "journal-"));
        let (error, after) = scene.change(&almanac, vec![insert(9, 100)]).unwrap_err();
        let StoreError::Poisoned(message) = &error else { panic!("{error}") };
        assert!(message.contains("the journal could not be synced") && message.contains("restart"), "{message}");
        scene.disk.heal();
        assert_eq!(scene.commit(&almanac).unwrap_err().0, error);
        assert_eq!(scene.claim(&almanac).unwrap_err(), error);
        assert_eq!(almanac.get(SHARD, &[], Bodies::With).unwrap_err(), error);
        assert_eq!(almanac.tallies(SHARD).unwrap_err(), error);
        assert_eq!(almanac.checkpoint().unwrap_err(), error);
        drop(almanac);

        let possible = [scene.model.clone(), after];
        if seed % 2 == 0 {
            let after_power_loss = scene.disk.crash(seed);
            drop(scene.resume(after_power_loss, &possible));
            continue;
        }
        // The system still shows what it could not write. What is built upon it must not be lost
        // together with it.
        let restarted = scene.disk.copy();
        let almanac = scene.resume(restarted, &possible);
        scene.commit(&almanac).unwrap();
        scene.commit(&almanac).unwrap();
        let (after_power_loss, possible) = (scene.disk.crash(seed), [scene.model.clone()]);
        drop(scene.resume(after_power_loss, &possible));
    }
}

#[test]
fn what_a_killed_process_left_unsynced_is_durable_once_the_almanac_is_open_again() {
    for seed in 0..40 {
        let mut scene =
            Scene::new(seed, Config { sync: SyncPolicy::Every(std::time::Duration::from_secs(1)), ..tiny() });
        let almanac = scene.open();
        (0..10).for_each(|_| scene.commit(&almanac).unwrap());
        let (killed, possible) = (scene.disk.copy(), [scene.model.clone()]);
        let again = scene.resume(killed, &possible);
        let after_power_loss = scene.disk.crash(seed);
        drop(scene.resume(after_power_loss, &possible));
        drop((again, almanac));
    }
}

#[test]
fn a_full_disk_during_a_run_write_loses_nothing() {
    for room in (0..120).map(|step| step * 400) {
        let (mut scene, almanac) = scene(room, 40);
        scene.disk.limit(scene.disk.used() + room);
        let outcome = almanac.checkpoint();
        if let Err(error) = &outcome {
            let StoreError::Unavailable(message) = error else { panic!("{error}") };
            assert!(message.contains("could not be") || message.contains("cannot be written"), "{message}");
            assert!(almanac.hardship().is_some());
        }
        scene.compare(&almanac);
        // What happens meanwhile happens to a layer that is frozen.
        let mut possible = vec![];
        for _ in 0..room % 7 {
            if let Err((_, after)) = scene.commit(&almanac) {
                possible.push(after);
                break;
            }
        }
        scene.compare(&almanac);
        possible.push(scene.model.clone());
        let after_power_loss = scene.disk.crash(room);
        after_power_loss.limit(u64::MAX);
        drop(scene.resume(after_power_loss, &possible));
        drop(almanac);
    }
}

#[test]
fn a_full_disk_during_a_run_write_is_forgotten_when_there_is_room_again() {
    let (mut scene, almanac) = scene(3, 40);
    almanac.tend().unwrap();
    scene.change(&almanac, (0..20).map(|number| insert(number, 100)).collect()).unwrap();
    scene.disk.limit(scene.disk.used() + 1_000);
    assert!(almanac.checkpoint().is_err());
    assert!(almanac.hardship().is_some());
    scene.change(&almanac, vec![update(&scene.model, 1), remove(&scene.model, 2)]).unwrap();
    scene.compare(&almanac);
    scene.disk.limit(u64::MAX);
    almanac.tend().unwrap();
    assert_eq!(almanac.hardship(), None);
    scene.compare(&almanac);
    almanac.checkpoint().unwrap();
    scene.compare(&almanac);
    let (disk, possible) = (scene.disk.crash(1), [scene.model.clone()]);
    drop(scene.resume(disk, &possible));
}

/// Work with everything in it, on a disk that gives an error somewhere. Whatever fails is tried again
/// on a healthy disk.
fn work_through(fault: Fault) -> usize {
    let mut scene = Scene::new(7, tiny());
    scene.disk.fail(fault);
    let mut possible = vec![Model::default()];
    let mut failures = 0;
    for life in 0..3 {
        let almanac = match scene.try_open() {
            Ok(almanac) => almanac,
            Err(error) => {
                assert!(matches!(error, OpenError::Io { .. }), "{fault:?}: {error}");
                scene.disk.heal();
                scene.try_open().unwrap_or_else(|error| panic!("{fault:?}: it does not open again: {error}"))
            }
        };
        let found = scene.read(&almanac).or_else(|_| {
            scene.disk.heal();
            scene.read(&almanac)
        });
        let found = found.unwrap();
        assert!(possible.contains(&found), "{fault:?}, life {life}: {}", found.differences(&possible[0]));
        scene.model = found.clone();
        possible = vec![found];
        if scene.claim(&almanac).is_err() {
            scene.disk.heal();
            continue;
        }
        for step in 0..30 {
            let tended = match step % 10 {
                4 => almanac.tend(),
                9 => almanac.checkpoint(),
                _ => Ok(()),
            };
            if matches!(tended, Err(StoreError::Poisoned(_))) {
                break;
            }
            if let Err((error, after)) = scene.commit(&almanac) {
                assert!(scene.disk.failures() > 0, "{fault:?}: {error}");
                possible.push(after);
                break;
            }
            possible = vec![scene.model.clone()];
            if step == 20
                && let Ok(found) = scene.read(&almanac)
            {
                assert!(found == scene.model, "{fault:?}: {}", found.differences(&scene.model));
            }
        }
        drop(almanac);
        if life == 1 {
            failures += scene.disk.failures();
            scene.disk = scene.disk.crash(7);
        }
    }
    failures += scene.disk.failures();
    scene.disk.heal();
    drop(scene.resume(scene.disk.clone(), &possible));
    failures
}

#[test]
fn an_error_at_any_call_is_never_a_panic_and_never_a_loss() {
    let calls = [
        Call::List,
        Call::Open,
        Call::Create,
        Call::Rename,
        Call::Remove,
        Call::SyncDirectory,
        Call::Lock,
        Call::Length,
        Call::Read,
        Call::Write,
        Call::Allocate,
        Call::Sync,
    ];
    let mut struck: BTreeMap<Call, usize> = BTreeMap::new();
    for call in calls {
        for after in (0..24).chain((24..500).step_by(29)) {
            let full = ErrorKind::StorageFull;
            let ways = if after % 2 == 0 {
                [(full, false), (ErrorKind::Other, true)]
            } else {
                [(ErrorKind::Other, false), (full, true)]
            };
            let failures =
                ways.map(|(kind, lasting)| work_through(Fault { call, name_contains: "", after, kind, lasting }));
            *struck.entry(call).or_default() += failures.iter().sum::<usize>();
            if failures == [0, 0] {
                // There are no more such calls.
                break;
            }
        }
    }
    println!("{struck:?}");
    assert!(struck.values().all(|struck| *struck > 0), "{struck:?}");
}

/// An almanac with a long run, of which the first half has just died.
fn half_dead(seed: u64) -> (Scene, Almanac) {
    let mut scene = Scene::new(seed, Config { memory: 1 << 20, ..tiny() });
    let almanac = scene.open();
    for number in 0..120 {
        scene.change(&almanac, vec![insert(number, 30_000)]).unwrap();
    }
    almanac.checkpoint().unwrap();
    for number in 0..60 {
        scene.change(&almanac, vec![remove(&scene.model, number)]).unwrap();
    }
    // The bodies of these are where the room is to be given back.
    for number in 60..64 {
        scene.change(&almanac, vec![update(&scene.model, number)]).unwrap();
    }
    (scene, almanac)
}

#[test]
fn room_is_given_back_where_rows_have_died_and_the_others_stay_readable() {
    let (mut scene, almanac) = half_dead(1);
    let before = scene.disk.used();
    almanac.checkpoint().unwrap();
    assert!(scene.disk.used() + (1 << 20) < before, "{} of {before}", scene.disk.used());
    scene.compare(&almanac);
    for number in 64..70 {
        scene.change(&almanac, vec![update(&scene.model, number)]).unwrap();
    }
    scene.compare(&almanac);
    almanac.checkpoint().unwrap();
    scene.compare(&almanac);
    drop(almanac);
    let possible = [scene.model.clone()];
    drop(scene.resume(scene.disk.clone(), &possible));
}

#[test]
fn an_error_while_room_is_given_back_is_no_trouble() {
    let (mut scene, almanac) = half_dead(1);
    scene.disk.fail(Fault { lasting: true, ..fault(Call::Punch, "run-") });
    almanac.checkpoint().unwrap();
    assert!(scene.disk.failures() > 0);
    scene.disk.heal();
    scene.compare(&almanac);
    let before = scene.disk.used();
    almanac.checkpoint().unwrap();
    assert!(scene.disk.used() < before, "it is tried again");
    scene.compare(&almanac);
}

#[test]
fn a_crash_while_room_is_given_back_loses_nothing() {
    let (scene, almanac) = half_dead(1);
    let begin = scene.disk.calls();
    almanac.checkpoint().unwrap();
    let calls = scene.disk.calls() - begin;
    let mut punched = 0;
    for seed in 0..12 {
        let (mut scene, almanac) = half_dead(1);
        scene.disk.crash_at(scene.disk.calls() + calls - seed / 2);
        _ = almanac.checkpoint();
        drop(almanac);
        punched += usize::from(scene.disk.last_call().unwrap().0 == Call::Punch);
        let (disk, possible) = (scene.disk.crash(seed), [scene.model.clone()]);
        drop(scene.resume(disk, &possible));
    }
    assert!(punched > 0);
}

fn is_refused_twice(one: Arc<dyn Disk>, other: Arc<dyn Disk>) {
    let open = |disk: &Arc<dyn Disk>| Almanac::open(Arc::clone(disk), tiny(), Arc::new(ManualClock::default()));
    let first = open(&one).unwrap();
    let error = open(&other).expect_err("one process has it open");
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains(&one.place()) && message.contains("is in use by another process"), "{message}");
    assert!(message.contains("stop it first"), "{message}");
    drop(first);
    open(&other).unwrap();
}

#[test]
fn a_second_opening_of_the_same_directory_is_refused() {
    let disk = SimulatedDisk::new(1);
    is_refused_twice(Arc::new(disk.clone()), Arc::new(disk));
    let directory = tempfile::tempdir().unwrap();
    let open = || Arc::new(Directory::open(directory.path()).unwrap());
    is_refused_twice(open(), open());
}

#[test]
fn a_body_larger_than_a_segment_and_a_commit_of_thousands_of_rows_survive() {
    let mut scene = Scene::new(1, tiny());
    let almanac = scene.open();
    scene.change(&almanac, vec![insert(0, 100_000)]).unwrap();
    scene.change(&almanac, vec![update(&scene.model, 0), insert(1, 8 << 10)]).unwrap();
    scene.change(&almanac, (2..6_000).map(|number| insert(number, 20)).collect()).unwrap();
    scene.compare(&almanac);
    let (disk, possible) = (scene.disk.crash(1), [scene.model.clone()]);
    let again = scene.resume(disk, &possible);
    again.checkpoint().unwrap();
    let changes = (2..6_000)
        .map(|number| if number % 2 == 0 { update(&scene.model, number) } else { remove(&scene.model, number) });
    let changes = changes.collect();
    scene.change(&again, changes).unwrap();
    assert_eq!(again.get(SHARD, &[key(3), key(4)], Bodies::With).unwrap().iter().flatten().count(), 1);
    scene.compare(&again);
    again.tend().unwrap();
    scene.compare(&again);
    let (disk, possible) = (scene.disk.crash(2), [scene.model.clone()]);
    drop(scene.resume(disk, &possible));
    drop((again, almanac));
}
