//! What an almanac takes of memory and disk stays within what was said.

use std::sync::Arc;
use std::time::Duration;

use punctual_almanac::{Almanac, Config, SyncPolicy, Tending};
use punctual_chance::Chance;
use punctual_core::store::{Bodies, Change, Find, Key, Look, Position, Row, Scan, ShardId, Table, Tenure};
use punctual_core::{Name, Timestamp};
use punctual_simulated_disk::SimulatedDisk;

use crate::stage::{ManualClock, claim, commit};

const SHARD: ShardId = ShardId(0);

fn config() -> Config {
    Config { memory: 4 << 20, segment: 256 << 10, journal: 1 << 20, reserve: 256 << 10, ..Config::default() }
}

fn open(disk: &SimulatedDisk, config: Config) -> (Almanac, Tenure) {
    let almanac = Almanac::open(Arc::new(disk.clone()), config, Arc::new(ManualClock::default())).unwrap();
    let tenure = claim(&almanac, SHARD).unwrap();
    (almanac, tenure)
}

fn row(number: u64) -> Row {
    // Times without order, the same in every run.
    let at = Timestamp::from_millis(Chance::new(number).draw() >> 34);
    let key = Key::new("orders", &format!("{number:08}"), "");
    Row { table: Table::Live, key, seq: number, at, group: None, state: "state".into(), body: vec![7; 60].into() }
}

fn insert(almanac: &Almanac, tenure: &mut Tenure, numbers: std::ops::Range<u64>) {
    for first in numbers.clone().step_by(500) {
        let rows = first..(first + 500).min(numbers.end);
        let rows = rows.map(|number| Change::Insert { row: row(number), replaces: None });
        commit(almanac, SHARD, tenure, rows.collect());
    }
}

#[test]
fn pending_rows_cost_at_most_16_bytes_beyond_the_budget() {
    let (almanac, mut tenure) = open(&SimulatedDisk::new(1), config());
    insert(&almanac, &mut tenure, 0..100_000);
    let usage = almanac.usage();
    assert!(usage.recent_bytes + usage.block_bytes <= config().memory, "{usage:?}");
    assert!(usage.rows_in_runs > 80_000, "{usage:?}");
    assert!(usage.key_bytes as u64 <= usage.rows_in_runs * 16 + (128 << 10), "{usage:?}");
}

#[test]
fn rows_that_live_briefly_leave_nothing_behind() {
    let (almanac, mut tenure) = open(&SimulatedDisk::new(1), Config { tending: Tending::Manual, ..config() });
    for round in 0..200 {
        let numbers = round * 500..(round + 1) * 500;
        insert(&almanac, &mut tenure, numbers.clone());
        commit(
            &almanac,
            SHARD,
            &mut tenure,
            numbers.map(|number| Change::Remove { place: row(number).place() }).collect(),
        );
        almanac.tend().unwrap();
        let usage = almanac.usage();
        assert!(usage.recent_bytes < 1 << 20 && usage.runs == 0 && usage.journal_bytes <= 2 << 20, "{usage:?}");
    }
}

#[test]
fn the_room_of_dead_rows_comes_back_and_small_runs_are_joined() {
    let disk = SimulatedDisk::new(1);
    let (almanac, mut tenure) = open(&disk, Config { tending: Tending::Manual, ..config() });
    for part in 0..40 {
        insert(&almanac, &mut tenure, part * 1_000..(part + 1) * 1_000);
        almanac.checkpoint().unwrap();
    }
    assert!(almanac.usage().runs < 12, "small runs are joined: {:?}", almanac.usage());
    let full = disk.used();
    let scan = |from| Scan {
        table: Table::Live,
        from,
        until: Timestamp::NEVER,
        topic: None,
        limit: 2_000,
        bodies: Bodies::Without,
    };
    for _ in 0..19 {
        let due = almanac.scan(SHARD, &scan(Position::START)).unwrap().rows;
        commit(&almanac, SHARD, &mut tenure, due.iter().map(|row| Change::Remove { place: row.place() }).collect());
        almanac.checkpoint().unwrap();
    }
    let (left, usage) = (almanac.scan(SHARD, &scan(Position::START)).unwrap(), almanac.usage());
    assert_eq!(left.rows.len(), 2_000);
    assert_eq!(usage.rows_in_runs, 2_000, "{usage:?}");
    let journal = usage.journal_bytes + usage.free_segments as u64 * config().segment;
    assert!(disk.used() - journal < (full - journal) / 3, "{} of {full} bytes are left, {usage:?}", disk.used());
}

#[test]
fn a_page_of_large_bodies_is_short_and_says_where_to_go_on() {
    let (almanac, mut tenure) = open(&SimulatedDisk::new(1), Config { tending: Tending::Manual, ..config() });
    let group = Some(Name::new("large").unwrap());
    let large = |number| Row { body: vec![number as u8; 3 << 20].into(), group: group.clone(), ..row(number) };
    for number in 0..8 {
        commit(&almanac, SHARD, &mut tenure, vec![Change::Insert { row: large(number), replaces: None }]);
        if number == 3 {
            almanac.checkpoint().unwrap();
        }
    }
    let mut scan = Scan {
        table: Table::Live,
        from: Position::START,
        until: Timestamp::NEVER,
        topic: None,
        limit: 100,
        bodies: Bodies::With,
    };
    let mut met = Vec::new();
    loop {
        let page = almanac.scan(SHARD, &scan).unwrap();
        assert!(page.rows.len() <= 3, "{} of 3 MiB each", page.rows.len());
        met.extend(page.rows.iter().map(|row| row.seq));
        let Some(next) = page.next else { break };
        scan.from = next;
    }
    met.sort_unstable();
    assert!(met.iter().copied().eq(0..8), "{met:?}");
    let mut find =
        Find { table: Table::Live, group: group.clone().unwrap(), from_seq: 0, limit: 100, bodies: Bodies::With };
    let mut met = Vec::new();
    loop {
        let page = almanac.find(SHARD, &find).unwrap();
        assert!(page.rows.len() <= 3, "{} of 3 MiB each", page.rows.len());
        met.extend(page.rows.iter().map(|row| row.seq));
        let Some(next) = page.next else { break };
        find.from_seq = next;
    }
    assert!(met.iter().copied().eq(0..8), "{met:?}");
    scan = Scan { from: Position::START, bodies: Bodies::Without, ..scan };
    assert_eq!(almanac.scan(SHARD, &scan).unwrap().rows.len(), 8, "without bodies they are small");
}

#[test]
fn an_almanac_says_what_its_confirmations_are_worth() {
    let disk = SimulatedDisk::new(1);
    let (almanac, _) = open(&disk, config());
    assert!(almanac.to_string().ends_with("every commit is on disk before it is confirmed"), "{almanac}");
    drop(almanac);
    let (almanac, _) = open(&disk, Config { sync: SyncPolicy::Every(Duration::from_millis(5)), ..config() });
    assert!(almanac.to_string().ends_with("a power loss can lose what was confirmed in the last 5 ms"), "{almanac}");
}
