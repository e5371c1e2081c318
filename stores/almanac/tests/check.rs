//! What the check finds in a directory, and what can still be shown of a damaged one. The command around it is
//! `punctual store`, tested with the server.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_almanac::inspect::{Contents, Listed, Report, SegmentStanding, check};
use punctual_almanac::{Almanac, Config, Damage, Directory, Disk, ReadOnlyDirectory, Tending};
use punctual_chance::Chance;
use punctual_core::store::{Row, Store, Table};
use punctual_simulated_disk::SimulatedDisk;

use crate::stage::model::Model;
use crate::stage::work::Work;
use crate::stage::{ManualClock, claim, tiny};

/// With this one the journal's last segment holds commits, and not only the mark of closing.
const SEED: u64 = 2;

fn open(disk: Arc<dyn Disk>, config: Config) -> Almanac {
    Almanac::open(disk, config, Arc::new(ManualClock::default())).unwrap()
}

/// An almanac with work done on it.
struct Worked {
    almanac: Almanac,
    work: Work,
    model: Model,
    chance: Chance,
}

impl Worked {
    fn new(disk: Arc<dyn Disk>, config: Config) -> Worked {
        let almanac = open(disk, config);
        let mut work = Work::new(60, 9 << 10);
        for shard in work.shards.clone() {
            work.tenures.insert(shard, claim(&almanac, shard).unwrap());
        }
        Worked { almanac, work, model: Model::default(), chance: Chance::new(SEED) }
    }

    fn commit(&mut self, times: usize) {
        for _ in 0..times {
            let (batches, after) = self.work.commit(&self.model, &mut self.chance);
            assert!(self.almanac.commit(batches).unwrap().iter().all(Result::is_ok));
            self.model = after;
        }
    }
}

/// An almanac with runs of which some rows are dead, and with rows that are only in the journal.
fn write(disk: Arc<dyn Disk>) -> Model {
    let mut worked = Worked::new(disk, tiny());
    for _ in 0..4 {
        worked.commit(15);
        worked.almanac.checkpoint().unwrap();
    }
    worked.commit(12);
    worked.model
}

fn simulated() -> (SimulatedDisk, Model) {
    let disk = SimulatedDisk::new(1);
    let model = write(Arc::new(disk.clone()));
    (disk, model)
}

fn checked(disk: &dyn Disk) -> Report {
    check(disk, &mut |_| {}).unwrap()
}

fn opens(disk: &SimulatedDisk) -> bool {
    Almanac::open(Arc::new(disk.copy()), tiny(), Arc::new(ManualClock::default())).is_ok()
}

fn a_run(disk: &SimulatedDisk) -> String {
    disk.names().into_iter().rfind(|name| name.starts_with("run-")).unwrap()
}

/// The segments of the journal that count, and where the records of each end.
fn segments(disk: &SimulatedDisk) -> Vec<(String, u64)> {
    let live = Contents::read(disk).unwrap().segments.into_iter().filter_map(|segment| match segment.standing {
        SegmentStanding::Live { end, .. } => Some((segment.file, end)),
        _ => None,
    });
    live.collect()
}

/// Where the parts of a run begin: keys, group pages, group index, group filter, block index, shards, footer.
fn parts(run: &[u8]) -> Vec<u64> {
    let footer = run.len() - 108;
    let number = |at: usize| u64::from_le_bytes(run[at..at + 8].try_into().unwrap());
    (0..6).map(|part| number(footer + 32 + part * 8)).chain([footer as u64]).collect()
}

fn has(damage: &[Damage], file: &str, what: &str) -> bool {
    damage.iter().any(|damage| damage.file == file && damage.what.contains(what))
}

#[test]
fn an_almanac_that_nobody_touched_is_clean_and_counted_right() {
    let (disk, model) = simulated();
    let report = checked(&disk);
    assert_eq!(report.damage, []);
    assert_eq!(report.remarks, Vec::<String>::new());
    assert_eq!(report.living, model.len() as u64);
    assert!(report.runs > 0 && report.run_rows > 0 && report.records > 0 && report.recent > 0);
    assert_eq!(report.bytes, disk.names().iter().map(|name| disk.read(name).unwrap().len() as u64).sum::<u64>());
    assert!(report.to_string().contains("clean: every checksum"));
}

