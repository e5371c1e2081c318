//! What the simulated disk makes of crashes, errors and lack of room.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;

use punctual_disk::{Disk, File};
use punctual_simulated_disk::{Call, Fault, SimulatedDisk};

use super::{content, kind};

const EIO: Fault = Fault { call: Call::Sync, name_contains: "", after: 0, kind: ErrorKind::Other, lasting: false };

/// A file with these bytes, durable as its name is.
fn durable(disk: &SimulatedDisk, name: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = disk.create(name).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync().unwrap();
    disk.sync().unwrap();
    file
}

/// All that the same crash may leave of a file.
fn outcomes(disk: &SimulatedDisk, name: &str) -> BTreeSet<Option<Vec<u8>>> {
    (0..500).map(|seed| disk.crash(seed).read(name)).collect()
}

#[test]
fn what_was_synced_survives_every_crash() {
    let disk = SimulatedDisk::new(1);
    let file = durable(&disk, "a", &[1; 5000]);
    file.write_at(&[2; 3000], 5000).unwrap();
    file.write_at(&[3; 10], 0).unwrap();
    file.sync().unwrap();
    file.write_at(&[4; 100], 8000).unwrap();
    disk.create("b").unwrap().write_at(b"lost", 0).unwrap();
    for bytes in outcomes(&disk, "a") {
        let bytes = bytes.unwrap();
        assert!(bytes[..10] == [3; 10] && bytes[10..5000] == [1; 4990] && bytes[5000..8000] == [2; 3000]);
    }
}

#[test]
fn unsynced_writes_may_survive_in_any_combination() {
    let disk = SimulatedDisk::new(1);
    let file = durable(&disk, "a", b"----");
    for (offset, bytes) in [b"a", b"b", b"c", b"d"].iter().enumerate() {
        file.write_at(*bytes, offset as u64).unwrap();
    }
    let outcomes = outcomes(&disk, "a");
    assert_eq!(outcomes.len(), 16, "{outcomes:?}");
}

#[test]
fn unsynced_writes_may_be_torn_at_any_byte_and_into_sectors() {
    let disk = SimulatedDisk::new(1);
    let file = durable(&disk, "a", &[0; 4096]);
    file.write_at(&[1; 4096], 0).unwrap();
    let (mut within_a_sector, mut scattered) = (0, 0);
    for bytes in outcomes(&disk, "a") {
        let bytes = bytes.unwrap();
        let written = bytes.iter().filter(|byte| **byte == 1).count();
        let first = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        within_a_sector += usize::from(written % 512 != 0);
        scattered += usize::from(written != first);
        assert!(written % 512 == 0 || written == first, "sectors are torn only in order");
    }
    assert!(within_a_sector > 20 && scattered > 20, "{within_a_sector} {scattered}");
}

#[test]
fn a_length_may_survive_without_its_bytes() {
    let disk = SimulatedDisk::new(1);
    durable(&disk, "a", b"").write_at(b"x", 9).unwrap();
    let outcomes = outcomes(&disk, "a");
    assert!(outcomes.contains(&Some(Vec::new())));
    assert!(outcomes.contains(&Some(vec![0; 10])));
    assert!(outcomes.contains(&Some(b"\0\0\0\0\0\0\0\0\0x".to_vec())));
}

#[test]
fn room_and_holes_are_as_uncertain_as_bytes_until_the_sync() {
    let disk = SimulatedDisk::new(1);
    let file = durable(&disk, "a", b"abc");
    file.allocate(5).unwrap();
    file.punch(0, 2).unwrap();
    let all = outcomes(&disk.copy(), "a");
    assert!(all.contains(&Some(b"abc".to_vec())) && all.contains(&Some(b"\0\0c\0\0".to_vec())));
    file.sync().unwrap();
    assert_eq!(outcomes(&disk, "a"), BTreeSet::from([Some(b"\0\0c\0\0".to_vec())]));
}

#[test]
fn a_file_that_is_emptied_may_still_be_full_after_a_crash() {
    let disk = SimulatedDisk::new(1);
    durable(&disk, "a", b"full");
    disk.create("a").unwrap();
    assert_eq!(outcomes(&disk, "a"), BTreeSet::from([Some(b"full".to_vec()), Some(Vec::new())]));
}

#[test]
fn a_rename_without_a_directory_sync_may_be_forgotten() {
    let disk = SimulatedDisk::new(1);
    durable(&disk, "old", b"old");
    durable(&disk, "new", b"new");
    disk.rename("new", "old").unwrap();
    assert_eq!(disk.read("old").unwrap(), b"new");
    let before = disk.copy();
    assert_eq!(outcomes(&before, "old"), BTreeSet::from([Some(b"old".to_vec()), Some(b"new".to_vec())]));
    disk.sync().unwrap();
    assert_eq!(outcomes(&disk, "old"), BTreeSet::from([Some(b"new".to_vec())]));
    assert_eq!(outcomes(&disk, "new"), BTreeSet::from([None]));
}

