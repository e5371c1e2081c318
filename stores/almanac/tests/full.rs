//! What the almanac does on a disk that is full: it takes no more, everything else goes on for ever, and what is
//! dead gives its room back by itself.

use std::io::ErrorKind;

use punctual_almanac::{Almanac, Config, SyncPolicy};
use punctual_core::store::{Change, Hardship, Room, Store, StoreError};
use punctual_simulated_disk::{Call, Fault, SimulatedDisk};

use crate::stage::scene::{SHARD, Scene, grow, insert, key, remove, update};
use crate::stage::tiny;

fn config() -> Config {
    Config { reserve: 64 << 10, segment: 16 << 10, journal: 64 << 10, ..tiny() }
}

/// An almanac with rows on a disk that has been full since; gives how many rows there are.
fn full(seed: u64, body: usize, config: Config) -> (Scene, Almanac, u64) {
    let mut scene = Scene::new(seed, config);
    let almanac = scene.open();
    scene.disk.limit(768 << 10);
    let at_once = if body < 8_000 { 8 } else { 1 };
    for number in (0..).step_by(at_once) {
        let numbers = number..number + at_once as u64;
        scene.change(&almanac, numbers.clone().map(|number| insert(number, body)).collect()).unwrap();
        _ = almanac.tend();
        if let Some(hardship) = almanac.hardship() {
            let Hardship::NoRoom(message) = &hardship else { panic!("{hardship:?}") };
            assert!(message.contains("free some disk space"), "{message}");
            return (scene, almanac, numbers.end);
        }
    }
    unreachable!("a disk that is full is noticed")
}

/// The process is killed, and started again on a disk that is as full as before.
fn restart(scene: &mut Scene, almanac: Almanac) -> Almanac {
    let killed = scene.disk.copy();
    drop(almanac);
    go_on(scene, killed)
}

/// Goes on with another disk, on which there must be all that was confirmed.
fn go_on(scene: &mut Scene, disk: SimulatedDisk) -> Almanac {
    scene.disk = disk;
    let almanac = scene.open();
    is_as_confirmed(scene, &almanac);
    almanac
}

/// Reads all rows. It does not try every way to find each, as `Scene::compare` does: there are many.
fn is_as_confirmed(scene: &Scene, almanac: &Almanac) {
    let found = scene.read(almanac).unwrap();
    assert!(found == scene.model, "{}", found.differences(&scene.model));
}

/// Removes the first rows, one part after the other.
fn drain(scene: &mut Scene, almanac: &Almanac, rows: u64) {
    let changes = (0..rows).map(|number| remove(&scene.model, number)).collect::<Vec<Change>>();
    for changes in changes.chunks(16) {
        scene.change(almanac, changes.to_vec()).unwrap();
        _ = almanac.tend();
    }
}

fn is_live(scene: &Scene, number: u64) -> bool {
    scene.model.row_of(SHARD, punctual_core::store::Table::Live, &key(number)).is_some()
}

#[test]
fn on_a_full_disk_acknowledging_and_cancelling_go_on_for_ever() {
    let (mut scene, almanac, rows) = full(1, 1_000, config());
    // Updates of the same rows again and again: many times what was set aside.
    let mut bytes = 0;
    while bytes < 10 * scene.config.reserve {
        for number in (0..100).step_by(4) {
            let changes = (number..number + 4).map(|number| update(&scene.model, number)).collect();
            scene.change(&almanac, changes).unwrap();
            bytes += 24 + 11 + 4 * (10 + 32 + 15);
        }
        _ = almanac.tend();
    }
    is_as_confirmed(&scene, &almanac);
    drain(&mut scene, &almanac, rows / 2);
    let disk = scene.disk.crash(1);
    drop(go_on(&mut scene, disk));
}

#[test]
fn on_a_full_disk_entries_of_the_cluster_are_written_for_ever() {
    let (mut scene, mut almanac, _) = full(4, 1_000, config());
    for round in 0..4_u8 {
        // Several times what was set aside: it is told again, and the entries with it.
        for number in 0..400 {
            scene.put(&almanac, ["level", "pins"][number % 2], &[round; 300]).unwrap();
        }
        is_as_confirmed(&scene, &almanac);
        almanac = restart(&mut scene, almanac);
    }
    let disk = scene.disk.crash(1);
    drop(go_on(&mut scene, disk));
}