#[test]
fn the_rows_that_are_listed_are_those_that_were_stored_in_time_order() {
    let (disk, model) = simulated();
    let mut contents = Contents::read(&disk).unwrap();
    let mut listed = Vec::new();
    for row in contents.rows(None) {
        let Listed::Row(row) = row else { panic!("{row:?}") };
        listed.push(row);
    }
    assert!(listed.is_sorted_by_key(|row| (row.table, row.at, row.seq)), "table by table, in time order");
    assert_eq!(listed.len(), model.len());
    let work = Work::new(1, 1);
    let mut expected: BTreeMap<(u16, bool, String), &Row> = BTreeMap::new();
    for shard in &work.shards {
        for row in model.rows(*shard) {
            expected.insert((shard.0, row.table == Table::Settings, format!("{:?}", row.key)), row);
        }
    }
    for row in &listed {
        let stored = expected[&(row.shard.0, row.table == Table::Settings, row.key.join("/"))];
        assert_eq!((row.table, row.at, row.seq), (stored.table, stored.at, stored.seq));
        assert_eq!(row.group.as_deref(), stored.group.as_deref());
        assert_eq!((row.state, row.body), (stored.state.len(), Some(stored.body.len())), "{row:?}");
    }
    assert!(listed.iter().any(|row| row.run.is_some()) && listed.iter().any(|row| row.run.is_none()));
    let counted: u64 = contents.tables.iter().map(|table| table.in_runs + table.recent).sum();
    assert_eq!(counted, model.len() as u64);
    let mail = |listed: &Listed| matches!(listed, Listed::Row(row) if row.key[0] == "mail");
    assert!(contents.rows(Some("mail")).all(|listed| mail(&listed)));
    assert_eq!(contents.rows(Some("mail")).count(), listed.iter().filter(|row| row.key[0] == "mail").count());
}

#[test]
fn a_bit_that_flips_anywhere_in_manifest_or_run_is_found_there() {
    let (disk, _) = simulated();
    for name in ["manifest".to_owned(), a_run(&disk)] {
        let length = disk.read(&name).unwrap().len() as u64;
        // The list of key partitions is long and all alike.
        let step = if length > 10_000 { 61 } else { 1 };
        for offset in (0..length).step_by(step).chain(length - 200..length) {
            let spoilt = disk.copy();
            spoilt.flip(&name, offset, (offset % 8) as u8);
            match check(&spoilt, &mut |_| {}) {
                Ok(report) => assert!(has(&report.damage, &name, ""), "{name}, byte {offset}: {report}"),
                // What looks like a later version says so.
                Err(error) => assert!((8..12).contains(&offset), "{name}, byte {offset}: {error}"),
            }
        }
    }
}

#[test]
fn damage_is_named_by_the_part_that_it_is_in() {
    let (disk, _) = simulated();
    let run = a_run(&disk);
    let parts = parts(&disk.read(&run).unwrap());
    let whats = [
        (100, "a data block has a wrong checksum"),
        (parts[0] + 100, "the list of key partitions has a wrong checksum"),
        (parts[1] - 5, "a part of the keys has a wrong checksum"),
        (parts[1] + 5, "a group page has a wrong checksum"),
        (parts[2] + 5, "the group index has a wrong checksum"),
        (parts[3] + 5, "the group filter has a wrong checksum"),
        (parts[4] + 5, "the block index has a wrong checksum"),
        (parts[5] + 5, "the list of shards has a wrong checksum"),
        (parts[6] + 5, "the footer has a wrong checksum"),
    ];
    for (offset, what) in whats {
        let spoilt = disk.copy();
        spoilt.flip(&run, offset, 3);
        let report = checked(&spoilt);
        assert!(has(&report.damage, &run, what), "byte {offset}, {what}: {report}");
        assert_eq!(report.damage.len(), 1, "one bit is one damage: {report}");
    }
    disk.flip("manifest", 60, 3);
    let report = checked(&disk);
    assert!(has(&report.damage, "manifest", "the checksum does not match"), "{report}");
    assert!(report.remarks.iter().any(|remark| remark.contains("without the manifest")));
}

