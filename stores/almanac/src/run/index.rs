//! The block index of a run: which rows each data block holds. And which numbers the live rows of each shard have.
//!
//! Invariant: the blocks stand in the order of (shard, table, first position), one right after the
//! other in the file, and each has at least one row.

use std::ops::{Range, RangeInclusive};

use punctual_core::store::{Position, ShardId, Table};

use crate::row;

use super::file::{u16_at, u32_at, u64_at};
use super::footer::{Footer, HEADER_BYTES};

pub(super) const ENTRY_BYTES: usize = 36;
pub(super) const SHARD_BYTES: usize = 18;

/// A data block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockEntry {
    pub first: Position,
    pub offset: u64,
    pub length: u32,
    /// The ordinal of its first row.
    pub ordinal: u32,
    pub shard: ShardId,
    pub table: Table,
}

const _: () = assert!(size_of::<BlockEntry>() <= 40);

impl BlockEntry {
    pub fn place(&self) -> (ShardId, Table) {
        (self.shard, self.table)
    }

    /// Where it ends in the file.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.length)
    }

    fn write(&self, to: &mut Vec<u8>) {
        for number in [self.first.at.as_millis(), self.first.seq, self.offset] {
            to.extend_from_slice(&number.to_le_bytes());
        }
        to.extend_from_slice(&self.length.to_le_bytes());
        to.extend_from_slice(&self.ordinal.to_le_bytes());
        to.extend_from_slice(&self.shard.0.to_le_bytes());
        to.extend_from_slice(&[self.table as u8, 0]);
    }

    fn parse(bytes: &[u8]) -> Option<BlockEntry> {
        Some(BlockEntry {
            first: Position { at: row::instant(u64_at(bytes, 0)), seq: u64_at(bytes, 8) },
            offset: u64_at(bytes, 16),
            length: u32_at(bytes, 24),
            ordinal: u32_at(bytes, 28),
            shard: ShardId(u16_at(bytes, 32)),
            table: row::table(bytes[34])?,
        })
    }
}

/// All data blocks of a run.
pub(super) struct BlockIndex {
    entries: Vec<BlockEntry>,
    /// The first block of each shard and table.
    places: Vec<((ShardId, Table), u32)>,
    rows: u32,
}

impl BlockIndex {
    pub fn new(entries: Vec<BlockEntry>, rows: u32) -> BlockIndex {
        let mut places: Vec<((ShardId, Table), u32)> = Vec::new();
        for (block, entry) in entries.iter().enumerate() {
            if places.last().is_none_or(|(place, _)| *place != entry.place()) {
                places.push((entry.place(), block as u32));
            }
        }
        BlockIndex { entries, places, rows }
    }