#[test]
fn a_renamed_file_that_was_not_synced_may_be_empty() {
    let disk = SimulatedDisk::new(1);
    durable(&disk, "a", b"old");
    disk.create("b").unwrap().write_at(b"new", 0).unwrap();
    disk.rename("b", "a").unwrap();
    disk.sync().unwrap();
    let outcomes = outcomes(&disk, "a");
    assert!(outcomes.contains(&Some(Vec::new())) && outcomes.contains(&Some(b"new".to_vec())));
    assert!(!outcomes.contains(&Some(b"old".to_vec())));
}

#[test]
fn a_prefix_of_what_happened_to_names_survives() {
    let disk = SimulatedDisk::new(1);
    durable(&disk, "a", b"1");
    disk.create("b").unwrap();
    disk.remove("a").unwrap();
    disk.rename("b", "a").unwrap();
    disk.create("c").unwrap();
    let outcomes: BTreeSet<Vec<String>> = (0..200).map(|seed| disk.crash(seed).names()).collect();
    let expected: [&[&str]; 4] = [&["a"], &["a", "b"], &["b"], &["a", "c"]];
    let expected = expected.iter().map(|names| names.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(outcomes, expected.collect());
}

#[test]
fn a_removed_file_may_come_back_with_all_that_was_durable() {
    let disk = SimulatedDisk::new(1);
    drop(durable(&disk, "a", b"kept"));
    disk.remove("a").unwrap();
    assert_eq!(outcomes(&disk, "a"), BTreeSet::from([None, Some(b"kept".to_vec())]));
}

#[test]
fn a_failed_sync_never_makes_the_lost_writes_durable() {
    let mut lost = BTreeSet::new();
    for seed in 0..100 {
        let disk = SimulatedDisk::new(seed);
        let file = durable(&disk, "a", b"--");
        file.write_at(b"x", 0).unwrap();
        file.write_at(b"y", 1).unwrap();
        disk.fail(EIO);
        assert_eq!(kind(file.sync()), ErrorKind::Other);
        assert_eq!(disk.failures(), 1);
        assert_eq!(disk.read("a").unwrap(), b"xy");
        file.sync().unwrap();
        assert_eq!(disk.read("a").unwrap(), b"xy");
        let after = outcomes(&disk, "a");
        assert_eq!(after.len(), 1, "the second sync settles it");
        lost.extend(after);
    }
    assert_eq!(lost.len(), 4, "{lost:?}");
}

#[test]
fn a_failed_write_leaves_any_of_its_first_bytes() {
    let mut left = BTreeSet::new();
    for seed in 0..100 {
        let disk = SimulatedDisk::new(seed);
        let file = disk.create("journal-1").unwrap();
        disk.fail(Fault { call: Call::Write, name_contains: "journal", kind: ErrorKind::StorageFull, ..EIO });
        assert_eq!(kind(file.write_at(b"abc", 0)), ErrorKind::StorageFull);
        left.insert(disk.read("journal-1").unwrap());
        file.write_at(b"abc", 0).unwrap();
    }
    assert_eq!(left, BTreeSet::from([b"".to_vec(), b"a".to_vec(), b"ab".to_vec(), b"abc".to_vec()]));
}

#[test]
fn a_lasting_fault_ends_when_the_disk_is_healed() {
    let disk = SimulatedDisk::new(1);
    disk.fail(Fault { call: Call::Rename, name_contains: "-> b", after: 1, lasting: true, ..EIO });
    disk.create("a").unwrap();
    disk.rename("a", "b").unwrap();
    disk.rename("b", "a").unwrap();
    assert_eq!(kind(disk.rename("a", "b")), ErrorKind::Other);
    assert_eq!(kind(disk.rename("a", "b")), ErrorKind::Other);
    assert_eq!(disk.names(), ["a"]);
    disk.heal();
    disk.rename("a", "b").unwrap();
}

#[test]
fn the_power_goes_at_the_call_that_was_named() {
    let disk = SimulatedDisk::new(1);
    let file = durable(&disk, "a", b"-");
    let call = disk.calls() + 2;
    disk.crash_at(call);
    file.len().unwrap();
    assert_eq!(disk.last_call(), None);
    assert!(file.write_at(b"x", 0).is_err());
    assert_eq!(disk.last_call(), Some((Call::Write, "a".to_owned())));
    assert_eq!(disk.calls(), call);
    assert!(file.sync().is_err() && file.len().is_err() && disk.list().is_err() && disk.lock("l").is_err());
    assert_eq!(disk.calls(), call);
    assert_eq!(outcomes(&disk, "a"), BTreeSet::from([Some(b"-".to_vec()), Some(b"x".to_vec())]));
}

#[test]
fn a_sync_at_which_the_power_goes_promises_nothing() {
    let disk = SimulatedDisk::new(1);
    let file = durable(&disk, "a", b"-");
    file.write_at(b"x", 0).unwrap();
    disk.crash_at(disk.calls() + 1);
    assert!(file.sync().is_err());
    assert_eq!(outcomes(&disk, "a").len(), 2);
}

#[test]
fn a_disk_without_power_refuses_every_call_and_the_next_one_is_free() {
    let disk = SimulatedDisk::new(1);
    let file = durable(&disk, "a", b"x");
    let _hold = disk.lock("lock").unwrap();
    let after = disk.crash(1);
    assert!(file.write_at(b"y", 0).is_err() && file.sync().is_err() && disk.open("a").is_err());
    assert_eq!(content(&*after.open("a").unwrap()), b"x");
    after.lock("lock").unwrap();
}

#[test]
fn growing_past_the_limit_finds_the_disk_full() {
    let disk = SimulatedDisk::new(1);
    let file = durable(&disk, "a", &[1; 8192]);
    disk.limit(10_000);
    assert_eq!(kind(file.allocate(10_001)), ErrorKind::StorageFull);
    assert_eq!(kind(file.write_at(&[2; 2000], 8192)), ErrorKind::StorageFull);
    assert!(disk.used() <= 10_000);
    file.write_at(&[3; 8192], 0).unwrap();
    file.allocate(10_000).unwrap();
    assert_eq!(disk.used(), 10_000);

    // A hole gives room, and takes it when it is written again.
    file.punch(0, 4096).unwrap();
    let other = disk.create("b").unwrap();
    other.allocate(4096).unwrap();
    assert_eq!(kind(file.write_at(b"x", 0)), ErrorKind::StorageFull);

    // A removed file keeps its room while it is open.
    disk.remove("b").unwrap();
    assert_eq!(disk.used(), 10_000);
    drop(other);
    file.write_at(b"x", 0).unwrap();
    assert_eq!(kind(file.write_at(b"x", u64::MAX)), ErrorKind::FileTooLarge);
}

#[test]
fn a_flipped_bit_stays_flipped() {
    let disk = SimulatedDisk::new(1);
    let file = durable(&disk, "a", b"aa");
    file.write_at(b"a", 1).unwrap();
    disk.flip("a", 0, 1);
    disk.flip("a", 1, 1);
    assert_eq!(disk.read("a").unwrap(), b"cc");
    file.sync().unwrap();
    assert_eq!(outcomes(&disk, "a"), BTreeSet::from([Some(b"cc".to_vec())]));
}

#[test]
fn overwriting_is_durable_at_once() {
    let disk = SimulatedDisk::new(1);
    let file = durable(&disk, "a", b"before");
    file.write_at(b"after that", 0).unwrap();
    disk.overwrite("a", b"now");
    disk.overwrite("b", b"new");
    assert_eq!(content(&*file), b"now");
    assert_eq!(outcomes(&disk, "a"), BTreeSet::from([Some(b"now".to_vec())]));
    assert_eq!(outcomes(&disk, "b"), BTreeSet::from([Some(b"new".to_vec())]));
}

#[test]
fn a_copy_goes_its_own_way() {
    let disk = SimulatedDisk::new(1);
    let file = durable(&disk, "a", b"-");
    let _hold = disk.lock("lock").unwrap();
    file.write_at(b"x", 0).unwrap();
    disk.create("b").unwrap();
    let copy = disk.copy();
    file.write_at(b"y", 0).unwrap();
    disk.remove("b").unwrap();
    assert_eq!(copy.read("a").unwrap(), b"x");
    assert_eq!(copy.names(), ["a", "b", "lock"]);
    copy.lock("lock").unwrap();
    assert_eq!(outcomes(&copy, "a").len(), 2, "what was not synced before can be lost after");
    file.sync().unwrap();
}

#[test]
fn the_same_seed_leaves_the_same_bytes() {
    let build = || {
        let disk = SimulatedDisk::new(7);
        for number in 0..20_u8 {
            let file = disk.create(&format!("file-{}", number % 5)).unwrap();
            file.write_at(&[number; 3000], u64::from(number) * 1000).unwrap();
        }
        disk
    };
    let (one, other) = (build(), build());
    for seed in 0..100 {
        let (one, other) = (one.crash(seed), other.crash(seed));
        assert_eq!(one.names(), other.names());
        assert!(one.names().iter().all(|name| one.read(name) == other.read(name)));
    }
}

#[test]
fn thousands_of_crashes_of_megabytes_take_seconds() {
    let mut disk = SimulatedDisk::new(1);
    for seed in 0..1000 {
        let file = durable(&disk, "journal", b"");
        file.allocate(64 << 20).unwrap();
        for number in 0..16 {
            file.write_at(&[seed as u8; 64 << 10], number << 16).unwrap();
            file.sync().unwrap();
        }
        disk = disk.crash(seed);
    }
    assert_eq!(disk.read("journal").unwrap()[..1 << 20], [999_u64 as u8; 1 << 20]);
}
