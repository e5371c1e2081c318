//! What runs promise, on the simulated disk.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use punctual_core::store::{Bodies, Row};
use punctual_core::{Name, Timestamp};
use punctual_disk::File;
use punctual_simulated_disk::{Call, Fault, SimulatedDisk};

use crate::error::Damage;
use crate::row::{KeyText, StoredRow, group_hash};

use super::samples::{order, row, rows, stored, write};
use super::*;

const SHARD: ShardId = ShardId(3);

/// All rows of a run, in order.
fn read_all(run: &Run) -> Vec<(ShardId, Row)> {
    let block = |number| (run.place(number).0, run.read_block(number).unwrap());
    let rows = |(shard, block): (ShardId, Block)| -> Vec<(ShardId, Row)> {
        (0..block.rows()).map(|number| (shard, block.row(number).read(Bodies::With))).collect()
    };
    (0..run.blocks()).map(block).flat_map(rows).collect()
}

fn check(run: &Run) -> Vec<Damage> {
    run.check(|_| false, |_| ())
}

fn seq_of(rows: &[(ShardId, Row)], ordinal: u32) -> u64 {
    rows[ordinal as usize].1.seq
}

/// All that a run can be asked, asked.
fn assert_is_run_of(run: &Run, rows: &[(ShardId, Row)]) {
    assert_eq!(read_all(run), rows);
    assert_eq!(run.rows() as usize, rows.len());
    assert_eq!(run.row_bytes(), rows.iter().map(|(_, row)| stored(row).len() as u64).sum::<u64>());
    assert_eq!(check(run), []);

    let tables: BTreeSet<(ShardId, Table)> = rows.iter().map(|(shard, row)| (*shard, row.table)).collect();
    assert!(run.tables().eq(tables.iter().copied()));
    for shard in tables.iter().map(|(shard, _)| *shard).chain([ShardId(999)]) {
        let live = || rows.iter().filter(|(of, row)| *of == shard && row.table == Table::Live).map(|(_, row)| row.seq);
        assert_eq!(run.seqs(shard), live().min().map(|least| least..=live().max().unwrap()));
    }
    for (ordinal, (shard, row)) in (0..).zip(rows) {
        let block = run.block_of(ordinal);
        assert!(run.ordinals(block).contains(&ordinal));
        assert_eq!(run.place(block), (*shard, row.table));
        assert!(run.covers(ordinal, *shard, row.table, row.position()));
        let from = run.blocks_from(*shard, row.table, row.position());
        assert_eq!(from.start, block);
        let index = (ordinal - run.ordinals(block).start) as usize;
        assert_eq!(run.read_block(block).unwrap().search(row.position()), Ok(index));
    }
    assert_has_groups(run, rows);
}

fn assert_has_groups(run: &Run, rows: &[(ShardId, Row)]) {
    let mut groups: BTreeMap<u64, Vec<(u64, u32)>> = BTreeMap::new();
    for (ordinal, (shard, row)) in (0..).zip(rows) {
        if let Some(group) = &row.group {
            groups.entry(group_hash(*shard, group)).or_default().push((row.seq, ordinal));
        }
    }
    for (hash, mut members) in groups {
        members.sort_unstable();
        assert_eq!(run.group(hash, 0, usize::MAX).unwrap(), members);
        for from in [0, members.len() / 2, members.len() - 1] {
            for limit in [1, 5, 300] {
                let wanted = &members[from..members.len().min(from + limit)];
                assert_eq!(run.group(hash, members[from].0, limit).unwrap(), wanted);
            }
        }
        assert_eq!(run.group(hash, members.last().unwrap().0 + 1, 9).unwrap(), []);
    }
}

