//! The files of an almanac: one is replaced by foreign bytes, and then the directory is checked, shown, opened and read.
//!
//! Checksums are made right first: otherwise they would be all that is ever tested.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use crc32c::{crc32c, crc32c_append};
use punctual_almanac::{Almanac, Config, Tending, inspect};
use punctual_core::store::{
    Batch, Bodies, Change, Claim, Fence, Incarnation, Key, Look, Position, Row, Scan, ShardId, Store, Table, Tally,
    TallyKind,
};
use punctual_core::{Clock, Name, Timestamp};
use punctual_simulated_disk::SimulatedDisk;

const SHARD: ShardId = ShardId(1);

struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_000_000)
    }
}

fn open(disk: SimulatedDisk, accepts_loss: bool) -> Option<Almanac> {
    let config = Config {
        memory: 64 << 10,
        segment: 4 << 10,
        journal: 16 << 10,
        reserve: 4 << 10,
        tending: Tending::Manual,
        accepts_loss,
        ..Config::default()
    };
    Almanac::open(Arc::new(disk), config, Arc::new(Noon)).ok()
}

/// A small almanac with a run and a journal.
static WHOLE: LazyLock<SimulatedDisk> = LazyLock::new(|| {
    let disk = SimulatedDisk::new(1);
    let almanac = open(disk.clone(), false).expect("an empty disk opens");
    let who = Incarnation { node: Name::stored("fuzzed"), number: 1 };
    let claims = almanac.claim(&who, &[(SHARD, Fence::default())]).expect("the disk is sound");
    let [Claim::Granted(tenure)] = claims[..] else { panic!("{claims:?}") };
    let commit = |serial, numbers: std::ops::Range<u64>| {
        let tallies = vec![(Tally::slot(TallyKind::DueDay, 0), 1)];
        let changes = numbers.map(|number| Change::Insert { row: row(number), replaces: None }).collect();
        let batch = Batch { shard: SHARD, fence: tenure.fence, serial, changes, tallies };
        assert_eq!(almanac.commit(vec![batch]), Ok(vec![Ok(())]), "the disk is sound");
    };
    let put = |seen, value: &[u8]| {
        let written = almanac.cluster_put("level", seen, value).expect("the disk is sound");
        written.expect("nobody else writes")
    };
    commit(1, 0..4);
    let seen = put(0, b"1");
    almanac.checkpoint().expect("the disk is sound");
    commit(2, 4..6);
    put(seen, b"2");
    drop(almanac);
    disk
});

fn row(number: u64) -> Row {
    let table = if number % 3 == 2 { Table::Dead } else { Table::Live };
    Row {
        table,
        key: Key::new("orders", &number.to_string(), ""),
        seq: number + 1,
        at: Timestamp::from_millis(number * 1_000),
        group: Some(Name::stored("user-7")),
        state: Bytes::from_static(b"waits"),
        body: Bytes::from_static(b"body"),
    }
}

/// The first byte says which file is replaced by the rest.
pub fn almanac(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else { return };
    let mut bytes = bytes.to_vec();
    let name = match which {
        b'm' => {
            seal_manifest(&mut bytes);
            "manifest"
        }
        b'j' => {
            seal_segment(&mut bytes);
            "journal-0000"
        }
        b'e' => {
            seal_reach(&mut bytes);
            "reach"
        }
        _ => {
            seal_run(&mut bytes);
            "run-0000000000000001"
        }
    };
    let disk = WHOLE.copy();
    assert!(disk.read(name).is_some(), "the almanac has a file {name}");
    disk.overwrite(name, &bytes);
    _ = inspect::check(&disk, &mut |_| ());
    if let Ok(mut contents) = inspect::Contents::read(&disk) {
        _ = contents.rows(None).count();
    }
    for accepts_loss in [false, true] {
        if let Some(almanac) = open(disk.copy(), accepts_loss) {
            read(&almanac);
        }
    }
}

/// Reads everything in each way there is.
fn read(almanac: &Almanac) {
    for table in [Table::Live, Table::Dead, Table::History, Table::Settings] {
        let scan = Scan {
            table,
            from: Position::default(),
            until: Timestamp::NEVER,
            topic: None,
            limit: 100,
            bodies: Bodies::With,
        };
        _ = almanac.scan(SHARD, &scan);
    }
    let keys: Vec<Key> = (0..6).map(|number| row(number).key).collect();
    _ = almanac.get(SHARD, &keys, Bodies::With);
    _ = almanac.numbered(SHARD, &[1, 2, 3, 4, 5, 6], Bodies::With);
    _ = almanac.tallies(SHARD);
    _ = almanac.cluster_get("level");
    _ = almanac.checkpoint();
}

