//! Runs: immutable files of rows in the order of (shard, table, `at`, `seq`), named `run-` and the
//! run's number in 16 hexadecimal digits. This is version 2 of the format:
//!
//! ```text
//!  header         24 bytes
//!  data blocks    the rows
//!  keys           for every row a part of its key's hash, and the row's ordinal
//!  group pages    for every row with a group: the group's hash, the row's number and ordinal; and for
//!                 every row but settings once more, under the hash of the group without a name
//!  group index    ┐
//!  group filter   │ read when the run is opened, and kept in memory
//!  block index    │
//!  shards         ┘
//!  footer         108 bytes
//! ```
//! Each part begins where the one before it ends. A row's ordinal is how many rows come before it.
//! Checksums are CRC-32C; numbers are little endian.
//!
//! ```text
//!  header                                   footer
//!   0  [8]  "PunctRun"                        0  u64  number
//!   8  u64  number                            8  u32  how many rows
//!  16  u32  version: 2                       12  u32  how many data blocks
//!  20  u32  checksum of the 20 before        16  u32  how many entries in the group pages
//!                                            20  u32  how many shards
//!  data block                                24  u64  how many bytes of rows
//!  rows in their stored form                 32  u64  where the keys begin
//!  u32 for each row: where it begins         40  u64  where the group pages begin
//!  u32  how many rows                        48  u64  where the group index begins
//!  u32  checksum of all before               56  u64  where the group filter begins
//!                                            64  u64  where the block index begins
//!  block index, for each data block          72  u64  where the shards begin
//!   0  u64  `at` of its first row            80  u32  checksum of the group index
//!   8  u64  `seq` of its first row           84  u32  checksum of the group filter
//!  16  u64  where it begins                  88  u32  checksum of the block index
//!  24  u32  how long it is                   92  u32  checksum of the shards
//!  28  u32  ordinal of its first row         96  u32  checksum of the 96 before
//!  32  u16  shard                           100  [8]  "Run-ends"
//!  34  u8   table
//!  35  u8   zero                            shards, for each that has live rows
//!                                            0  u16  shard
//!  keys                                      2  u64  least `seq` of its live rows
//!  4,097 × u32  entries before partition    10  u64  greatest `seq` of its live rows
//!     16 × u32  checksum of a stretch
//!          u32  checksum of all before      group pages, 204 entries each, the last has the rest
//!  for each row, by partition and ordinal:  0  u64  hash of the group    ┐ for each entry, in the
//!   0  u32  bits 20 to 51 of its key's hash 8  u64  `seq` of the row     │ order of hash, `seq`,
//!   4  u32  ordinal                        16  u32  ordinal of the row   ┘ ordinal
//!                                          then u32, checksum of all entries of the page
//!  group filter, a binary fuse filter
//!   0  u64  seed                            group index, for each page
//!   8  u32  segment length                   0  u64  hash of its first entry
//!  12  u32  segment length, less one         8  u64  `seq` of its first entry
//!  16  u32  length of all segments
//!  20  fingerprints; wholly empty if there are no groups, or no filter could be made
//! ```
//! A data block holds rows of one shard and one table. With its row offsets it has at most 32 KiB,
//! unless a single row is longer. A key's partition is the upper 12 bits of its hash; 256 partitions
//! are a stretch, which is read and checked as a whole.
//!
//! Version 1 has no entries under the group without a name: where a row is looked for by its number,
//! such a run is read through.
//!
//! Invariant: a run that opened has an index that fits the file; what is read from it is checked
//! before anyone sees it.

mod block;
mod check;
mod file;
mod footer;
mod groups;
mod index;
mod key_section;
mod output;
#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
mod writer;

use std::io;
use std::ops::{Range, RangeInclusive};

use punctual_core::store::{Position, ShardId, Table};
use punctual_disk::Disk;

use crate::error::{Damage, OpenError, ReadError};
use crate::row::numbers_hash;

pub(crate) use block::Block;
pub(crate) use key_section::{KeySection, PARTITIONS, STRETCHES, partition_of};
pub(crate) use writer::RunWriter;

