//! Files that hold something else than what was written: a torn tail is cut silently, everything else is
//! an error that names the file, the place in it and what to do.

use punctual_almanac::{Almanac, Config, Damage, OpenError};
use punctual_core::store::{Bodies, Find, Look, StoreError, Table};
use punctual_simulated_disk::SimulatedDisk;

use crate::stage::model::{Model, everything};
use crate::stage::scene::{Scene, insert, remove, update};
use crate::stage::tiny;

/// Where the first record of a segment begins.
const RECORDS: usize = 1_024;

/// A record of the journal: where it begins and ends, and its sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Record {
    begin: usize,
    end: usize,
    sequence: u64,
}

/// The records of a segment, by nothing but their lengths and sequences.
fn records(segment: &[u8]) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let mut begin = RECORDS;
    while let Some(head) = segment.get(begin..begin + 24) {
        let length = u32::from_le_bytes(head[4..8].try_into().unwrap()) as usize;
        let sequence = u64::from_le_bytes(head[8..16].try_into().unwrap());
        if sequence == 0 || records.last().is_some_and(|last| last.sequence + 1 != sequence) {
            break;
        }
        let end = begin + (24 + length).next_multiple_of(8);
        records.push(Record { begin, end, sequence });
        begin = end;
    }
    records
}

/// The journal's files that hold records, in order.
fn segments(disk: &SimulatedDisk) -> Vec<(String, Vec<u8>)> {
    let names = disk.names().into_iter().filter(|name| name.starts_with("journal-"));
    let mut segments: Vec<_> = names.map(|name| (name.clone(), disk.read(&name).unwrap())).collect();
    segments.retain(|(_, bytes)| !records(bytes).is_empty());
    segments.sort_by_key(|(_, bytes)| records(bytes)[0].sequence);
    segments
}

fn run_name(disk: &SimulatedDisk) -> String {
    disk.names().into_iter().find(|name| name.starts_with("run-")).expect("there is a run")
}

/// A scene with some segments of records, and no run.
fn journal_of(commits: u64) -> (Scene, Almanac) {
    let mut scene = Scene::new(5, tiny());
    let almanac = scene.open();
    for number in 0..commits {
        scene.change(&almanac, vec![insert(number, 300)]).unwrap();
    }
    (scene, almanac)
}

/// Opens a copy of the disk after something was done to it.
fn open_spoilt(scene: &Scene, spoil: impl FnOnce(&SimulatedDisk)) -> Result<Model, OpenError> {
    let mut other = Scene::new(5, scene.config.clone());
    other.disk = scene.disk.copy();
    spoil(&other.disk);
    let almanac = other.try_open()?;
    Ok(scene.read(&almanac).unwrap())
}

/// What is wrong, as the message has to tell it.
fn damage(error: OpenError) -> Damage {
    let message = error.to_string();
    let OpenError::Damaged(damage) = error else { panic!("{message}") };
    is_helpful(&message, &damage.file, Some(damage.offset));
    damage
}

fn is_helpful(message: &str, file: &str, offset: Option<u64>) {
    assert!(message.contains(file), "the file is not named: {message}");
    let place = offset.map_or("damaged at byte ".to_owned(), |offset| format!("damaged at byte {offset}:"));
    assert!(message.contains(&place), "the place is not named: {message}");
    assert!(message.contains("backup") && message.contains("check"), "what to do is not said: {message}");
}

#[test]
fn a_bit_flipped_in_a_record_before_the_tail_is_an_error_that_names_file_and_offset() {
    let (scene, _almanac) = journal_of(40);
    let segments = segments(&scene.disk);
    assert!(segments.len() >= 2);
    let last = segments.last().and_then(|(_, bytes)| records(bytes).last().copied()).unwrap();
    for (name, bytes) in &segments {
        for record in records(bytes).into_iter().filter(|record| *record != last) {
            let Record { begin, end, .. } = record;
            for at in (begin..begin + 24).chain((begin + 24..end).step_by(37)).chain([end - 1]) {
                let opened = open_spoilt(&scene, |disk| disk.flip(name, at as u64, (at % 8) as u8));
                let damage = damage(opened.err().unwrap_or_else(|| panic!("{record:?} of {name}, byte {at}")));
                assert_eq!((damage.file.as_str(), damage.offset), (name.as_str(), begin as u64));
                assert!(damage.what.contains(&format!("sequence {}", record.sequence)), "{damage}");
            }
        }
    }
}

