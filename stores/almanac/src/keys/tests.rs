//! What the key index promises.

use std::collections::BTreeSet;

use proptest::prelude::*;
use punctual_chance::Chance;
use punctual_simulated_disk::SimulatedDisk;

use super::*;
use crate::row::KeyText;
use crate::run::samples;

fn address(run: u16, ordinal: u32) -> Address {
    Address { run, ordinal }
}

/// Numbers that look like hashes.
fn hash(number: u64) -> u64 {
    Chance::new(number).draw()
}

fn addresses(keys: &Keys, hash: u64) -> BTreeSet<Address> {
    keys.candidates(hash).collect()
}

#[derive(Clone, Debug)]
enum Deed {
    Insert(u64, Address),
    InsertAll(usize, u16, Vec<(u64, u32)>),
    Remove(u64, Address),
    /// Whichever stands there.
    RemoveSome(prop::sample::Index),
    RemoveMost,
}

/// Hashes of three partitions with few fingerprints, at the ends too, so that many collide.
fn any_hash() -> impl Strategy<Value = u64> {
    let partition = prop::sample::select(vec![0_u64, 77, 4_095]);
    let fingerprint = prop_oneof![0..20_u64, 0x7f_fff0..0x80_0010_u64, 0xff_fff0..0x100_0000_u64, 0..0x100_0000_u64];
    (partition, fingerprint, 0..3_u64).prop_map(|(partition, print, rest)| partition << 52 | print << 28 | rest)
}

fn any_step() -> impl Strategy<Value = Deed> {
    let any_address = || (1..4_u16, 0..50_u32).prop_map(|(run, ordinal)| address(run, ordinal));
    let in_partition = |hash: u64| 77 << 52 | hash & ((1 << 52) - 1);
    let row = (any_hash(), 0..1_000_u32).prop_map(move |(hash, ordinal)| (in_partition(hash), ordinal));
    prop_oneof![
        10 => (any_hash(), any_address()).prop_map(|(hash, address)| Deed::Insert(hash, address)),
        1 => (4..9_u16, prop::collection::vec(row, 0..60)).prop_map(|(run, rows)| Deed::InsertAll(77, run, rows)),
        2 => (any_hash(), any_address()).prop_map(|(hash, address)| Deed::Remove(hash, address)),
        6 => any::<prop::sample::Index>().prop_map(Deed::RemoveSome),
        1 => Just(Deed::RemoveMost),
    ]
}

/// What an entry can tell of a hash: all but its last bits.
fn known(hash: u64) -> u64 {
    hash >> 28 << 28
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn the_index_does_what_a_plain_set_does(steps in prop::collection::vec(any_step(), 0..200)) {
        let mut keys = Keys::default();
        let mut model: BTreeSet<(u64, Address)> = BTreeSet::new();
        for step in steps {
            match step {
                Deed::Insert(hash, address) => {
                    keys.insert(hash, address);
                    model.insert((known(hash), address));
                }
                Deed::InsertAll(partition, run, rows) => {
                    keys.insert_partition(partition, run, &rows);
                    model.extend(rows.iter().map(|(hash, ordinal)| (known(*hash), address(run, *ordinal))));
                }
                Deed::Remove(hash, address) => {
                    prop_assert_eq!(keys.remove(hash, address), model.remove(&(known(hash), address)));
                }
                Deed::RemoveSome(index) if !model.is_empty() => {
                    let (hash, address) = *model.iter().nth(index.index(model.len())).unwrap();
                    prop_assert!(keys.remove(hash, address) && model.remove(&(hash, address)));
                }
                Deed::RemoveSome(_) => {}
                Deed::RemoveMost => {
                    while model.len() > 3 {
                        let (hash, address) = model.pop_first().unwrap();
                        prop_assert!(keys.remove(hash, address));
                    }
                }
            }
            prop_assert_eq!(keys.len(), model.len());
            prop_assert!([0, 77, 4_095].into_iter().all(|partition| keys.partitions[partition].is_sound()));
        }
        for (hash, _) in &model {
            let expected: BTreeSet<Address> =
                model.iter().filter(|(other, _)| other == hash).map(|(_, address)| *address).collect();
            prop_assert_eq!(addresses(&keys, *hash | 5), expected);
        }
        let slots: usize = keys.partitions.iter().map(Partition::slots).sum();
        prop_assert_eq!(keys.slots, slots);
    }
}

