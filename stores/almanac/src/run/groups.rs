//! The groups of a run: sorted pages on the disk, and in memory the first entry of each page and a
//! filter, so that a run that does not have a group is not read for it.

use std::io;

use xorf::{BinaryFuse8, Descriptor, Filter};

use crate::error::ReadError;

use super::file::{RunFile, append_checksum, checked, u32_at, u64_at};
use super::footer::Footer;
use super::output::Output;

/// The hash of the group, the row's number, and its ordinal.
pub(super) type GroupEntry = (u64, u64, u32);

const ENTRY_BYTES: usize = 20;
/// How many entries a page has; with the checksum that is just below 4 KiB.
const PAGE: usize = 204;
const PAGE_BYTES: usize = PAGE * ENTRY_BYTES + 4;
/// How many pages are read at once at most.
const MOST_PAGES: usize = 256;
/// The length of an entry in the group index.
pub(super) const FIRST_BYTES: usize = 16;
/// The length of the filter without its fingerprints.
const DESCRIPTOR_BYTES: usize = 20;

/// How many pages so many entries take.
pub(super) fn pages_of(entries: u32) -> usize {
    (entries as usize).div_ceil(PAGE)
}

/// How long the pages are.
pub(super) fn pages_bytes(entries: u32) -> u64 {
    u64::from(entries) * ENTRY_BYTES as u64 + pages_of(entries) as u64 * 4
}

/// What a run keeps in memory of its groups.
pub(super) struct Groups {
    /// Where the pages begin in the file.
    offset: u64,
    entries: u32,
    /// The hash and number of each page's first entry.
    firsts: Vec<(u64, u64)>,
    filter: Option<BinaryFuse8>,
}

impl Groups {
    /// Writes the pages of these entries, which it sorts.
    pub fn write(mut entries: Vec<GroupEntry>, to: &mut Output) -> io::Result<Groups> {
        entries.sort_unstable();
        let mut groups =
            Groups { offset: to.position(), entries: entries.len() as u32, firsts: Vec::new(), filter: None };
        let mut bytes = Vec::with_capacity(PAGE_BYTES);
        for page in entries.chunks(PAGE) {
            groups.firsts.push((page[0].0, page[0].1));
            bytes.clear();
            for (hash, seq, ordinal) in page {
                bytes.extend_from_slice(&hash.to_le_bytes());
                bytes.extend_from_slice(&seq.to_le_bytes());
                bytes.extend_from_slice(&ordinal.to_le_bytes());
            }
            append_checksum(&mut bytes, 0);
            to.append(&bytes)?;
        }
        let mut hashes: Vec<u64> = entries.iter().map(|(hash, ..)| *hash).collect();
        hashes.dedup();
        if !hashes.is_empty() {
            // Making a filter goes by trial; should all fail, every lookup reads a page.
            groups.filter = BinaryFuse8::try_from(hashes).ok();
        }
        Ok(groups)
    }