#[test]
fn a_full_almanac_survives_restarts_and_drains_to_empty() {
    for (seed, body) in [(1, 1_000), (2, 3_000), (3, 7_000)] {
        let (mut scene, mut almanac, rows) = full(seed, body, config());
        for start in 0..8 {
            almanac = restart(&mut scene, almanac);
            // A little is done in each life, and leaves rows behind whose bodies are elsewhere.
            for number in start * 3..(start + 1) * 3 {
                scene.change(&almanac, vec![update(&scene.model, number)]).unwrap();
            }
            if start % 3 == 0 {
                _ = almanac.tend();
            }
        }
        drain(&mut scene, &almanac, rows);
        almanac.tend().unwrap();
        assert_eq!(almanac.hardship(), None, "body of {body}");
        let usage = almanac.usage();
        assert_eq!(usage.rows_in_runs, 0, "{usage:?}");
        for number in rows..rows + 20 {
            scene.change(&almanac, vec![insert(number, body)]).unwrap();
            _ = almanac.tend();
        }
        scene.compare(&almanac);
    }
}

#[test]
fn rows_that_no_run_could_be_written_of_do_not_stand_in_the_way_once_they_are_gone() {
    // Nothing is in a run: the first one could not be written, and its rows wait for it.
    let mut scene = Scene::new(7, Config { memory: 768 << 10, journal: 512 << 10, ..config() });
    let almanac = scene.open();
    almanac.tend().unwrap();
    scene.disk.limit(900 << 10);
    let mut rows = 0;
    while almanac.hardship().is_none() {
        scene.change(&almanac, (rows..rows + 8).map(|number| insert(number, 1_000)).collect()).unwrap();
        rows += 8;
        _ = almanac.tend();
    }
    assert!(almanac.checkpoint().is_err());
    drain(&mut scene, &almanac, rows);
    almanac.tend().unwrap();
    assert_eq!(almanac.hardship(), None, "{:?}", almanac.usage());
    is_as_confirmed(&scene, &almanac);
}

#[test]
fn a_run_without_living_rows_goes_without_any_room_being_taken() {
    let (mut scene, almanac, rows) = full(4, 2_000, config());
    let (before, used) = (almanac.usage(), scene.disk.used());
    // From here on not a byte more can be had.
    scene.disk.limit(scene.disk.used());
    drain(&mut scene, &almanac, rows);
    let after = almanac.usage();
    assert!(before.runs > 1 && after.runs < before.runs, "{before:?}, {after:?}");
    assert_eq!(almanac.hardship(), None, "it takes tasks again, on a disk that is no larger");
    almanac.checkpoint().unwrap();
    assert_eq!(almanac.usage().runs, 0);
    assert!(scene.disk.used() + before.run_bytes / 2 < used, "{} of {used}", scene.disk.used());
    let disk = scene.disk.crash(4);
    drop(go_on(&mut scene, disk));
}

#[test]
fn rows_that_die_while_a_run_is_written_give_their_room_back_as_well() {
    let mut scene = Scene::new(9, Config { memory: 32 << 20, journal: 16 << 20, ..config() });
    let almanac = scene.open();
    for number in 0..60 {
        scene.change(&almanac, vec![insert(number, 50_000)]).unwrap();
    }
    almanac.checkpoint().unwrap();
    // The next run is written as of now, but it takes a while until the manifest can name it.
    scene.change(&almanac, vec![insert(60, 100)]).unwrap();
    let kind = ErrorKind::PermissionDenied;
    scene.disk.fail(Fault { call: Call::Create, name_contains: "manifest", after: 0, kind, lasting: true });
    assert!(almanac.checkpoint().is_err());
    drain(&mut scene, &almanac, 58);
    scene.disk.heal();
    almanac.tend().unwrap();
    assert_eq!(almanac.usage().runs, 2);

    let used = scene.disk.used();
    scene.disk.limit(used);
    for number in (61..4_061).step_by(10) {
        scene.change(&almanac, (number..number + 10).map(|number| insert(number, 900)).collect()).unwrap();
        _ = almanac.tend();
        assert_eq!(almanac.hardship(), None, "there is room, if it is given back");
        if scene.disk.used() + (2 << 20) < used {
            break;
        }
    }
    assert!(scene.disk.used() + (2 << 20) < used, "{} of {used}", scene.disk.used());
    is_as_confirmed(&scene, &almanac);
}

