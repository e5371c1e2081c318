//! The keys of a run: for each row a part of its key's hash and its ordinal, by partition, so that
//! the key index in memory can be filled partition by partition from all runs at once.
//!
//! They are read a stretch of partitions at a time: opening needs no second copy of all keys.

use std::io;

use crate::error::ReadError;

use super::file::{RunFile, append_checksum, checked, u32_at};
use super::output::Output;

/// How many parts the keys are in: the upper 12 bits of the hash tell which.
pub(crate) const PARTITIONS: usize = 1 << 12;
/// How many stretches the partitions are read in.
pub(crate) const STRETCHES: usize = 16;
/// How many partitions a stretch has.
const STRETCH: usize = PARTITIONS / STRETCHES;

const ENTRY_BYTES: usize = 8;
const HEAD_BYTES: usize = (PARTITIONS + 1 + STRETCHES + 1) * 4;

/// The partition of a key with this hash.
pub(crate) fn partition_of(hash: u64) -> usize {
    (hash >> 52) as usize
}

/// The 32 bits of the hash after those that tell the partition.
pub(crate) fn fingerprint_of(hash: u64) -> u32 {
    (hash >> 20) as u32
}

/// How long the section is.
pub(super) fn bytes(rows: u32) -> u64 {
    HEAD_BYTES as u64 + u64::from(rows) * ENTRY_BYTES as u64
}

/// The keys of a run, before any is read.
pub(crate) struct KeySection<'a> {
    file: &'a RunFile,
    /// Where the entries begin in the file.
    entries: u64,
    /// How many entries there are before each partition, and in all.
    starts: Vec<u32>,
    /// The checksum of each stretch.
    sums: Vec<u32>,
}

impl<'a> KeySection<'a> {
    pub(super) fn read(file: &'a RunFile, offset: u64, rows: u32) -> Result<KeySection<'a>, ReadError> {
        let bytes = file.read(offset, HEAD_BYTES)?;
        let bytes =
            checked(&bytes).ok_or_else(|| file.damage(offset, "the list of key partitions has a wrong checksum"))?;
        let number = |bytes: &[u8]| u32_at(bytes, 0);
        let mut starts: Vec<u32> = bytes.chunks_exact(4).map(number).collect();
        let sums = starts.split_off(PARTITIONS + 1);
        if !starts.is_sorted() || starts[0] != 0 || starts[PARTITIONS] != rows {
            return Err(file.damage(offset, "the list of key partitions is not in order").into());
        }
        Ok(KeySection { file, entries: offset + HEAD_BYTES as u64, starts, sums })
    }

    /// How many keys the partitions of a stretch have.
    pub fn keys_in(&self, stretch: usize) -> usize {
        (self.starts[(stretch + 1) * STRETCH] - self.starts[stretch * STRETCH]) as usize
    }

    /// The partitions of a stretch.
    pub fn partitions(stretch: usize) -> std::ops::Range<usize> {
        stretch * STRETCH..(stretch + 1) * STRETCH
    }

    /// Reads and checks the entries of a stretch's partitions.
    pub fn stretch(&self, stretch: usize) -> Result<Stretch<'_>, ReadError> {
        let offset = self.offset_of(stretch);
        let bytes = self.file.read(offset, self.keys_in(stretch) * ENTRY_BYTES)?;
        if crc32c::crc32c(&bytes) != self.sums[stretch] {
            return Err(self.file.damage(offset, "a part of the keys has a wrong checksum").into());
        }
        Ok(Stretch { starts: &self.starts, first: self.starts[stretch * STRETCH], bytes })
    }

    /// Where in the file a stretch begins.
    pub fn offset_of(&self, stretch: usize) -> u64 {
        self.entries + u64::from(self.starts[stretch * STRETCH]) * ENTRY_BYTES as u64
    }
}

/// The keys of some partitions, read.
pub(crate) struct Stretch<'a> {
    starts: &'a [u32],
    first: u32,
    bytes: Vec<u8>,
}

impl Stretch<'_> {
    /// The fingerprint and ordinal of each row whose key is in this partition, which must be one of
    /// the stretch; by ordinal.
    pub fn partition(&self, partition: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        let [from, to] = [partition, partition + 1].map(|at| (self.starts[at] - self.first) as usize * ENTRY_BYTES);
        self.bytes[from..to].chunks_exact(ENTRY_BYTES).map(|entry| (u32_at(entry, 0), u32_at(entry, 4)))
    }
}

/// The hashes, each with its ordinal, by partition; and how many there are before each partition.
pub(super) fn by_partition(hashes: &[u64]) -> (Vec<(u64, u32)>, Vec<u32>) {
    let mut starts = vec![0; PARTITIONS + 1];
    for hash in hashes {
        starts[partition_of(*hash) + 1] += 1;
    }
    for partition in 0..PARTITIONS {
        starts[partition + 1] += starts[partition];
    }
    let mut next = starts.clone();
    let mut sorted = vec![(0, 0); hashes.len()];
    for (ordinal, hash) in hashes.iter().enumerate() {
        let place = &mut next[partition_of(*hash)];
        sorted[*place as usize] = (*hash, ordinal as u32);
        *place += 1;
    }
    (sorted, starts)
}

/// Writes the section.
pub(super) fn write(keys: &[(u64, u32)], starts: &[u32], to: &mut Output) -> io::Result<()> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    starts.iter().for_each(|start| head.extend_from_slice(&start.to_le_bytes()));
    let mut entries = Vec::with_capacity(keys.len() * ENTRY_BYTES);
    for (hash, ordinal) in keys {
        let entry = u64::from(fingerprint_of(*hash)) | u64::from(*ordinal) << 32;
        entries.extend_from_slice(&entry.to_le_bytes());
    }
    for stretch in 0..STRETCHES {
        let [from, to] = [stretch, stretch + 1].map(|at| starts[at * STRETCH] as usize * ENTRY_BYTES);
        head.extend_from_slice(&crc32c::crc32c(&entries[from..to]).to_le_bytes());
    }
    append_checksum(&mut head, 0);
    to.append(&head)?;
    to.append(&entries)
}
