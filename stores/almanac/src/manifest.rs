//! The manifest: which runs count, which of their rows are dead, and where in the journal to go on.
//!
//! ```text
//!  0  "PUNCMANI"                       24  u64  sequence: all records up to it are in the runs
//!  8  u32  version                     32  u64  number of the first segment that counts
//! 12  u32  checksum of what follows    40  u64  number of the next run
//! 16  u64  length of what follows      48  u32  runs, then each:    u64 number  u32 rows  u64 bytes
//!                                                                  u32 length of the deaths, deaths
//!                                          u32  fences, then each:  u16 shard  u64 fence
//!                                          u32  tallies, then each: u16 shard, tally as in the journal
//!                                          u32  entries of the cluster, each as in the journal
//!                                          u8   1 if it is noted how far the journal reaches
//! ```
//! The deaths are a Roaring bitmap in its portable form, of the row's ordinals within the run. It is
//! written as `manifest.new` and renamed when it is whole: there is always one manifest.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use punctual_core::store::{Entry, Fence, ShardId, Tally};
use punctual_disk::Disk;
use roaring::RoaringBitmap;

use crate::error::{Damage, OpenError};
use crate::payload::{read_counter, read_entry, read_tally, write_entry_itself, write_tally};

/// The manifest's file, and the one that is to become it.
pub(crate) const NAME: &str = "manifest";
pub(crate) const NEW: &str = "manifest.new";

const MAGIC: &[u8; 8] = b"PUNCMANI";
const HEAD: usize = 24;

/// The newest version that can be read, and the one that is written. Before version 3 there were no entries of the
/// cluster; that it is noted how far the journal reaches was said by the version alone: 1 for no, 2 for yes.
const VERSION: u32 = 3;

pub(crate) type Tallies = BTreeMap<(ShardId, Tally), i64>;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Manifest {
    /// All records of the journal up to this one are in the runs.
    pub sequence: u64,
    /// The number of the first segment of the journal that counts.
    pub first_segment: u64,
    /// The number of the next run.
    pub next_run: u64,
    pub runs: Vec<RunEntry>,
    pub fences: Vec<(ShardId, Fence)>,
    pub tallies: Arc<Tallies>,
    /// The entries of the cluster, in the order of their keys.
    pub entries: Vec<(String, Entry)>,
    /// Whether there is a note of how far the journal reaches.
    pub has_reach: bool,
}

/// A run that counts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunEntry {
    pub number: u64,
    pub rows: u32,
    pub bytes: u64,
    pub deaths: Arc<RoaringBitmap>,
}