#[test]
fn a_bit_flipped_in_the_last_record_is_noticed_if_the_almanac_was_closed() {
    let (scene, almanac) = journal_of(10);
    let (name, bytes) = segments(&scene.disk).pop().unwrap();
    let last = *records(&bytes).last().unwrap();
    drop(almanac);
    for at in (last.begin..last.end).step_by(5) {
        let opened = open_spoilt(&scene, |disk| disk.flip(&name, at as u64, 3));
        assert_eq!(damage(opened.unwrap_err()).offset, last.begin as u64);
    }
}

#[test]
fn a_flipped_bit_in_one_copy_of_a_segments_head_is_survived_and_in_both_is_an_error() {
    let (scene, _almanac) = journal_of(40);
    for (name, _) in segments(&scene.disk) {
        for at in 0..44 {
            for copy in [0, 512] {
                let found = open_spoilt(&scene, |disk| disk.flip(&name, copy + at, (at % 8) as u8));
                assert!(found.unwrap() == scene.model);
            }
            let both = open_spoilt(&scene, |disk| [0, 512].iter().for_each(|copy| disk.flip(&name, copy + at, 7)));
            let message = both.unwrap_err().to_string();
            assert!(message.contains(&name), "{message}");
            assert!(message.contains("damaged at byte 0:") || message.contains("use a newer Punctual"), "{message}");
        }
    }
}

/// As if the process had been killed while it wrote the last record: before it noted that it was on disk.
fn unconfirmed(disk: &SimulatedDisk, before: &SimulatedDisk) {
    disk.overwrite("reach", &before.read("reach").unwrap());
}

#[test]
fn a_torn_tail_is_cut_silently() {
    let (mut scene, almanac) = journal_of(12);
    let before = (scene.disk.copy(), scene.model.clone());
    scene.change(&almanac, vec![update(&scene.model, 3), remove(&scene.model, 4), insert(50, 60)]).unwrap();
    let (name, bytes) = segments(&scene.disk).pop().unwrap();
    let last = *records(&bytes).last().unwrap();
    let old = before.0.read(&name).unwrap();
    for torn in last.begin..=last.end {
        let mix = [&bytes[..torn], &old[torn..]].concat();
        let torn_off = |disk: &SimulatedDisk| {
            disk.overwrite(&name, &mix);
            unconfirmed(disk, &before.0);
        };
        let found = open_spoilt(&scene, torn_off).unwrap();
        // The last bytes of a record may be zeros, which were there before.
        let whole = mix == bytes;
        assert!(found == if whole { scene.model.clone() } else { before.1.clone() }, "torn at {torn} of {last:?}");
    }
}

#[test]
fn an_almanac_goes_on_after_a_torn_tail_and_what_was_cut_never_comes_back() {
    let (mut scene, almanac) = journal_of(12);
    let (then, before) = (scene.disk.copy(), scene.model.clone());
    scene.change(&almanac, vec![insert(50, 600)]).unwrap();
    let (name, mut bytes) = segments(&scene.disk).pop().unwrap();
    let last = *records(&bytes).last().unwrap();
    bytes[last.end - 9] ^= 1;
    scene.disk = scene.disk.copy();
    scene.disk.overwrite(&name, &bytes);
    unconfirmed(&scene.disk, &then);
    scene.model = before;
    let again = scene.open();
    scene.compare(&again);
    scene.change(&again, vec![insert(51, 600)]).unwrap();
    // Even if the bit comes back.
    bytes[last.end - 9] ^= 1;
    scene.disk = scene.disk.copy();
    scene.disk.overwrite(&name, &bytes);
    let once_more = scene.open();
    scene.compare(&once_more);
    drop((again, almanac));
}

#[test]
fn a_stale_record_of_a_recycled_segment_is_never_taken_for_a_new_one() {
    let mut scene = Scene::new(1, Config { segment: 4 << 10, journal: 64 << 10, ..tiny() });
    let almanac = scene.open();
    scene.change(&almanac, vec![insert(0, 10), insert(1, 10)]).unwrap();
    let mut stale = 0;
    for round in 0..60 {
        almanac.checkpoint().unwrap();
        for step in 0..1 + round % 9 {
            // All of one length, so that each begins where an old one did.
            scene.change(&almanac, vec![update(&scene.model, step % 2)]).unwrap();
            let (name, bytes) = segments(&scene.disk).pop().unwrap();
            let end = records(&bytes).last().unwrap().end;
            let length = end - records(&bytes).last().unwrap().begin;
            let next = u64::from_le_bytes(bytes[end + 8..end + 16].try_into().unwrap());
            let is_stale = next != 0 && bytes[end + 4..end + 8] == bytes[end - length + 4..end - length + 8];
            stale += usize::from(is_stale);
            let found = open_spoilt(&scene, |_| {}).unwrap();
            assert!(found == scene.model, "{name}: {}", found.differences(&scene.model));
            if is_stale {
                // Not even with the sequence that should come next.
                let last = records(&bytes).last().unwrap().sequence;
                let found = open_spoilt(&scene, |disk| {
                    let mut bytes = bytes.clone();
                    bytes[end + 8..end + 16].copy_from_slice(&(last + 1).to_le_bytes());
                    disk.overwrite(&name, &bytes);
                });
                assert!(found.unwrap() == scene.model);
            }
        }
    }
    assert!(stale > 100, "only {stale} times an old record stood right after the last one");
}