/// A part of a file, if it is there.
fn part(bytes: &[u8], start: u64, length: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(start).ok()?..usize::try_from(start.checked_add(length)?).ok()?)
}

fn u32_at(bytes: &[u8], at: u64) -> Option<u32> {
    Some(u32::from_le_bytes(part(bytes, at, 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: u64) -> Option<u64> {
    Some(u64::from_le_bytes(part(bytes, at, 8)?.try_into().ok()?))
}

/// Puts the checksum of a part at a place.
fn put(bytes: &mut [u8], at: u64, start: u64, length: u64) -> Option<()> {
    let sum = crc32c(part(bytes, start, length)?);
    let at = usize::try_from(at).ok()?;
    bytes.get_mut(at..at.checked_add(4)?)?.copy_from_slice(&sum.to_le_bytes());
    Some(())
}

fn seal_manifest(bytes: &mut [u8]) -> Option<()> {
    let length = u64_at(bytes, 16)?.checked_add(8)?;
    put(bytes, 12, 16, length)
}

fn seal_reach(bytes: &mut [u8]) -> Option<()> {
    for copy in [0, 512, 1_024] {
        put(bytes, copy + 12, copy + 16, 32)?;
    }
    Some(())
}

fn seal_segment(bytes: &mut [u8]) -> Option<()> {
    for copy in [0, 512] {
        let length = if u32_at(bytes, copy + 8)? == 1 { 28 } else { 36 };
        put(bytes, copy + 12, copy + 16, length)?;
    }
    let salt = crc32c(part(bytes, 28, 8)?);
    let mut at = 1_024;
    while let Some(length) = u32_at(bytes, at + 4).map(u64::from)
        && let Some(record) = part(bytes, at + 4, 20 + length)
    {
        let sum = crc32c_append(salt, record);
        bytes[at as usize..][..4].copy_from_slice(&sum.to_le_bytes());
        at += (24 + length).next_multiple_of(8);
    }
    Some(())
}

/// From the parts to the footer, which has the checksums of some of them. Not the data blocks: rows are parsed when they are
/// committed, and in a run their checksum vouches for them, so that reading them is quick.
fn seal_run(bytes: &mut [u8]) -> Option<()> {
    let footer = (bytes.len() as u64).checked_sub(108)?;
    put(bytes, 20, 0, 20)?;
    let [keys, groups, group_index, filter, block_index, shards] =
        [32, 40, 48, 56, 64, 72].map(|at| u64_at(bytes, footer + at).unwrap_or_default());
    seal_keys(bytes, keys);
    let mut page = groups;
    let mut left = u64::from(u32_at(bytes, footer + 16)?);
    while left > 0 {
        let length = 20 * left.min(204);
        put(bytes, page.checked_add(length)?, page, length)?;
        (page, left) = (page + length + 4, left.saturating_sub(204));
    }
    let parts = [(group_index, filter), (filter, block_index), (block_index, shards), (shards, footer)];
    for ((start, end), at) in parts.into_iter().zip([80, 84, 88, 92]) {
        _ = end.checked_sub(start).and_then(|length| put(bytes, footer + at, start, length));
    }
    put(bytes, footer + 96, footer, 96)
}

fn seal_keys(bytes: &mut [u8], keys: u64) -> Option<()> {
    let (sums, entries) = (keys.checked_add(4 * 4_097)?, keys.checked_add(4 * (4_097 + 16 + 1))?);
    for stretch in 0..16 {
        let [first, last] = [stretch, stretch + 1].map(|stretch| u32_at(bytes, keys + 4 * 256 * stretch));
        let (first, last) = (u64::from(first?), u64::from(last?));
        let length = last.checked_sub(first).map(|count| 8 * count);
        _ = length.and_then(|length| put(bytes, sums + 4 * stretch, entries.checked_add(8 * first)?, length));
    }
    put(bytes, entries - 4, keys, 4 * (4_097 + 16))
}