#[test]
fn an_entry_never_takes_more_than_fourteen_bytes() {
    const ROWS: u64 = 1_000_000;
    let at = |number: u64| address(1 + (number >> 20) as u16, (number & 0xf_ffff) as u32);
    let mut keys = Keys::default();
    let per_row = |keys: &Keys| keys.bytes() as f64 / keys.len() as f64;
    let enough = |keys: &Keys| keys.len() as u64 > ROWS / 2;
    let mut worst: f64 = 0.0;
    for number in 0..ROWS {
        keys.insert(hash(number), at(number));
        if enough(&keys) {
            worst = worst.max(per_row(&keys));
        }
    }
    assert!(worst < 13.2, "{worst} bytes while rows come");
    // Old rows go while new ones come, and then they go for good.
    for number in 0..ROWS / 4 {
        assert!(keys.remove(hash(number), at(number)));
        keys.insert(hash(ROWS + number), at(ROWS + number));
        worst = worst.max(per_row(&keys));
    }
    for number in ROWS / 4..ROWS {
        assert!(keys.remove(hash(number), at(number)));
        if enough(&keys) {
            worst = worst.max(per_row(&keys));
        }
    }
    assert!(worst < 14.0, "{worst} bytes while rows go");
    assert!(keys.partitions.iter().all(Partition::is_sound));
    for number in ROWS..ROWS + ROWS / 4 {
        assert!(keys.remove(hash(number), at(number)));
    }
    assert_eq!(keys.len(), 0);
    assert!(keys.bytes() < 1 << 20, "an index without rows takes {} bytes", keys.bytes());
}

#[test]
fn keys_that_all_collide_are_all_found() {
    let mut keys = Keys::default();
    for hash in [0, u64::MAX] {
        (0..3_000).for_each(|ordinal| keys.insert(hash, address(1, ordinal)));
        assert_eq!(keys.candidates(hash).count(), 3_000);
        assert!(keys.remove(hash, address(1, 1_500)));
        assert!(!keys.remove(hash, address(1, 1_500)));
        assert_eq!(keys.candidates(hash).count(), 2_999);
    }
    assert_eq!(keys.candidates(hash(7)).count(), 0);
}

#[test]
fn building_from_runs_gives_what_inserting_the_living_rows_gives() {
    // Enough rows in all for two threads.
    let disk = SimulatedDisk::new(1);
    let lengths = [60_000, 0, 45_000, 3];
    let mut inserted = Keys::default();
    let mut runs = Vec::new();
    for (number, length) in (1..).zip(lengths) {
        let rows = samples::rows(number, u64::from(number) * 1_000_000..u64::from(number) * 1_000_000 + length);
        let (run, keys) = samples::write(&disk, u64::from(number), &rows);
        let deaths: RoaringBitmap = (0..run.rows()).filter(|ordinal| number != 4 && ordinal % 5 == 2).collect();
        for (hash, ordinal) in keys {
            let (shard, row) = &rows[ordinal as usize];
            assert_eq!(hash, KeyText::of(&row.key).hash(*shard, row.table));
            if !deaths.contains(ordinal) {
                inserted.insert(hash, address(number, ordinal));
            }
        }
        runs.push((number, run, deaths));
    }
    let borrowed: Vec<(u16, &Run, &RoaringBitmap)> =
        runs.iter().map(|(number, run, dead)| (*number, run, dead)).collect();
    let built = Keys::build(&borrowed).unwrap();
    assert_eq!(built.len(), inserted.len());
    let entries = |keys: &Keys, number: usize| keys.partitions[number].entries().collect::<Vec<u64>>();
    assert!((0..PARTITIONS).all(|number| entries(&built, number) == entries(&inserted, number)));
    assert!(built.partitions.iter().all(Partition::is_sound));

    let few = Keys::build(&borrowed[3..]).unwrap();
    assert_eq!(few.len(), 3);
    assert_eq!(Keys::build(&[]).unwrap().len(), 0);
}

#[test]
fn an_index_is_not_built_from_damaged_keys() {
    let disk = SimulatedDisk::new(1);
    let (run, _) = samples::write(&disk, 1, &samples::rows(1, 0..1_000));
    let keys = run.keys().unwrap();
    disk.flip(&crate::run::file_name(1), keys.offset_of(5) + 9, 3);
    assert!(matches!(Keys::build(&[(1, &run, &RoaringBitmap::new())]), Err(ReadError::Damaged(_))));
}