impl Manifest {
    /// Reads the manifest; `None` if there is none.
    pub fn load(disk: &dyn Disk) -> Result<Option<Manifest>, OpenError> {
        let failed = || OpenError::io("the manifest cannot be read");
        let file = match disk.open(NAME) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(failed())?,
        };
        let length = file.len().map_err(failed())?;
        let mut bytes = vec![0; usize::try_from(length).expect("a manifest fits into memory")];
        file.read_at(&mut bytes, 0).map_err(failed())?;
        Manifest::read(&bytes).map(Some)
    }

    /// How long its file is.
    pub fn length(&self) -> u64 {
        self.write().len() as u64
    }

    /// Puts this manifest in the place of the one before.
    pub fn store(&self, disk: &dyn Disk) -> io::Result<()> {
        let file = disk.create(NEW)?;
        file.write_at(&self.write(), 0)?;
        file.sync()?;
        disk.rename(NEW, NAME)
    }

    /// The same on a disk without room: a file of this name that is long enough becomes the manifest.
    pub fn store_over(&self, disk: &dyn Disk, name: &str) -> io::Result<()> {
        let bytes = self.write();
        let file = disk.open(name)?;
        if file.len()? < bytes.len() as u64 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        disk.rename(name, NEW)?;
        // A crash must not find these bytes under the old name.
        disk.sync()?;
        file.write_at(&bytes, 0)?;
        file.sync()?;
        disk.rename(NEW, NAME)
    }

    fn read(bytes: &[u8]) -> Result<Manifest, OpenError> {
        let damage = |offset, what: &str| Damage { file: NAME.to_owned(), offset, what: what.to_owned() };
        if bytes.len() < HEAD || !bytes.starts_with(MAGIC) {
            return Err(damage(0, "it does not start like a manifest").into());
        }
        let mut head = &bytes[MAGIC.len()..HEAD];
        let (version, checksum, length) = (head.get_u32_le(), head.get_u32_le(), head.get_u64_le());
        if version > VERSION {
            return Err(OpenError::Newer { file: NAME.to_owned(), found: version, known: VERSION });
        }
        if version == 0 {
            return Err(damage(8, "there is no version 0").into());
        }
        // A file that was something else before may be longer than what is in it.
        let whole = usize::try_from(length).ok().and_then(|length| bytes.get(16..HEAD.checked_add(length)?));
        let Some(whole) = whole.filter(|whole| crc32c::crc32c(whole) == checksum) else {
            return Err(damage(12, "the checksum does not match").into());
        };
        let unclear = || damage(HEAD as u64, "the checksum is correct, but the content is not valid");
        Ok(Manifest::read_content(&whole[8..], version).ok_or_else(unclear)?)
    }

    fn read_content(mut from: &[u8], version: u32) -> Option<Manifest> {
        let mut manifest = Manifest {
            sequence: read_counter(&mut from)?,
            first_segment: read_counter(&mut from)?,
            next_run: read_counter(&mut from)?,
            ..Manifest::default()
        };
        for _ in 0..from.try_get_u32_le().ok()? {
            let (number, rows) = (read_counter(&mut from)?, from.try_get_u32_le().ok()?);
            let (bytes, length) = (from.try_get_u64_le().ok()?, from.try_get_u32_le().ok()? as usize);
            let deaths = Arc::new(RoaringBitmap::deserialize_from(from.get(..length)?).ok()?);
            from.advance(length);
            manifest.runs.push(RunEntry { number, rows, bytes, deaths });
        }
        for _ in 0..from.try_get_u32_le().ok()? {
            manifest.fences.push((ShardId(from.try_get_u16_le().ok()?), Fence(read_counter(&mut from)?)));
        }
        let mut tallies = Tallies::new();
        for _ in 0..from.try_get_u32_le().ok()? {
            let shard = ShardId(from.try_get_u16_le().ok()?);
            let (tally, count) = read_tally(&mut from)?;
            tallies.insert((shard, tally), count);
        }
        manifest.tallies = Arc::new(tallies);
        if version < 3 {
            manifest.has_reach = version == 2;
            return from.is_empty().then_some(manifest);
        }
        for _ in 0..from.try_get_u32_le().ok()? {
            let (key, revision, value) = read_entry(&mut from)?;
            manifest.entries.push((key.to_owned(), Entry { revision, value: Bytes::copy_from_slice(value) }));
        }
        manifest.has_reach = match from.try_get_u8().ok()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        from.is_empty().then_some(manifest)
    }

    fn write(&self) -> Vec<u8> {
        let mut to = vec![0; HEAD];
        for number in [self.sequence, self.first_segment, self.next_run] {
            to.extend_from_slice(&number.to_le_bytes());
        }
        to.extend_from_slice(&(self.runs.len() as u32).to_le_bytes());
        for RunEntry { number, rows, bytes, deaths } in &self.runs {
            to.extend_from_slice(&number.to_le_bytes());
            to.extend_from_slice(&rows.to_le_bytes());
            to.extend_from_slice(&bytes.to_le_bytes());
            to.extend_from_slice(&(deaths.serialized_size() as u32).to_le_bytes());
            deaths.serialize_into(&mut to).expect("memory takes what is written to it");
        }
        to.extend_from_slice(&(self.fences.len() as u32).to_le_bytes());
        for (shard, fence) in &self.fences {
            to.extend_from_slice(&shard.0.to_le_bytes());
            to.extend_from_slice(&fence.0.to_le_bytes());
        }
        to.extend_from_slice(&(self.tallies.len() as u32).to_le_bytes());
        for ((shard, tally), count) in &*self.tallies {
            to.extend_from_slice(&shard.0.to_le_bytes());
            write_tally(tally, *count, &mut to);
        }
        to.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        for (key, Entry { revision, value }) in &self.entries {
            write_entry_itself(key, *revision, value, &mut to);
        }
        to.push(u8::from(self.has_reach));
        to[..8].copy_from_slice(MAGIC);
        to[8..12].copy_from_slice(&VERSION.to_le_bytes());
        let length = (to.len() - HEAD) as u64;
        to[16..24].copy_from_slice(&length.to_le_bytes());
        let checksum = crc32c::crc32c(&to[16..]);
        to[12..16].copy_from_slice(&checksum.to_le_bytes());
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::Name;
    use punctual_core::store::TallyKind;

    fn manifest() -> Manifest {
        let tally = Tally::named(TallyKind::Waiting, &Name::new("orders").unwrap());
        let deaths = Arc::new((0..1_000).chain([5_000]).collect());
        Manifest {
            sequence: 77,
            first_segment: 3,
            next_run: 9,
            runs: vec![RunEntry { number: 8, rows: 10_000, bytes: 1 << 33, deaths }],
            fences: vec![(ShardId(2), Fence(5))],
            tallies: Arc::new(Tallies::from([((ShardId(2), tally), 12)])),
            entries: vec![("level".to_owned(), Entry { revision: 3, value: Bytes::from_static(b"7") })],
            has_reach: true,
        }
    }

    #[test]
    fn a_manifest_comes_back_as_it_was_stored() {
        assert_eq!(Manifest::read(&manifest().write()).unwrap(), manifest());
        assert_eq!(Manifest::read(&Manifest::default().write()).unwrap(), Manifest::default());
        let without_reach = Manifest { has_reach: false, ..manifest() };
        assert_eq!(Manifest::read(&without_reach.write()).unwrap(), without_reach);
    }

    #[test]
    fn every_flipped_bit_in_a_manifest_is_noticed() {
        let bytes = manifest().write();
        for bit in 0..bytes.len() * 8 {
            let mut spoilt = bytes.clone();
            spoilt[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::read(&spoilt).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_manifest_that_counts_beyond_all_reason_is_damaged() {
        for counted in [
            Manifest { sequence: u64::MAX, ..manifest() },
            Manifest { first_segment: 1 << 63, ..manifest() },
            Manifest { next_run: u64::MAX, ..manifest() },
            Manifest { fences: vec![(ShardId(0), Fence(u64::MAX))], ..manifest() },
            Manifest { entries: vec![(String::new(), Entry { revision: 1 << 63, value: Bytes::new() })], ..manifest() },
        ] {
            assert!(matches!(Manifest::read(&counted.write()), Err(OpenError::Damaged(_))), "{counted:?}");
        }
    }

    #[test]
    fn a_newer_manifest_is_refused_by_its_version() {
        let mut bytes = manifest().write();
        bytes[8] = 4;
        assert!(matches!(Manifest::read(&bytes), Err(OpenError::Newer { found: 4, known: 3, .. })));
    }
}