#[test]
fn rows_whose_bodies_are_in_runs_survive_being_told_again_and_any_crash_meanwhile() {
    for seed in 0..30 {
        let sync =
            if seed % 2 == 0 { SyncPolicy::Always } else { SyncPolicy::Every(std::time::Duration::from_secs(1)) };
        let (mut scene, almanac, rows) = full(seed, 1_500, Config { sync, ..config() });
        let changed = |number: u64| match number % 3 {
            0 => Some(update(&scene.model, number)),
            1 => Some(remove(&scene.model, number)),
            _ => None,
        };
        let changes: Vec<Change> = (0..rows).filter_map(changed).collect();
        for changes in changes.chunks(10) {
            scene.change(&almanac, changes.to_vec()).unwrap();
        }
        // The power goes at some call of what gives room back.
        scene.disk.crash_at(scene.disk.calls() + 1 + seed);
        let ended = almanac.tend();
        if ended.is_err() && scene.disk.last_call().is_none() {
            is_as_confirmed(&scene, &almanac);
        }
        drop(almanac);
        // Without a sync for each commit a power loss may take some; a killed process loses none.
        let disk = if sync == SyncPolicy::Always { scene.disk.crash(seed) } else { scene.disk.copy() };
        let again = go_on(&mut scene, disk);
        assert!(is_live(&scene, 0) && !is_live(&scene, 1));
        again.tend().ok();
        is_as_confirmed(&scene, &again);
    }
}

/// Makes all rows longer, one after the other, as a caller does that pays no heed to what the store says of its room, until
/// that is refused; gives how many of them are longer now.
fn grow_all(scene: &mut Scene, almanac: &Almanac, rows: u64, length: usize) -> u64 {
    for number in 0..rows {
        match scene.change(almanac, vec![grow(&scene.model, number, length)]) {
            Ok(()) => {}
            Err((StoreError::Unavailable(why), _)) => {
                assert!(why.contains("the journal has no room"), "{why}");
                assert_eq!(almanac.room(), Room::None, "it says so before it refuses");
                return number;
            }
            Err((error, _)) => panic!("{error}"),
        }
        if number % 16 == 0 {
            _ = almanac.tend();
        }
    }
    rows
}

#[test]
fn rows_that_grow_on_a_full_disk_are_stopped_before_it_locks_itself_out() {
    for (seed, body, length) in [(1, 100, 200), (2, 1_000, 700), (3, 3_000, 4_000), (4, 200, 9_000)] {
        let (mut scene, mut almanac, rows) = full(seed, body, config());
        let grown = grow_all(&mut scene, &almanac, rows, length);
        assert!(grown < rows, "there is no room for all of them");
        // What goes does so for ever, across any number of starts, with or without anybody tending.
        let mut gone = 0;
        for start in 0..10 {
            almanac = restart(&mut scene, almanac);
            for number in gone..gone + 3 {
                scene.change(&almanac, vec![remove(&scene.model, number)]).unwrap();
            }
            gone += 3;
            if start % 3 == 0 {
                _ = almanac.tend();
            }
        }
        for changes in (gone..rows).map(|number| remove(&scene.model, number)).collect::<Vec<_>>().chunks(16) {
            scene.change(&almanac, changes.to_vec()).unwrap();
        }
        almanac.tend().unwrap();
        assert_eq!((almanac.hardship(), almanac.room()), (None, Room::Enough), "rows of {body}, then {length}");
        for number in rows..rows + 20 {
            scene.change(&almanac, vec![insert(number, body)]).unwrap();
        }
        is_as_confirmed(&scene, &almanac);
    }
}