#[test]
fn a_whole_record_with_the_next_sequence_is_not_taken_if_it_is_of_an_earlier_use_of_the_segment() {
    let mut scene = Scene::new(1, Config { segment: 4 << 10, journal: 64 << 10, ..tiny() });
    let almanac = scene.open();
    scene.change(&almanac, vec![insert(0, 10)]).unwrap();
    let (before, old) = segments(&scene.disk).pop().unwrap();
    almanac.checkpoint().unwrap();
    scene.change(&almanac, vec![update(&scene.model, 0)]).unwrap();
    scene.change(&almanac, vec![update(&scene.model, 0)]).unwrap();
    let (name, bytes) = segments(&scene.disk).pop().unwrap();
    assert_eq!(name, before, "the segment is written over");

    // The first update once more, as if it came after the second.
    let (first, last) = (records(&bytes)[0], records(&bytes)[1]);
    let open_with = |salt: &[u8]| {
        let mut record = bytes[first.begin..first.end].to_vec();
        record[8..16].copy_from_slice(&(last.sequence + 1).to_le_bytes());
        record[16..24].copy_from_slice(&last.sequence.to_le_bytes());
        let sum = crc32c::crc32c_append(crc32c::crc32c(salt), &record[4..]);
        record[..4].copy_from_slice(&sum.to_le_bytes());
        let mut bytes = bytes.clone();
        bytes[last.end..last.end + record.len()].copy_from_slice(&record);
        open_spoilt(&scene, |disk| disk.overwrite(&name, &bytes)).unwrap()
    };
    assert!(open_with(&bytes[28..36]) != scene.model, "such a record of this use would count");
    assert!(open_with(&old[28..36]) == scene.model);
}

/// Reads everything there is in every way.
fn read_all(almanac: &Almanac, scene: &Scene) -> Result<Model, StoreError> {
    let model = scene.read(almanac)?;
    for shard in &scene.work.shards {
        almanac.numbered(*shard, &scene.model.numbers(*shard), Bodies::With)?;
        for group in &scene.work.groups {
            for table in Table::ALL {
                let find = Find { table, group: group.clone(), from_seq: 0, limit: 1_000, bodies: Bodies::With };
                almanac.find(*shard, &find)?;
            }
        }
    }
    Ok(model)
}

/// A scene with nothing but a run.
fn run_of(rows: u64) -> Scene {
    let mut scene = Scene::new(5, tiny());
    let almanac = scene.open();
    (0..30).for_each(|_| scene.commit(&almanac).unwrap());
    scene.change(&almanac, (0..rows).map(|number| insert(number, 40)).collect()).unwrap();
    almanac.checkpoint().unwrap();
    drop(almanac);
    scene
}

#[test]
fn a_flipped_bit_in_a_run_is_noticed_when_it_is_read() {
    let scene = run_of(400);
    let name = run_name(&scene.disk);
    let length = scene.disk.read(&name).unwrap().len() as u64;
    let mut other = Scene::new(5, scene.config.clone());
    for at in (0..length).step_by(61).chain(length - 700..length) {
        other.disk = scene.disk.copy();
        other.disk.flip(&name, at, (at % 8) as u8);
        let noticed = match other.try_open() {
            Err(error) => error.to_string(),
            Ok(almanac) => match read_all(&almanac, &scene) {
                Err(StoreError::Poisoned(message)) => message,
                outcome => panic!("byte {at} of {length}: {outcome:?}"),
            },
        };
        is_helpful(&noticed, &name, None);
    }
}

#[test]
fn a_flipped_bit_in_a_run_is_no_reason_to_lose_what_can_be_read() {
    let mut scene = run_of(400);
    let name = run_name(&scene.disk);
    // In the rows, which are not looked at when the almanac is opened.
    scene.disk.flip(&name, 100, 0);
    let almanac = scene.open();
    assert!(scene.work.shards.iter().any(|shard| almanac.scan(*shard, &everything(Table::Live)).is_err()));
    assert!(scene.work.shards.iter().any(|shard| almanac.scan(*shard, &everything(Table::Live)).is_ok()));
    // The rows that it cannot read are not left behind: nothing is carried over, and the run stays.
    (0..5).for_each(|_| _ = almanac.checkpoint());
    assert!(scene.disk.names().contains(&name));
    drop(almanac);
    scene.disk.flip(&name, 100, 0);
    let almanac = scene.open();
    scene.compare(&almanac);
}

