//! Parts of the journal that are gone: deleted, emptied, cut or wiped. They are missed, and the almanac does not open
//! unless the loss is accepted.

use punctual_almanac::inspect::check;
use punctual_almanac::{Almanac, Config, Disk, OpenError};
use punctual_core::store::Store;
use punctual_simulated_disk::{Call, Fault, SimulatedDisk};

use crate::stage::model::Model;
use crate::stage::scene::{Scene, insert};
use crate::stage::tiny;

type Spoil = fn(&SimulatedDisk, &str);

/// All that can happen to a segment.
const WAYS: [(&str, Spoil); 6] = [
    ("deleted", |disk, name| disk.remove(name).unwrap()),
    ("emptied", |disk, name| disk.overwrite(name, &[])),
    ("cut to its head", |disk, name| disk.overwrite(name, &disk.read(name).unwrap()[..1_024])),
    ("cut in the middle", |disk, name| {
        let bytes = disk.read(name).unwrap();
        disk.overwrite(name, &bytes[..bytes.len() / 2]);
    }),
    ("half wiped", |disk, name| {
        let mut bytes = disk.read(name).unwrap();
        bytes[1_100..].fill(0);
        disk.overwrite(name, &bytes);
    }),
    ("without its beginning", |disk, name| {
        let mut bytes = disk.read(name).unwrap();
        bytes[..1_024].fill(0);
        disk.overwrite(name, &bytes);
    }),
];

/// An almanac whose journal takes several segments.
fn journal() -> (Scene, Almanac) {
    let mut scene = Scene::new(5, Config { journal: 1 << 20, memory: 4 << 20, ..tiny() });
    let almanac = scene.open();
    almanac.tend().unwrap();
    for number in 0..60 {
        scene.change(&almanac, vec![insert(number, 300)]).unwrap();
    }
    (scene, almanac)
}

/// The segments that hold records, in their order.
fn segments(disk: &SimulatedDisk) -> Vec<String> {
    let number = |name: &String| {
        let bytes = disk.read(name).unwrap();
        let head: u64 = u64::from_le_bytes(bytes[20..28].try_into().unwrap());
        (bytes[..8] == *b"PUNCJRNL").then_some(head)
    };
    let names = disk.names().into_iter().filter(|name| name.starts_with("journal-"));
    let mut used: Vec<(u64, String)> = names.filter_map(|name| Some((number(&name)?, name))).collect();
    used.sort();
    used.into_iter().map(|(_, name)| name).collect()
}

fn on(scene: &Scene, disk: SimulatedDisk, accepts_loss: bool) -> Scene {
    let mut other = Scene::new(5, Config { accepts_loss, ..scene.config.clone() });
    other.disk = disk;
    other
}

/// What is lost is missed by opening and by the check; accepted, the rest opens, and then for good.
fn is_missed(scene: &Scene, disk: &SimulatedDisk, what: &str) {
    let error = on(scene, disk.copy(), false).refusal();
    let OpenError::Damaged(damage) = &error else { panic!("{what}: {error}") };
    assert!(damage.file.starts_with("journal-"), "{what}: {damage}");
    assert!(error.to_string().contains("backup"), "{error}");
    let report = check(disk, &mut |_| ()).unwrap();
    assert!(!report.damage.is_empty(), "{what}: the check finds nothing");

    let forced = on(scene, disk.copy(), true);
    let almanac = forced.try_open().unwrap();
    assert!(almanac.losses().iter().any(|loss| loss.contains("Lost commits: ")), "{what}: {:?}", almanac.losses());
    let left = scene.read(&almanac).unwrap();
    assert!(is_a_beginning(&left, &scene.model), "{what}");
    // A segment of which only the empty end was cut off has lost nothing.
    assert!(left != scene.model || what.ends_with("cut in the middle"), "{what}");
    drop(almanac);
    let again = on(scene, forced.disk.copy(), false).try_open().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(scene.read(&again).unwrap() == left, "{what}");
    assert_eq!(again.losses(), [""; 0]);
}

/// Whether all that is left was there.
fn is_a_beginning(left: &Model, all: &Model) -> bool {
    left.differences(all).lines().all(|line| !line.contains("expected nothing"))
}

#[test]
fn whatever_happens_to_a_segment_of_an_almanac_that_was_closed_is_noticed() {
    let (scene, almanac) = journal();
    drop(almanac);
    let segments = segments(&scene.disk);
    assert!(segments.len() > 2, "{segments:?}");
    for name in &segments {
        for (way, spoil) in WAYS {
            let disk = scene.disk.copy();
            spoil(&disk, name);
            is_missed(&scene, &disk, &format!("{name} {way}"));
        }
    }
    let disk = scene.disk.copy();
    segments.iter().for_each(|name| disk.remove(name).unwrap());
    is_missed(&scene, &disk, "all deleted");
}