    /// The groups that the index and filter in these bytes are of, or what is wrong with them.
    pub fn parse(index: &[u8], filter: &[u8], footer: &Footer) -> Result<Groups, &'static str> {
        let first = |bytes: &[u8]| (u64_at(bytes, 0), u64_at(bytes, 8));
        let firsts: Vec<(u64, u64)> = index.chunks_exact(FIRST_BYTES).map(first).collect();
        if !firsts.is_sorted() {
            return Err("the group index is not in order");
        }
        let filter = if filter.is_empty() { None } else { Some(parse_filter(filter)?) };
        Ok(Groups { offset: footer.groups, entries: footer.group_entries, firsts, filter })
    }

    pub fn index_bytes(&self) -> Vec<u8> {
        self.firsts.iter().flat_map(|(hash, seq)| [*hash, *seq]).flat_map(u64::to_le_bytes).collect()
    }

    pub fn filter_bytes(&self) -> Vec<u8> {
        let Some(BinaryFuse8 { descriptor, fingerprints }) = &self.filter else { return Vec::new() };
        let mut bytes = descriptor.seed.to_le_bytes().to_vec();
        for length in [descriptor.segment_length, descriptor.segment_length_mask, descriptor.segment_count_length] {
            bytes.extend_from_slice(&length.to_le_bytes());
        }
        bytes.extend_from_slice(fingerprints);
        bytes
    }

    /// Whether the run may have a group with this hash.
    pub fn may_have(&self, hash: u64) -> bool {
        self.entries > 0 && self.filter.as_ref().is_none_or(|filter| filter.contains(&hash))
    }

    /// The numbers and ordinals of the rows of a group, from a number on. Groups of two shards may
    /// have one hash: so the limit is passed rather than to part entries of the same number, and a
    /// caller can go on behind the last one.
    pub fn find(&self, file: &RunFile, hash: u64, from: u64, limit: usize) -> Result<Vec<(u64, u32)>, ReadError> {
        let mut found: Vec<(u64, u32)> = Vec::new();
        if limit == 0 || !self.may_have(hash) {
            return Ok(found);
        }
        // The page before the first one that begins at or behind the entry may have it too.
        let mut page = self.firsts.partition_point(|first| *first < (hash, from)).saturating_sub(1);
        let end = self.firsts.partition_point(|first| *first <= (hash, u64::MAX));
        while page < end {
            let until = end.min(page + (limit - limit.min(found.len())) / PAGE + 1).min(page + MOST_PAGES);
            for entry in self.read_pages(file, page..until)? {
                let (entry_hash, seq, ordinal) = entry;
                if (entry_hash, seq) < (hash, from) {
                    continue;
                }
                let enough = found.len() >= limit && found.last().is_some_and(|(last, _)| *last != seq);
                if entry_hash != hash || enough {
                    return Ok(found);
                }
                found.push((seq, ordinal));
            }
            page = until;
        }
        Ok(found)
    }

    /// The same before a number, the greatest first. Here too the limit is passed rather than to part entries of the
    /// same number.
    pub fn find_back(
        &self,
        file: &RunFile,
        hash: u64,
        before: u64,
        limit: usize,
    ) -> Result<Vec<(u64, u32)>, ReadError> {
        let mut found: Vec<(u64, u32)> = Vec::new();
        if limit == 0 || !self.may_have(hash) {
            return Ok(found);
        }
        let mut end = self.firsts.partition_point(|first| *first < (hash, before));
        while end > 0 {
            let pages = ((limit - limit.min(found.len())) / PAGE + 1).min(MOST_PAGES);
            let begin = end.saturating_sub(pages);
            for (entry_hash, seq, ordinal) in self.read_pages(file, begin..end)?.into_iter().rev() {
                if (entry_hash, seq) >= (hash, before) {
                    continue;
                }
                let enough = found.len() >= limit && found.last().is_some_and(|(last, _)| *last != seq);
                if entry_hash != hash || enough {
                    return Ok(found);
                }
                found.push((seq, ordinal));
            }
            end = begin;
        }
        Ok(found)
    }

    /// Reads and checks pages.
    pub fn read_pages(&self, file: &RunFile, pages: std::ops::Range<usize>) -> Result<Vec<GroupEntry>, ReadError> {
        let start = self.page_offset(pages.start);
        let end = self.page_offset(pages.end);
        let bytes = file.read(start, (end - start) as usize)?;
        let mut entries = Vec::with_capacity(pages.len() * PAGE);
        for (number, page) in bytes.chunks(PAGE_BYTES).enumerate() {
            let wrong = || file.damage(self.page_offset(pages.start + number), "a group page has a wrong checksum");
            let page = checked(page).ok_or_else(wrong)?;
            let entry = |bytes: &[u8]| (u64_at(bytes, 0), u64_at(bytes, 8), u32_at(bytes, 16));
            entries.extend(page.chunks_exact(ENTRY_BYTES).map(entry));
        }
        Ok(entries)
    }

    pub fn pages(&self) -> usize {
        self.firsts.len()
    }

    /// The hash and number of a page's first entry.
    pub fn first(&self, page: usize) -> (u64, u64) {
        self.firsts[page]
    }

    /// Where in the file a page begins, or the pages end.
    pub fn page_offset(&self, page: usize) -> u64 {
        self.offset + (page as u64 * PAGE_BYTES as u64).min(pages_bytes(self.entries))
    }
}

fn parse_filter(bytes: &[u8]) -> Result<BinaryFuse8, &'static str> {
    let fingerprints = bytes.get(DESCRIPTOR_BYTES..).ok_or("the group filter is too short")?;
    let descriptor = Descriptor {
        seed: u64_at(bytes, 0),
        segment_length: u32_at(bytes, 8),
        segment_length_mask: u32_at(bytes, 12),
        segment_count_length: u32_at(bytes, 16),
    };
    // What the filter relies on to stay within its fingerprints.
    let (segment, all) = (u64::from(descriptor.segment_length), u64::from(descriptor.segment_count_length));
    let fits = segment.is_power_of_two()
        && u64::from(descriptor.segment_length_mask) == segment - 1
        && all.is_multiple_of(segment)
        && fingerprints.len() as u64 == all + 2 * segment;
    if !fits {
        return Err("the group filter does not match its own description");
    }
    Ok(BinaryFuse8 { descriptor, fingerprints: fingerprints.into() })
}
