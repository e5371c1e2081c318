//! What earlier versions have stored, and this one must still read: `fixtures/v1` and whatever follows.
//!
//! A fixture is a directory as an almanac has left it, and beside it in `expected.txt` all that was
//! stored. It is written once, by `write_fixture`, when its version is released, and never again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use punctual_almanac::{Almanac, Config, Directory, ReadOnlyDirectory, inspect};
use punctual_chance::Chance;
use punctual_core::store::{Bodies, Change, Fence, Key, Look, Row, ShardId, Store, Table, Tenure};
use punctual_core::{Clock, Name, Timestamp};

use crate::stage::model::{Model, everything, scan_all};
use crate::stage::work::Work;
use crate::stage::{ManualClock, batch, claim, commit, roll, tiny};

const EXPECTED: &str = "expected.txt";

fn fixture(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(version)
}

fn open(directory: &Path, config: Config) -> Almanac {
    let disk = Directory::open(directory).unwrap();
    Almanac::open(Arc::new(disk), config, Arc::new(ManualClock::default())).unwrap()
}

/// A row in a line of text: its shard, table, key, time, number, group, state, and the length and
/// checksum of its body.
fn line(shard: ShardId, row: &Row) -> String {
    let group = row.group.as_ref().map_or("", Name::as_str);
    let state = hex(&row.state);
    let body = format!("{} {:08x}", row.body.len(), crc32c::crc32c(&row.body));
    let (key, at) = (&row.key, row.at.as_millis());
    let parts = [key.topic(), key.id(), key.queue()].join("\t");
    format!("row\t{}\t{:?}\t{parts}\t{at}\t{}\t{group}\t{state}\t{body}", shard.0, row.table, row.seq)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn get(almanac: &Almanac, shard: ShardId, keys: &BTreeSet<Key>) -> Vec<Row> {
    let keys: Vec<Key> = keys.iter().cloned().collect();
    almanac.get(shard, &keys, Bodies::With).unwrap().into_iter().flatten().collect()
}

/// All that an almanac says, line by line: rows of these keys and all others, tallies, and entries of the cluster.
fn lines(almanac: &Almanac, shards: &BTreeSet<ShardId>, keys: &BTreeSet<Key>) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for shard in shards.iter().copied() {
        let scanned = Table::ALL.into_iter().flat_map(|table| scan_all(almanac, shard, everything(table)).unwrap());
        // A scan leaves out rows without a time.
        let got = get(almanac, shard, keys);
        lines.extend(scanned.chain(got).map(|row| line(shard, &row)));
        for (tally, count) in almanac.tallies(shard).unwrap() {
            let name = tally.name.as_ref().map_or("", Name::as_str);
            lines.insert(format!("tally\t{}\t{:?}\t{name}\t{}\t{count}", shard.0, tally.kind, tally.slot));
        }
    }
    for (key, revision) in roll(almanac).unwrap().revisions {
        let value = almanac.cluster_get(&key).unwrap().unwrap().value;
        lines.insert(format!("entry\t{key}\t{revision}\t{}", hex(&value)));
    }
    lines
}

/// What a fixture should say.
struct Expected {
    lines: BTreeSet<String>,
    shards: BTreeSet<ShardId>,
    keys: BTreeSet<Key>,
    fences: BTreeMap<ShardId, Fence>,
}

impl Expected {
    fn of(directory: &Path) -> Expected {
        let text = fs::read_to_string(directory.join(EXPECTED)).unwrap();
        let mut expected = Expected {
            lines: BTreeSet::new(),
            shards: BTreeSet::new(),
            keys: BTreeSet::new(),
            fences: BTreeMap::new(),
        };
        for line in text.lines() {
            let parts: Vec<&str> = line.split('\t').collect();
            if parts[0] == "entry" {
                expected.lines.insert(line.to_owned());
                continue;
            }
            let shard = ShardId(parts[1].parse().unwrap());
            expected.shards.insert(shard);
            match parts[0] {
                "fence" => _ = expected.fences.insert(shard, Fence(parts[2].parse().unwrap())),
                "row" => _ = expected.keys.insert(Key::new(parts[3], parts[4], parts[5])),
                _ => {}
            }
            if parts[0] != "fence" {
                expected.lines.insert(line.to_owned());
            }
        }
        expected
    }
}