#[test]
fn damage_before_the_journals_tail_is_found_exactly_when_opening_refuses() {
    let (disk, _) = simulated();
    let (segment, end) = segments(&disk).pop().unwrap();
    // Closing has left a mark behind the last commit: it alone may be damaged without anyone knowing.
    let last = end - 24;
    for offset in (1_024..last).step_by(13).chain(last - 8..last) {
        let spoilt = disk.copy();
        spoilt.flip(&segment, offset, (offset % 8) as u8);
        let report = checked(&spoilt);
        assert!(has(&report.damage, &segment, "cannot be read"), "byte {offset}: {report}");
        assert!(!opens(&spoilt), "byte {offset}");
        let at = report.damage.iter().find(|damage| damage.file == segment).unwrap().offset;
        assert!(at <= offset, "byte {at} for {offset}");
    }
    for offset in (0..1_024).chain(last..end + 100) {
        let spoilt = disk.copy();
        spoilt.flip(&segment, offset.min(disk.read(&segment).unwrap().len() as u64 - 1), 0);
        assert_eq!(checked(&spoilt).is_clean(), opens(&spoilt), "byte {offset}");
    }
    disk.flip(&segment, 30, 0);
    let report = checked(&disk);
    assert!(report.is_clean() && report.remarks[0].contains("opening the store repairs it"), "{report}");
    disk.flip(&segment, 542, 0);
    let report = checked(&disk);
    assert!(has(&report.damage, &segment, "both copies of the segment's head are unreadable"), "{report}");
}

#[test]
fn all_damage_of_a_journal_is_listed_and_not_only_the_first() {
    let (disk, _) = simulated();
    let segments = segments(&disk);
    assert!(segments.len() > 2);
    for (segment, _) in &segments {
        disk.flip(segment, 1_030, 0);
    }
    let report = checked(&disk);
    for (segment, _) in &segments {
        assert!(has(&report.damage, segment, "cannot be read"), "{segment}: {report}");
    }
}

#[test]
fn a_torn_tail_is_no_damage_and_worth_a_word() {
    let disk = SimulatedDisk::new(1);
    let mut worked = Worked::new(Arc::new(disk.clone()), Config { segment: 256 << 10, journal: 1 << 20, ..tiny() });
    worked.commit(4);
    let noted = disk.read("reach").unwrap();
    worked.commit(1);
    // As if the process had been killed while it wrote the last record: before it noted that it was on disk.
    let torn = disk.copy();
    torn.overwrite("reach", &noted);
    let (segment, end) = segments(&torn).pop().unwrap();
    torn.flip(&segment, end - 1, 0);
    let report = checked(&torn);
    assert!(report.is_clean(), "{report}");
    assert!(report.remarks.iter().any(|remark| remark.contains("cut short")), "{report}");
    assert!(opens(&torn));
}

#[test]
fn files_that_are_missing_cut_off_or_left_over_are_named() {
    let (disk, _) = simulated();
    let run = a_run(&disk);
    let whole = disk.read(&run).unwrap();

    let cut = disk.copy();
    cut.overwrite(&run, &whole[..whole.len() / 2]);
    assert!(has(&checked(&cut).damage, &run, "the file is truncated"));

    let missing = disk.copy();
    missing.remove(&run).unwrap();
    let report = checked(&missing);
    assert!(has(&report.damage, &run, "it is missing"), "{report}");

    let lost = disk.copy();
    lost.remove("manifest").unwrap();
    assert!(has(&checked(&lost).damage, "manifest", "it is missing"));

    disk.overwrite("run-00000000000000ff", b"half a run");
    disk.overwrite("manifest.new", b"");
    disk.overwrite("notes.txt", b"mine");
    let report = checked(&disk);
    assert!(report.is_clean(), "{report}");
    for name in ["run-00000000000000ff was left", "manifest.new was left", "notes.txt does not belong"] {
        assert!(report.remarks.iter().any(|remark| remark.contains(name)), "{name}: {report}");
    }
}