use file::RunFile;
use footer::Footer;
use groups::Groups;
use index::{BlockIndex, Shards};

/// The name of the file of the run with this number.
pub(crate) fn file_name(number: u64) -> String {
    format!("run-{number:016x}")
}

/// The number of the run that has a file of this name.
pub(crate) fn number_of(file_name: &str) -> Option<u64> {
    let digits = file_name.strip_prefix("run-").filter(|digits| digits.len() == 16)?;
    u64::from_str_radix(digits, 16).ok().filter(|number| self::file_name(*number) == file_name)
}

/// A run that is open: its index in memory, its rows on the disk.
pub(crate) struct Run {
    file: RunFile,
    version: u32,
    footer: Footer,
    index: BlockIndex,
    shards: Shards,
    groups: Groups,
}

impl Run {
    /// Opens the run with this number: reads its index, not its rows.
    pub fn open(disk: &dyn Disk, number: u64) -> Result<Run, OpenError> {
        let name = file_name(number);
        let file = match disk.open(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let what = "it is missing, although the manifest names it".to_owned();
                return Err(Damage { file: name, offset: 0, what }.into());
            }
            file => file.map_err(OpenError::io(format!("{name} cannot be opened")))?,
        };
        let length = file.len().map_err(OpenError::io(format!("the length of {name} cannot be read")))?;
        let file = RunFile::new(file, name);