#[test]
fn a_flipped_bit_in_the_manifest_is_an_error_that_names_it() {
    let scene = run_of(10);
    let length = scene.disk.read("manifest").unwrap().len() as u64;
    for at in 0..length {
        let error = open_spoilt(&scene, |disk| disk.flip("manifest", at, (at % 8) as u8)).unwrap_err();
        let message = error.to_string();
        match error {
            OpenError::Newer { file, .. } => assert_eq!((file.as_str(), at / 4), ("manifest", 2), "{message}"),
            error => assert_eq!(damage(error).file, "manifest"),
        }
    }
    // Nor is it read if it was cut short.
    for kept in 0..length as usize {
        let bytes = scene.disk.read("manifest").unwrap();
        let error = open_spoilt(&scene, |disk| disk.overwrite("manifest", &bytes[..kept])).unwrap_err();
        assert_eq!(damage(error).file, "manifest");
    }
}

#[test]
fn a_missing_run_or_manifest_is_an_error_that_names_it() {
    let scene = run_of(10);
    let name = run_name(&scene.disk);
    for missing in [name.as_str(), "manifest"] {
        let error = open_spoilt(&scene, |disk| punctual_almanac::Disk::remove(disk, missing).unwrap()).unwrap_err();
        let damage = damage(error);
        assert_eq!(damage.file, missing);
        assert!(damage.what.contains("missing"), "{damage}");
    }
}

#[test]
fn a_missing_segment_of_the_journal_is_an_error_that_names_its_neighbour() {
    let (scene, _almanac) = journal_of(80);
    let segments = segments(&scene.disk);
    assert!(segments.len() >= 3);
    for missing in 0..segments.len() - 1 {
        let name = &segments[missing].0;
        let error = open_spoilt(&scene, |disk| punctual_almanac::Disk::remove(disk, name).unwrap()).unwrap_err();
        let damage = damage(error);
        let first = records(&segments[missing].1)[0].sequence;
        assert_eq!(damage.file, segments[if missing == 0 { 1 } else { missing - 1 }].0);
        assert!(damage.what.contains(&first.to_string()), "{damage}");
    }
}

#[test]
fn a_torn_copy_of_a_segments_head_is_made_whole_so_that_the_next_tear_finds_another() {
    let (scene, _almanac) = journal_of(40);
    for (name, _) in segments(&scene.disk) {
        for copy in [0, 512] {
            let disk = scene.disk.copy();
            disk.flip(&name, copy + 30, 3);
            let mut other = Scene::new(5, scene.config.clone());
            other.disk = disk.clone();
            drop(other.try_open().unwrap());
            let bytes = disk.crash(1).read(&name).unwrap();
            assert!(bytes[..44] == bytes[512..556], "{name}");
        }
    }
}

#[test]
fn a_newer_format_is_refused() {
    let mut scene = run_of(10);
    let almanac = scene.open();
    scene.change(&almanac, vec![insert(100, 10)]).unwrap();
    let (segment, _) = segments(&scene.disk).pop().unwrap();
    let run = run_name(&scene.disk);
    let raise = |disk: &SimulatedDisk, name: &str, places: &[usize], checksum: Option<usize>| {
        let mut bytes = disk.read(name).unwrap();
        places.iter().for_each(|at| bytes[*at] += 1);
        if let Some(at) = checksum {
            let sum = crc32c::crc32c(&bytes[..at]).to_le_bytes();
            bytes[at..at + 4].copy_from_slice(&sum);
        }
        disk.overwrite(name, &bytes);
    };
    let cases: [(&str, &[usize], Option<usize>, u32); 3] =
        [("manifest", &[8], None, 3), (&segment, &[8, 520], None, 3), (&run, &[16], Some(20), 2)];
    for (name, places, checksum, newest) in cases {
        let error = open_spoilt(&scene, |disk| raise(disk, name, places, checksum)).unwrap_err();
        let OpenError::Newer { file, found, known } = &error else { panic!("{error}") };
        assert_eq!((file.as_str(), *found, *known), (name, newest + 1, newest));
        assert!(error.to_string().contains("use a newer Punctual"), "{error}");
    }
    drop(almanac);
}