    /// The index in these bytes, or what is wrong with them.
    pub fn parse(bytes: &[u8], footer: &Footer) -> Result<BlockIndex, &'static str> {
        let entries: Option<Vec<BlockEntry>> = bytes.chunks_exact(ENTRY_BYTES).map(BlockEntry::parse).collect();
        let entries = entries.ok_or("the block index names an unknown table")?;
        let (mut offset, mut ordinal, mut last) = (HEADER_BYTES as u64, 0, None);
        for (number, entry) in entries.iter().enumerate() {
            let next_ordinal = entries.get(number + 1).map_or(footer.rows, |next| next.ordinal);
            let order = Some((entry.place(), entry.first));
            if entry.offset != offset || entry.ordinal != ordinal || next_ordinal <= ordinal || order <= last {
                return Err("the block index is not in order");
            }
            (offset, ordinal, last) = (entry.end(), next_ordinal, order);
        }
        if offset != footer.keys || ordinal != footer.rows {
            return Err("the block index does not name all rows");
        }
        Ok(BlockIndex::new(entries, footer.rows))
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.entries.len() * ENTRY_BYTES);
        self.entries.iter().for_each(|entry| entry.write(&mut bytes));
        bytes
    }

    pub fn blocks(&self) -> usize {
        self.entries.len()
    }

    pub fn entry(&self, block: usize) -> &BlockEntry {
        &self.entries[block]
    }

    pub fn places(&self) -> impl Iterator<Item = (ShardId, Table)> + '_ {
        self.places.iter().map(|(place, _)| *place)
    }

    pub fn block_of(&self, ordinal: u32) -> usize {
        assert!(ordinal < self.rows, "the run has {} rows, not one with ordinal {ordinal}", self.rows);
        self.entries.partition_point(|entry| entry.ordinal <= ordinal) - 1
    }

    pub fn ordinals(&self, block: usize) -> Range<u32> {
        let end = self.entries.get(block + 1).map_or(self.rows, |next| next.ordinal);
        self.entries[block].ordinal..end
    }

    pub fn blocks_from(&self, shard: ShardId, table: Table, from: Position) -> Range<usize> {
        let Ok(number) = self.places.binary_search_by_key(&(shard, table), |(place, _)| *place) else {
            return 0..0;
        };
        let start = self.places[number].1 as usize;
        let end = self.places.get(number + 1).map_or(self.entries.len(), |(_, block)| *block as usize);
        // The last block that does not begin behind the position may still reach it.
        let begun = self.entries[start..end].partition_point(|entry| entry.first <= from);
        start + begun.saturating_sub(1)..end
    }

    /// The blocks that may hold rows from a time on and before a position.
    pub fn blocks_before(&self, shard: ShardId, table: Table, from: Position, before: Position) -> Range<usize> {
        let blocks = self.blocks_from(shard, table, from);
        let begun = self.entries[blocks.clone()].partition_point(|entry| entry.first < before);
        blocks.start..blocks.start + begun
    }

    pub fn covers(&self, ordinal: u32, place: (ShardId, Table), position: Position) -> bool {
        let block = self.block_of(ordinal);
        let entry = &self.entries[block];
        let before_next = |next: &BlockEntry| next.place() != place || position < next.first;
        entry.place() == place
            && entry.first <= position
            && (entry.ordinal == ordinal) == (entry.first == position)
            && self.entries.get(block + 1).is_none_or(before_next)
    }
}

/// The least and the greatest number of each shard's live rows.
#[derive(Default)]
pub(super) struct Shards {
    entries: Vec<(ShardId, u64, u64)>,
}

impl Shards {
    /// A live row comes; rows come in the order of their shards.
    pub fn add(&mut self, shard: ShardId, seq: u64) {
        match self.entries.last_mut() {
            Some((last, least, greatest)) if *last == shard => {
                *least = seq.min(*least);
                *greatest = seq.max(*greatest);
            }
            _ => self.entries.push((shard, seq, seq)),
        }
    }

    pub fn seqs(&self, shard: ShardId) -> Option<RangeInclusive<u64>> {
        let number = self.entries.binary_search_by_key(&shard, |(shard, ..)| *shard).ok()?;
        let (_, least, greatest) = self.entries[number];
        Some(least..=greatest)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn parse(bytes: &[u8]) -> Result<Shards, &'static str> {
        let entry = |bytes: &[u8]| (ShardId(u16_at(bytes, 0)), u64_at(bytes, 2), u64_at(bytes, 10));
        let entries: Vec<(ShardId, u64, u64)> = bytes.chunks_exact(SHARD_BYTES).map(entry).collect();
        let ascending = entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !ascending || entries.iter().any(|(_, least, greatest)| least > greatest) {
            return Err("the list of shards is not in order");
        }
        Ok(Shards { entries })
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.entries.len() * SHARD_BYTES);
        for (shard, least, greatest) in &self.entries {
            bytes.extend_from_slice(&shard.0.to_le_bytes());
            bytes.extend_from_slice(&least.to_le_bytes());
            bytes.extend_from_slice(&greatest.to_le_bytes());
        }
        bytes
    }
}