#[test]
fn rows_of_more_than_half_a_segment_do_not_lock_it_out() {
    let (mut scene, mut almanac, rows) = full(5, 9_900, Config { memory: 1 << 20, journal: 256 << 10, ..config() });
    for start in 0..10 {
        almanac = restart(&mut scene, almanac);
        scene.change(&almanac, vec![update(&scene.model, rows - 1 - start)]).unwrap();
        if start % 3 == 0 {
            _ = almanac.tend();
        }
    }
    drain(&mut scene, &almanac, rows);
    almanac.tend().unwrap();
    assert_eq!(almanac.hardship(), None);
    is_as_confirmed(&scene, &almanac);
}

#[test]
fn a_retelling_that_is_cut_short_leaves_all_segments_free_for_the_next() {
    for seed in 0..24 {
        let (mut scene, almanac, rows) = full(seed, 300, config());
        grow_all(&mut scene, &almanac, rows, 200);
        let changes: Vec<Change> = (0..rows / 3).map(|number| remove(&scene.model, number)).collect();
        for changes in changes.chunks(10) {
            scene.change(&almanac, changes.to_vec()).unwrap();
        }
        // The process is killed at some call of the retelling, several times over: each time the next one starts
        // from where it ended.
        let mut killed = Some(almanac);
        for attempt in 0..6 {
            if let Some(almanac) = killed.take() {
                scene.disk.crash_at(scene.disk.calls() + 1 + seed + attempt);
                _ = almanac.tend();
                let disk = scene.disk.copy();
                drop(almanac);
                killed = Some(go_on(&mut scene, disk));
            }
        }
        let almanac = killed.unwrap();
        for number in rows / 3..rows {
            scene.change(&almanac, vec![remove(&scene.model, number)]).unwrap();
        }
        almanac.tend().unwrap();
        assert_eq!(almanac.hardship(), None, "seed {seed}");
    }
}

#[test]
fn an_error_in_the_middle_of_a_retelling_takes_no_segment_away() {
    // What is read for it fails, or its manifest cannot be written.
    for (call, name_contains) in [(Call::Read, "run"), (Call::Rename, "manifest"), (Call::Create, "manifest")] {
        let (mut scene, mut almanac, rows) = full(6, 1_000, config());
        for number in 0..rows / 2 {
            scene.change(&almanac, vec![update(&scene.model, number)]).unwrap();
        }
        for changes in (0..rows / 4).map(|number| remove(&scene.model, number)).collect::<Vec<_>>().chunks(16) {
            scene.change(&almanac, changes.to_vec()).unwrap();
        }
        let kind = ErrorKind::Other;
        scene.disk.fail(Fault { call, name_contains, after: 0, kind, lasting: true });
        for _ in 0..20 {
            _ = almanac.tend();
        }
        scene.disk.heal();
        for _ in 0..3 {
            almanac = restart(&mut scene, almanac);
        }
        for number in rows / 4..rows {
            scene.change(&almanac, vec![remove(&scene.model, number)]).unwrap();
        }
        almanac.tend().unwrap();
        assert_eq!(almanac.hardship(), None, "{call:?} {name_contains}");
        is_as_confirmed(&scene, &almanac);
    }
}

#[test]
fn what_another_error_keeps_from_being_written_is_not_told_as_lack_of_room() {
    for call in [Call::Create, Call::Allocate, Call::Write, Call::Sync] {
        let mut scene = Scene::new(1, config());
        let almanac = scene.open();
        for (kind, word) in [(ErrorKind::PermissionDenied, "permission"), (ErrorKind::Other, "disk")] {
            scene.disk.fail(Fault { call, name_contains: "journal-0", after: 0, kind, lasting: true });
            _ = almanac.tend();
            let Some(Hardship::Failing(message)) = almanac.hardship() else {
                panic!("{call:?} {kind}: {:?}", almanac.hardship())
            };
            assert!(
                message.contains(word) && message.contains("a segment of the journal could not be created"),
                "{message}"
            );
            assert!(!message.contains("room"), "{message}");
            scene.disk.heal();
            almanac.tend().unwrap();
            assert_eq!(almanac.hardship(), None);
            // The next fault has segments to make, too.
            for number in 0..40 {
                let number = number + if kind == ErrorKind::Other { 100 } else { 0 };
                scene.change(&almanac, vec![insert(number, 1_000)]).unwrap();
            }
        }
    }
}