fn any_rows() -> impl Strategy<Value = Vec<(ShardId, Row)>> {
    let table = prop::sample::select(Table::ALL.to_vec());
    let at = prop_oneof![0..50_u64, Just(u64::MAX)];
    let any = (0..4_u16, table, at, prop::bool::weighted(0.02));
    prop::collection::vec(any, 0..400).prop_map(|rows| {
        let row = |(seq, (shard, table, at, long))| {
            let mut row = row(table, at, seq);
            if long {
                row.body = vec![7; 20_000 + seq as usize * 100].into();
            }
            (ShardId(shard), row)
        };
        let mut rows: Vec<(ShardId, Row)> = (0..).zip(rows).map(row).collect();
        rows.sort_by_key(order);
        rows
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn what_was_written_is_read(rows in any_rows()) {
        let disk = SimulatedDisk::new(1);
        let (written, keys) = write(&disk, 5, &rows);
        assert_is_run_of(&written, &rows);
        let opened = Run::open(&disk, 5).unwrap();
        assert_is_run_of(&opened, &rows);
        prop_assert_eq!(opened.file_bytes(), disk.read(&file_name(5)).unwrap().len() as u64);

        let hash = |ordinal: u32| {
            let (shard, row) = &rows[ordinal as usize];
            KeyText::of(&row.key).hash(*shard, row.table)
        };
        let mut expected: Vec<(u64, u32)> = (0..rows.len() as u32).map(|ordinal| (hash(ordinal), ordinal)).collect();
        expected.sort_by_key(|(hash, ordinal)| (partition_of(*hash), *ordinal));
        prop_assert_eq!(keys, expected);
    }
}

#[test]
fn blocks_have_about_32_kib_and_a_longer_row_has_one_of_its_own() {
    let mut rows = rows(3, 0..2_000);
    rows[700].1.body = vec![1; 100_000].into();
    let (run, _) = write(&SimulatedDisk::new(1), 1, &rows);
    assert_is_run_of(&run, &rows);
    assert_eq!(run.ordinals(run.block_of(700)), 700..701);
    for block in 0..run.blocks() - 1 {
        let length = run.index.entry(block).length;
        assert!(block == run.block_of(700) || block + 1 == run.block_of(700) || (32_000..=32_768).contains(&length));
    }
}

#[test]
fn a_run_survives_a_crash_once_it_and_the_directory_are_synced() {
    let disk = SimulatedDisk::new(1);
    let rows = rows(3, 0..20_000);
    let (run, _) = write(&disk, 1, &rows);
    assert!(run.file_bytes() > 3 << 20);
    disk.sync().unwrap();
    for seed in 0..5 {
        let run = Run::open(&disk.crash(seed), 1).unwrap();
        assert_eq!(check(&run), []);
        assert!(read_all(&run) == rows);
    }
}

#[test]
fn a_run_that_was_not_finished_does_not_open() {
    let disk = SimulatedDisk::new(1);
    let mut writer = RunWriter::create(&disk, 1).unwrap();
    for (shard, row) in rows(3, 0..10_000) {
        writer.push(shard, StoredRow::first(&stored(&row)).unwrap(), &[]).unwrap();
    }
    drop(writer);
    assert!(matches!(Run::open(&disk, 1), Err(OpenError::Damaged(_))));
}

#[test]
fn a_body_may_come_apart_from_its_row() {
    let rows = rows(3, 0..50);
    let mut writer = RunWriter::create(&SimulatedDisk::new(1), 1).unwrap();
    for (shard, row) in &rows {
        let bodyless = stored(&row.clone().without_body());
        writer.push(*shard, StoredRow::first(&bodyless).unwrap(), &row.body).unwrap();
    }
    assert_is_run_of(&writer.finish().unwrap().0, &rows);
}

#[test]
fn every_flipped_bit_is_noticed() {
    let disk = SimulatedDisk::new(1);
    let mut rows = rows(3, 0..150);
    rows.push((ShardId(4), row(Table::Dead, 9, 1_000)));
    let (run, _) = write(&disk, 1, &rows);
    let (end, keys) = (run.file_bytes(), run.footer.keys);
    let sampled =
        (0..end).filter(|at| *at < 200 || at % 23 == 0 || *at > end - 1_000 || (keys..keys + 40).contains(at));
    for at in sampled {
        disk.flip(&file_name(1), at, (at % 8) as u8);
        match Run::open(&disk, 1) {
            Ok(run) => {
                let damage = check(&run);
                assert!(!damage.is_empty(), "nobody noticed byte {at} of {end}");
                assert!(damage.iter().all(|damage| damage.file == file_name(1) && damage.offset <= at), "{damage:?}");
            }
            Err(OpenError::Damaged(damage)) => assert!(damage.offset <= at, "{damage:?} for byte {at}"),
            Err(other) => panic!("{other} for byte {at}"),
        }
        disk.flip(&file_name(1), at, (at % 8) as u8);
    }
    assert_is_run_of(&Run::open(&disk, 1).unwrap(), &rows);
}

#[test]
fn a_run_cut_short_or_lengthened_is_damaged() {
    let disk = SimulatedDisk::new(1);
    write(&disk, 1, &rows(3, 0..100));
    let bytes = disk.read(&file_name(1)).unwrap();
    let longer = [&bytes[..], &[0]].concat();
    let shorter = (0..bytes.len()).step_by(97).map(|length| &bytes[..length]);
    for bytes in shorter.chain([&longer[..], &bytes[..bytes.len() - 1]]) {
        disk.overwrite(&file_name(1), bytes);
        assert!(matches!(Run::open(&disk, 1), Err(OpenError::Damaged(_))));
    }
}

#[test]
fn a_run_under_another_name_or_of_a_newer_version_is_refused() {
    let disk = SimulatedDisk::new(1);
    write(&disk, 1, &rows(3, 0..10));
    disk.rename(&file_name(1), &file_name(2)).unwrap();
    assert!(matches!(Run::open(&disk, 2), Err(OpenError::Damaged(_))));
    assert!(matches!(Run::open(&disk, 1), Err(OpenError::Damaged(Damage { offset: 0, .. }))));

    let mut bytes = disk.read(&file_name(2)).unwrap();
    bytes[16..20].copy_from_slice(&3_u32.to_le_bytes());
    let sum = crc32c::crc32c(&bytes[..20]);
    bytes[20..24].copy_from_slice(&sum.to_le_bytes());
    disk.overwrite(&file_name(1), &bytes);
    assert!(matches!(Run::open(&disk, 1), Err(OpenError::Newer { found: 3, known: 2, .. })));
}

#[test]
fn a_position_behind_or_before_a_block_is_not_covered_by_its_rows() {
    let rows = rows(3, 0..1_000);
    let (run, _) = write(&SimulatedDisk::new(1), 1, &rows);
    let covered = |ordinal: u32, of: usize| run.covers(ordinal, SHARD, Table::Live, rows[of].1.position());
    let second = run.ordinals(1);
    assert!(!covered(second.start, second.start as usize - 1));
    assert!(!covered(second.start, second.start as usize + 1));
    assert!(!covered(second.start + 1, second.start as usize));
    assert!(covered(second.start + 1, second.end as usize - 1));
    assert!(!covered(second.end - 1, second.end as usize));
    assert!(!run.covers(0, ShardId(4), Table::Live, rows[0].1.position()));
    assert!(!run.covers(0, SHARD, Table::Dead, rows[0].1.position()));
}

#[test]
fn blocks_from_a_position_on_are_those_that_may_reach_it() {
    let (run, _) = write(&SimulatedDisk::new(1), 1, &[rows(1, 0..500), rows(3, 0..1_000)].concat());
    let of_first = run.blocks_from(ShardId(1), Table::Live, Position::START);
    let all = run.blocks_from(SHARD, Table::Live, Position::START);
    assert_eq!((of_first.end, all.end), (all.start, run.blocks()));
    assert!(all.len() > 3);
    let second = all.start + 1;
    assert_eq!(run.blocks_from(SHARD, Table::Live, run.first_position(second)), second..all.end);
    let before = Position { at: run.first_position(second).at, seq: 0 };
    assert_eq!(run.blocks_from(SHARD, Table::Live, before).start, all.start);
    assert_eq!(run.blocks_from(SHARD, Table::Live, Position::start_of(Timestamp::NEVER)), all.end - 1..all.end);
    assert!(run.blocks_from(ShardId(2), Table::Live, Position::START).is_empty());
    assert!(run.blocks_from(SHARD, Table::Dead, Position::START).is_empty());
}

#[test]
fn a_large_group_is_read_across_pages_from_any_number_on() {
    let mut rows = rows(3, (0..3_000).rev());
    for (_, row) in &mut rows {
        let group = [None, Some("other"), Some("large"), Some("large")][row.seq as usize % 4];
        row.group = group.map(|group| Name::new(group).unwrap());
    }
    let (run, _) = write(&SimulatedDisk::new(1), 1, &rows);
    assert_is_run_of(&run, &rows);
    let hash = group_hash(SHARD, "large");
    let (mut from, mut seqs) = (0, Vec::new());
    while let Some((last, _)) = run.group(hash, from, 100).unwrap().last() {
        let part = run.group(hash, from, 100).unwrap();
        assert!(part.iter().all(|(seq, ordinal)| seq_of(&rows, *ordinal) == *seq));
        seqs.extend(part.iter().map(|(seq, _)| *seq));
        from = last + 1;
    }
    assert!(seqs.into_iter().eq((0..3_000).filter(|seq| seq % 4 > 1)));
}

#[test]
fn a_group_that_a_run_does_not_have_is_not_read() {
    let disk = SimulatedDisk::new(1);
    let (run, _) = write(&disk, 1, &rows(3, 0..1_000));
    let calls = disk.calls();
    let strangers = (0..1_000).map(|number| group_hash(SHARD, &format!("stranger-{number}")));
    assert!(strangers.into_iter().all(|hash| run.group(hash, 0, 10).unwrap().is_empty()));
    assert!(disk.calls() - calls < 20, "the filter passes four in a thousand");
    let (without_groups, _) = write(&disk, 2, &rows(3, [1, 2, 4]));
    let calls = disk.calls();
    assert_eq!(without_groups.group(group_hash(SHARD, "group-1"), 0, 10).unwrap(), []);
    assert_eq!(disk.calls(), calls);
}

#[test]
fn blocks_whose_room_was_given_back_are_damaged_unless_they_are_known_to_be_dead() {
    let disk = SimulatedDisk::new(1);
    let (run, _) = write(&disk, 1, &rows(3, 0..2_000));
    let used = disk.used();
    assert!((90_000..100_000).contains(&run.span(1..4)));
    run.punch(1..4).unwrap();
    assert!(disk.used() <= used - 80_000);
    let run = Run::open(&disk, 1).unwrap();
    assert!(run.read_block(0).is_ok() && run.read_block(2).is_err() && run.read_block(4).is_ok());
    assert_eq!(check(&run).len(), 3);
    let mut looked_at = 0;
    assert_eq!(run.check(|block| (1..4).contains(&block), |bytes| looked_at += bytes), []);
    assert!(looked_at > run.file_bytes() - 130_000 && looked_at < run.file_bytes());
    run.punch(0..0).unwrap();
    assert_eq!(run.span(0..0), 0);
}

#[test]
fn a_disk_that_does_not_answer_is_not_damage() {
    let disk = SimulatedDisk::new(1);
    let (run, _) = write(&disk, 1, &rows(3, 0..10));
    disk.fail(Fault { call: Call::Read, name_contains: "run", after: 0, kind: io::ErrorKind::Other, lasting: true });
    assert!(matches!(run.read_block(0), Err(ReadError::Io { .. })));
    assert!(matches!(run.keys(), Err(ReadError::Io { .. })));
    assert!(matches!(Run::open(&disk, 1), Err(OpenError::Io { .. })));
    disk.heal();
    assert!(run.read_block(0).is_ok());
}

#[test]
fn a_run_is_told_by_its_name() {
    assert_eq!(file_name(0xabc), "run-0000000000000abc");
    assert_eq!(number_of("run-0000000000000abc"), Some(0xabc));
    let strangers = ["run-abc", "run-0000000000000ABC", "run-+000000000000abc", "journal-0000000000000abc"];
    assert!(strangers.into_iter().all(|name| number_of(name).is_none()));
}

#[test]
fn files_are_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Run>();
    shared::<Block>();
    shared::<std::sync::Arc<dyn File>>();
}
