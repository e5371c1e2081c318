//! The header and the footer of a run: what the file is, and where its parts are.

use crate::address::Address;
use crate::error::{OpenError, ReadError};

use super::file::{RunFile, append_checksum, checked, u32_at, u64_at};
use super::groups::{FIRST_BYTES, pages_bytes, pages_of};
use super::index::{ENTRY_BYTES, SHARD_BYTES};
use super::key_section;

/// The newest version of the format, and the one that is written.
pub(super) const VERSION: u32 = 2;
/// The first version in which the numbers of all rows stand among the groups.
pub(super) const NUMBERS: u32 = 2;
pub(super) const HEADER_BYTES: usize = 24;
const FOOTER_BYTES: usize = 108;
const MAGIC: &[u8; 8] = b"PunctRun";
const END_MAGIC: &[u8; 8] = b"Run-ends";

/// What a run begins with.
pub(super) fn header(number: u64) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    append_checksum(&mut bytes, 0);
    bytes
}

/// What a run ends with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Footer {
    pub number: u64,
    pub rows: u32,
    pub blocks: u32,
    pub group_entries: u32,
    pub shard_entries: u32,
    pub row_bytes: u64,
    /// Where the parts begin, in the order in which they stand in the file.
    pub keys: u64,
    pub groups: u64,
    pub group_index: u64,
    pub filter: u64,
    pub block_index: u64,
    pub shards: u64,
    /// Of group index, group filter, block index and shards.
    pub sums: [u32; 4],
}

impl Footer {
    /// Reads header and footer of a file of this length, and makes sure that all parts fit into it. Gives the file's
    /// version, too.
    pub fn open(file: &RunFile, length: u64, number: u64) -> Result<(Footer, u32), OpenError> {
        if length < (HEADER_BYTES + FOOTER_BYTES) as u64 {
            return Err(file.damage(length, "the file is too short to be a run").into());
        }
        let version = read_header(file, number)?;
        let place = length - FOOTER_BYTES as u64;
        let bytes = file.read(place, FOOTER_BYTES)?;
        let bytes = bytes.strip_suffix(END_MAGIC).ok_or_else(|| {
            file.damage(length - END_MAGIC.len() as u64, "the mark at the end is missing: the file is truncated")
        })?;
        let bytes = checked(bytes).ok_or_else(|| file.damage(place, "the footer has a wrong checksum"))?;
        let footer = Footer::parse(bytes);
        if footer.number != number {
            return Err(file.damage(place, format!("the footer belongs to run {:x}", footer.number)).into());
        }
        if !footer.fits(length) {
            return Err(file.damage(place, "the footer does not match the length of the file").into());
        }
        Ok((footer, version))
    }

    /// Group index, group filter, block index and shards, each with its checksum checked.
    pub fn resident_parts(&self, file: &RunFile, length: u64) -> Result<[Vec<u8>; 4], ReadError> {
        let end = length - FOOTER_BYTES as u64;
        let mut rest = file.read(self.group_index, (end - self.group_index) as usize)?;
        let starts = [self.group_index, self.filter, self.block_index, self.shards];
        let names = ["group index", "group filter", "block index", "list of shards"];
        let mut parts = [const { Vec::new() }; 4];
        // From the last to the first, so that each is cut off the end.
        for (number, part) in parts.iter_mut().enumerate().rev() {
            *part = rest.split_off((starts[number] - self.group_index) as usize);
            if crc32c::crc32c(part) != self.sums[number] {
                let what = format!("the {} has a wrong checksum", names[number]);
                return Err(file.damage(starts[number], what).into());
            }
        }
        Ok(parts)
    }

    /// Where the file ends.
    pub fn end(&self) -> u64 {
        self.shards + u64::from(self.shard_entries) * SHARD_BYTES as u64 + FOOTER_BYTES as u64
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.number.to_le_bytes().to_vec();
        for count in [self.rows, self.blocks, self.group_entries, self.shard_entries] {
            bytes.extend_from_slice(&count.to_le_bytes());
        }
        let parts = [self.keys, self.groups, self.group_index, self.filter, self.block_index, self.shards];
        for number in [self.row_bytes].into_iter().chain(parts) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for sum in self.sums {
            bytes.extend_from_slice(&sum.to_le_bytes());
        }
        append_checksum(&mut bytes, 0);
        bytes.extend_from_slice(END_MAGIC);
        bytes
    }

    fn parse(bytes: &[u8]) -> Footer {
        Footer {
            number: u64_at(bytes, 0),
            rows: u32_at(bytes, 8),
            blocks: u32_at(bytes, 12),
            group_entries: u32_at(bytes, 16),
            shard_entries: u32_at(bytes, 20),
            row_bytes: u64_at(bytes, 24),
            keys: u64_at(bytes, 32),
            groups: u64_at(bytes, 40),
            group_index: u64_at(bytes, 48),
            filter: u64_at(bytes, 56),
            block_index: u64_at(bytes, 64),
            shards: u64_at(bytes, 72),
            sums: [80, 84, 88, 92].map(|at| u32_at(bytes, at)),
        }
    }

    /// Whether each part is as long as the counts say and ends where the next one begins.
    fn fits(&self, length: u64) -> bool {
        let parts = [
            (self.keys, self.groups, key_section::bytes(self.rows)),
            (self.groups, self.group_index, pages_bytes(self.group_entries)),
            (self.group_index, self.filter, pages_of(self.group_entries) as u64 * FIRST_BYTES as u64),
            (self.block_index, self.shards, u64::from(self.blocks) * ENTRY_BYTES as u64),
        ];
        self.rows as usize <= Address::MOST_ROWS
            && self.keys >= HEADER_BYTES as u64
            && self.filter <= self.block_index
            && parts.iter().all(|(start, end, bytes)| start.checked_add(*bytes) == Some(*end))
            && self.shards <= length
            && self.end() == length
    }
}

/// Checks the header, and gives the version.
fn read_header(file: &RunFile, number: u64) -> Result<u32, OpenError> {
    let bytes = file.read(0, HEADER_BYTES)?;
    if !bytes.starts_with(MAGIC) {
        return Err(file.damage(0, "the mark at the beginning is missing: the file is not a run").into());
    }
    let bytes = checked(&bytes).ok_or_else(|| file.damage(0, "the header has a wrong checksum"))?;
    let version = u32_at(bytes, 16);
    if version > VERSION {
        return Err(OpenError::Newer { file: super::file_name(number), found: version, known: VERSION });
    }
    if version == 0 || u64_at(bytes, 8) != number {
        return Err(file.damage(8, format!("the header belongs to run {:x}", u64_at(bytes, 8))).into());
    }
    Ok(version)
}