/// Says which lines are not in both.
fn assert_same(found: &BTreeSet<String>, expected: &BTreeSet<String>) {
    let only = |these: &BTreeSet<String>, those| these.difference(those).cloned().collect::<Vec<_>>().join("\n");
    assert!(found == expected, "found only:\n{}\nexpected only:\n{}", only(found, expected), only(expected, found));
}

/// Opens a copy of a fixture, compares everything, goes on writing, and opens it again.
fn opens_and_goes_on(version: &str) {
    let (fixture, directory) = (fixture(version), tempfile::tempdir().unwrap());
    for entry in fs::read_dir(&fixture).unwrap().map(Result::unwrap).filter(|entry| entry.file_name() != EXPECTED) {
        fs::copy(entry.path(), directory.path().join(entry.file_name())).unwrap();
    }
    let mut expected = Expected::of(&fixture);
    let report = inspect::check(&ReadOnlyDirectory::open(directory.path()).unwrap(), &mut |_| {}).unwrap();
    assert!(report.is_clean() && report.remarks.is_empty(), "{report}");
    assert!(report.runs >= 2 && report.run_rows > 0 && report.recent > 0, "{report}");
    let rows = expected.lines.iter().filter(|line| line.starts_with("row")).count();
    assert_eq!(report.living, rows as u64, "{report}");

    // Other settings than those it was written with.
    let config = Config { segment: 16 << 10, journal: 64 << 10, ..tiny() };
    let almanac = open(directory.path(), config.clone());
    assert_same(&lines(&almanac, &expected.shards, &expected.keys), &expected.lines);
    for (shard, before) in expected.fences.clone() {
        let mut tenure = claim(&almanac, shard).unwrap();
        assert!(tenure.fence > before, "{shard:?}: {tenure:?} after {before:?}");
        go_on(&almanac, shard, &mut tenure, &mut expected);
        assert_same(&lines(&almanac, &expected.shards, &expected.keys), &expected.lines);
    }
    drop(almanac);
    let almanac = open(directory.path(), config.clone());
    assert_same(&lines(&almanac, &expected.shards, &expected.keys), &expected.lines);
    almanac.checkpoint().unwrap();
    drop(almanac);
    let almanac = open(directory.path(), config);
    assert_same(&lines(&almanac, &expected.shards, &expected.keys), &expected.lines);
}

/// Removes a third of a shard's rows, updates a third, and inserts some.
fn go_on(almanac: &Almanac, shard: ShardId, tenure: &mut Tenure, expected: &mut Expected) {
    let mut changes = Vec::new();
    for (number, row) in get(almanac, shard, &expected.keys).iter().enumerate() {
        let place = row.place();
        match number % 3 {
            0 => {
                expected.lines.remove(&line(shard, row));
                changes.push(Change::Remove { place });
            }
            1 => {
                expected.lines.remove(&line(shard, row));
                let (table, at, state) = (Table::History, Timestamp::from_millis(5_000), b"later".as_slice().into());
                let after = Row { table, at, state, ..row.clone() };
                expected.lines.insert(line(shard, &after));
                changes.push(Change::Update { place, table, at, state: after.state });
            }
            _ => {}
        }
    }
    for number in 0..10 {
        let row = Row {
            table: Table::Live,
            key: Key::new("added", &number.to_string(), ""),
            seq: 1_000_000 + number,
            at: Timestamp::from_millis(number),
            group: None,
            state: b"new".as_slice().into(),
            body: b"body".as_slice().into(),
        };
        expected.lines.insert(line(shard, &row));
        changes.push(Change::Insert { row, replaces: None });
    }
    commit(almanac, shard, tenure, changes);
}