#[test]
fn whatever_happens_to_a_segment_of_an_almanac_that_was_killed_is_noticed() {
    let (scene, almanac) = journal();
    let killed = scene.disk.copy();
    for name in &segments(&killed) {
        for (way, spoil) in WAYS {
            let disk = killed.copy();
            spoil(&disk, name);
            is_missed(&scene, &disk, &format!("{name} {way}"));
        }
    }
    drop(almanac);
}

#[test]
fn every_confirmed_record_of_an_almanac_that_was_killed_is_missed() {
    let mut scene = Scene::new(6, Config { journal: 1 << 20, memory: 4 << 20, ..tiny() });
    let almanac = scene.open();
    for number in 0..40 {
        scene.change(&almanac, vec![insert(number, 100)]).unwrap();
        let disk = scene.disk.copy();
        let last = segments(&disk).pop().unwrap();
        let mut bytes = disk.read(&last).unwrap();
        let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
        // A byte of the last record's body.
        bytes[end - 10..=end].fill(0);
        disk.overwrite(&last, &bytes);
        is_missed(&scene, &disk, &format!("record {number}"));
    }
    drop(almanac);
}

#[test]
fn the_latest_segment_is_missed_after_a_power_loss_as_soon_as_it_was_begun() {
    let (scene, almanac) = journal();
    for seed in 0..10 {
        let after_power_loss = scene.disk.crash(seed);
        let last = segments(&after_power_loss).pop().unwrap();
        for (way, spoil) in WAYS.iter().filter(|(way, _)| *way != "half wiped") {
            let disk = after_power_loss.copy();
            spoil(&disk, &last);
            is_missed(&scene, &disk, &format!("{last} {way}"));
        }
    }
    drop(almanac);
}

#[test]
fn a_note_that_cannot_be_written_hinders_nobody() {
    let mut scene = Scene::new(8, Config { journal: 1 << 20, memory: 4 << 20, ..tiny() });
    let almanac = scene.open();
    for call in [Call::Write, Call::Sync] {
        let kind = std::io::ErrorKind::Other;
        scene.disk.fail(Fault { call, name_contains: "reach", after: 0, kind, lasting: true });
    }
    for number in 0..60 {
        scene.change(&almanac, vec![insert(number, 300)]).unwrap();
    }
    almanac.tend().unwrap();
    assert!(scene.disk.failures() > 60, "it was tried");
    assert_eq!(almanac.hardship(), None);
    for seed in 0..10 {
        let again = on(&scene, scene.disk.copy().crash(seed), false).try_open().unwrap();
        assert!(scene.read(&again).unwrap() == scene.model);
    }
    let (killed, possible) = (scene.disk.copy(), [scene.model.clone()]);
    drop(scene.resume(killed, &possible));
    drop(almanac);
}

/// What can happen to the note itself.
const NOTE_WAYS: [fn(&SimulatedDisk); 3] = [
    |disk| disk.remove("reach").unwrap(),
    |disk| disk.overwrite("reach", &[]),
    |disk| disk.overwrite("reach", &[7; 1_536]),
];

#[test]
fn a_note_of_how_far_the_journal_reaches_must_be_there() {
    let (scene, almanac) = journal();
    drop(almanac);
    for spoil in NOTE_WAYS {
        let disk = scene.disk.copy();
        spoil(&disk);
        let error = on(&scene, disk.copy(), false).refusal();
        assert!(matches!(&error, OpenError::Damaged(damage) if damage.file == "reach"), "{error}");
        assert!(error.is_loss(), "it would open without");
        assert!(!check(&disk, &mut |_| ()).unwrap().damage.is_empty());
    }
}

#[test]
fn a_note_whose_loss_is_accepted_is_begun_anew_and_nothing_else_is_lost() {
    let (scene, almanac) = journal();
    drop(almanac);
    for spoil in NOTE_WAYS {
        let disk = scene.disk.copy();
        spoil(&disk);
        let forced = on(&scene, disk, true);
        let almanac = forced.try_open().unwrap();
        let losses = almanac.losses();
        assert!(losses.len() == 1 && losses[0].contains("How far the journal went is unknown"), "{losses:?}");
        assert!(scene.read(&almanac).unwrap() == scene.model);
        drop(almanac);
        assert_eq!(check(&forced.disk, &mut |_| ()).unwrap().damage, []);
        let again = on(&scene, forced.disk.copy(), false).try_open().unwrap();
        assert_eq!(again.losses(), [""; 0]);
        assert!(scene.read(&again).unwrap() == scene.model);
    }
}

#[test]
fn an_almanac_that_was_there_and_is_gone_is_not_begun_anew() {
    let mut scene = Scene::new(1, Config { must_exist: true, ..tiny() });
    let error = scene.refusal();
    assert!(matches!(error, OpenError::Gone { .. }), "{error}");
    assert!(error.to_string().contains("backup"), "{error}");
    assert_eq!(scene.disk.names(), ["lock"], "nothing was made");
    scene.config.accepts_loss = true;
    let almanac = scene.open();
    assert!(almanac.losses()[0].contains("Everything in it is lost"), "{:?}", almanac.losses());
    assert_eq!(almanac.hardship(), None);
}