#[test]
fn what_is_not_damaged_is_still_shown() {
    let (disk, model) = simulated();
    let run = a_run(&disk);
    let rows_of = |disk: &SimulatedDisk| {
        let mut contents = Contents::read(disk).unwrap();
        let (mut rows, mut lost) = (0, 0);
        for listed in contents.rows(None) {
            match listed {
                Listed::Row(_) => rows += 1,
                Listed::Lost { rows, damage, .. } => {
                    assert_eq!(damage.file, run);
                    lost += rows;
                }
            }
        }
        (rows, lost, contents)
    };
    // A data block: its rows are lost, all others are there.
    let spoilt = disk.copy();
    spoilt.flip(&run, 100, 0);
    let (rows, lost, _) = rows_of(&spoilt);
    assert!(
        lost > 0 && rows > 0 && rows + lost == model.len() as u64,
        "{rows} rows and {lost} lost of {}",
        model.len()
    );

    // The index of a run: the run is lost.
    let spoilt = disk.copy();
    spoilt.flip(&run, parts(&disk.read(&run).unwrap())[4], 0);
    let (rows, lost, contents) = rows_of(&spoilt);
    assert!(rows > 0 && lost == 0 && rows < model.len() as u64);
    assert!(contents.to_string().contains("UNREADABLE"), "{contents}");

    // The manifest: dead rows may come up, living ones do not go.
    let spoilt = disk.copy();
    spoilt.flip("manifest", 30, 0);
    let (rows, _, contents) = rows_of(&spoilt);
    assert!(rows >= model.len() as u64, "{contents}");
    assert!(contents.to_string().contains("manifest: UNREADABLE"), "{contents}");

    // A record of the journal: most of the others are followed.
    let (segment, _) = segments(&disk).swap_remove(0);
    disk.flip(&segment, 1_100, 0);
    let (rows, _, contents) = rows_of(&disk);
    assert!(rows > model.len() as u64 / 2);
    assert!(has(&contents.damage, &segment, "cannot be read"), "{contents}");
}

#[test]
fn an_almanac_in_use_is_checked_beside_its_work() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { memory: 2 << 20, tending: Tending::Thread, ..tiny() };
    let disk = Arc::new(Directory::open(directory.path()).unwrap());
    let mut worked = Worked::new(disk, config);
    worked.commit(50);
    let stop = Arc::new(AtomicBool::new(false));
    let worker = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                worked.commit(1);
            }
            worked
        })
    };
    let looking = ReadOnlyDirectory::open(directory.path()).unwrap();
    for _ in 0..30 {
        let report = checked(&looking);
        assert!(report.is_clean(), "{report}");
        assert!(report.in_use && report.remarks[0].contains("in use by another process"), "{report}");
    }
    stop.store(true, Ordering::Relaxed);
    let worked = worker.join().unwrap();
    let report = checked(&looking);
    assert!(report.in_use && report.living == worked.model.len() as u64, "{report}");
    drop(worked.almanac);
    assert!(!checked(&looking).in_use);
}

#[test]
fn a_directory_that_is_only_looked_at_refuses_to_be_changed() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "text").unwrap();
    let disk = ReadOnlyDirectory::open(directory.path()).unwrap();
    assert!(disk.create("other").is_err() && disk.remove("file").is_err() && disk.rename("file", "other").is_err());
    let file = disk.open("file").unwrap();
    assert!(file.write_at(b"else", 0).is_err() && file.allocate(100).is_err() && file.punch(0, 4).is_err());
    assert!(disk.lock("lock").is_err(), "no lock is made");
    assert_eq!(files(directory.path()), BTreeMap::from([("file".to_owned(), b"text".to_vec())]));
}

/// All files of a directory with their bytes.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}