#[test]
fn version_1_opens_and_says_what_was_stored() {
    opens_and_goes_on("v1");
}

#[test]
fn version_2_opens_and_says_what_was_stored() {
    opens_and_goes_on("v2");
}

#[test]
fn version_3_opens_and_says_what_was_stored() {
    opens_and_goes_on("v3");
}

/// An almanac that becomes a fixture, and what is in it.
struct Fixture {
    almanac: Almanac,
    work: Work,
    model: Model,
    chance: Chance,
}

impl Fixture {
    /// Commits some random work.
    fn work(&mut self, times: usize) {
        for _ in 0..times {
            let (batches, after) = self.work.commit(&self.model, &mut self.chance);
            assert!(self.almanac.commit(batches).unwrap().iter().all(Result::is_ok));
            self.model = after;
        }
    }

    /// Inserts a row with a long body.
    fn insert(&mut self, shard: ShardId, body: u32) {
        let row = Row {
            table: Table::Live,
            key: Key::new("big", "body", "queue"),
            seq: 900_000,
            at: Timestamp::from_millis(77_000),
            group: Some(Name::new("red").unwrap()),
            state: b"state".as_slice().into(),
            body: (0..body).map(|byte| (byte % 251) as u8).collect(),
        };
        let tenure = self.work.tenures.get_mut(&shard).unwrap();
        let changes = vec![Change::Insert { row, replaces: None }];
        self.model.apply(&batch(shard, *tenure, changes.clone()));
        commit(&self.almanac, shard, tenure, changes);
    }

    /// Writes an entry of the cluster.
    fn put(&mut self, key: &str, value: &[u8]) {
        let (seen, revision) = self.model.put(key, value, ManualClock::default().micros());
        assert_eq!(self.almanac.cluster_put(key, seen, value), Ok(Ok(revision)));
    }
}

/// Writes the fixture of the version that is written now:
/// `cargo test -p punctual-almanac --test formats -- --ignored write_fixture`.
#[test]
#[ignore = "a fixture is written once, when its version is released"]
fn write_fixture() {
    let directory = fixture("v3");
    fs::remove_dir_all(&directory).ok();
    let config = Config { segment: 4 << 10, journal: 8 << 10, reserve: 0, ..tiny() };
    let almanac = open(&directory, config.clone());
    let mut writer = Fixture { almanac, work: Work::new(72, 3 << 10), model: Model::default(), chance: Chance::new(7) };
    let mut expected = String::new();
    for shard in writer.work.shards.clone() {
        let tenure = claim(&writer.almanac, shard).unwrap();
        writer.work.tenures.insert(shard, tenure);
        expected += &format!("fence\t{}\t{}\n", shard.0, tenure.fence.0);
    }
    writer.put("shards", b"3");
    writer.work(14);
    writer.almanac.checkpoint().unwrap();
    writer.work(9);
    // Longer than a block of a run.
    writer.insert(ShardId(0), 36_000);
    writer.put("level", &[0, 255]);
    writer.almanac.checkpoint().unwrap();
    writer.insert(ShardId(1), 5_000);
    writer.put("shards", b"");
    writer.put("pins", b"one");
    writer.work(10);
    let Fixture { almanac, work, model, mut chance } = writer;
    drop(almanac);

    let keys: BTreeSet<Key> =
        work.shards.iter().flat_map(|shard| model.rows(*shard)).map(|row| row.key.clone()).collect();
    let almanac = open(&directory, config);
    let all: Vec<Key> = keys.iter().cloned().collect();
    model.compare(&almanac, &work.shards, &all, &work.groups, &mut chance);
    let found = lines(&almanac, &work.shards.iter().copied().collect(), &keys);
    drop(almanac);
    for line in found {
        expected += &format!("{line}\n");
    }
    fs::write(directory.join(EXPECTED), expected).unwrap();
    fs::remove_file(directory.join("lock")).unwrap();
    let bytes: u64 = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < 200 << 10, "{bytes} bytes are too many to keep");
}