        let (footer, version) = Footer::open(&file, length, number)?;
        let [group_index, filter, block_index, shards] = footer.resident_parts(&file, length)?;
        let index = BlockIndex::parse(&block_index, &footer).map_err(|what| file.damage(footer.block_index, what))?;
        let shards = Shards::parse(&shards).map_err(|what| file.damage(footer.shards, what))?;
        let groups = Groups::parse(&group_index, &filter, &footer).map_err(|what| file.damage(footer.filter, what))?;
        Ok(Run { file, version, footer, index, shards, groups })
    }

    /// The run's number.
    pub fn number(&self) -> u64 {
        self.footer.number
    }

    /// How many rows it has.
    pub fn rows(&self) -> u32 {
        self.footer.rows
    }

    /// How long the file is.
    pub fn file_bytes(&self) -> u64 {
        self.footer.end()
    }

    /// How long its rows are, all together.
    pub fn row_bytes(&self) -> u64 {
        self.footer.row_bytes
    }

    /// The least and the greatest number among the live rows of a shard, if it has any.
    pub fn seqs(&self, shard: ShardId) -> Option<RangeInclusive<u64>> {
        self.shards.seqs(shard)
    }

    /// The shards and tables it has rows of, in order.
    pub fn tables(&self) -> impl Iterator<Item = (ShardId, Table)> + '_ {
        self.index.places()
    }

    /// How many data blocks it has.
    pub fn blocks(&self) -> usize {
        self.index.blocks()
    }

    /// The block that has the row with this ordinal.
    pub fn block_of(&self, ordinal: u32) -> usize {
        self.index.block_of(ordinal)
    }

    /// The block that has the row with this ordinal, and which row of the block it is.
    pub fn locate(&self, ordinal: u32) -> (usize, usize) {
        let block = self.block_of(ordinal);
        (block, (ordinal - self.ordinals(block).start) as usize)
    }

    /// The blocks of a shard's table that may hold rows from this position on.
    pub fn blocks_from(&self, shard: ShardId, table: Table, from: Position) -> Range<usize> {
        self.index.blocks_from(shard, table, from)
    }

    /// The blocks that may hold rows of a table from a position on and before another.
    pub fn blocks_before(&self, shard: ShardId, table: Table, from: Position, before: Position) -> Range<usize> {
        self.index.blocks_before(shard, table, from, before)
    }

    /// Where the first row of a block stands.
    pub fn first_position(&self, block: usize) -> Position {
        self.index.entry(block).first
    }

    /// The ordinals of a block's rows.
    pub fn ordinals(&self, block: usize) -> Range<u32> {
        self.index.ordinals(block)
    }

    /// The shard and table whose rows a block holds.
    pub fn place(&self, block: usize) -> (ShardId, Table) {
        self.index.entry(block).place()
    }

    /// Whether the row with this ordinal can be the one at this position of this table, as far as
    /// the index tells without reading the row.
    pub fn covers(&self, ordinal: u32, shard: ShardId, table: Table, position: Position) -> bool {
        self.index.covers(ordinal, (shard, table), position)
    }

    /// Reads and checks a block.
    pub fn read_block(&self, block: usize) -> Result<Block, ReadError> {
        let entry = self.index.entry(block);
        let bytes = self.file.read(entry.offset, entry.length as usize)?;
        let block = Block::new(bytes, self.index.ordinals(block).len());
        Ok(block.map_err(|what| self.file.damage(entry.offset, what))?)
    }

    /// Whether a block reads as zeros: its room was given back to the disk. For whoever does not know
    /// which rows are dead.
    pub fn is_blank(&self, block: usize) -> bool {
        let entry = self.index.entry(block);
        let bytes = self.file.read(entry.offset, entry.length as usize);
        bytes.is_ok_and(|bytes| bytes.iter().all(|byte| *byte == 0))
    }

    /// The hashes of its keys, to be read stretch by stretch.
    pub fn keys(&self) -> Result<KeySection<'_>, ReadError> {
        KeySection::read(&self.file, self.footer.keys, self.footer.rows)
    }

    /// The numbers and ordinals of rows whose group has this hash, from a number on and in its order:
    /// at most about `limit`, and fewer only if there are no more.
    pub fn group(&self, hash: u64, from_seq: u64, limit: usize) -> Result<Vec<(u64, u32)>, ReadError> {
        self.groups.find(&self.file, hash, from_seq, limit)
    }

    /// The same before a number, the greatest first.
    pub fn group_back(&self, hash: u64, before_seq: u64, limit: usize) -> Result<Vec<(u64, u32)>, ReadError> {
        self.groups.find_back(&self.file, hash, before_seq, limit)
    }

    /// The ordinal of the row of a shard that has this number, whether it is dead or not.
    pub fn numbered(&self, shard: ShardId, seq: u64) -> Result<Option<u32>, ReadError> {
        if !self.names_numbers() {
            return self.read_through(shard, seq);
        }
        let found = self.groups.find(&self.file, numbers_hash(shard), seq, 1)?;
        // A group of another shard may have the same hash.
        let is_it = |(number, ordinal): &(u64, u32)| *number == seq && self.place(self.block_of(*ordinal)).0 == shard;
        Ok(found.into_iter().find(is_it).map(|(_, ordinal)| ordinal))
    }

    /// Whether the numbers of all rows stand among the groups.
    fn names_numbers(&self) -> bool {
        self.version >= footer::NUMBERS
    }

    /// Looks for a number in all rows, as a run of version 1 has to be asked.
    fn read_through(&self, shard: ShardId, seq: u64) -> Result<Option<u32>, ReadError> {
        for number in 0..self.blocks() {
            let (of, table) = self.place(number);
            if of != shard || table == Table::Settings || self.is_blank(number) {
                continue;
            }
            let block = self.read_block(number)?;
            let mut ordinals = self.ordinals(number).enumerate();
            if let Some((_, ordinal)) = ordinals.find(|(index, _)| block.row(*index).position().seq == seq) {
                return Ok(Some(ordinal));
            }
        }
        Ok(None)
    }

    /// How many bytes of the file these blocks take.
    pub fn span(&self, blocks: Range<usize>) -> u64 {
        if blocks.is_empty() {
            0
        } else {
            self.index.entry(blocks.end - 1).end() - self.index.entry(blocks.start).offset
        }
    }

    /// Gives the room of blocks back to the disk. They cannot be read afterwards.
    pub fn punch(&self, blocks: Range<usize>) -> io::Result<()> {
        if blocks.is_empty() {
            return Ok(());
        }
        self.file.punch(self.index.entry(blocks.start).offset, self.span(blocks))
    }
}
