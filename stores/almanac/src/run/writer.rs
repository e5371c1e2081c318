//! Writes a run, row by row in order, in one pass over the file.

use std::io;

use punctual_core::store::{Position, ShardId, Table};
use punctual_disk::Disk;

use crate::address::Address;
use crate::row::{StoredRow, group_hash, numbers_hash, write_with_body};

use super::file::RunFile;
use super::footer::{Footer, header};
use super::groups::{GroupEntry, Groups};
use super::index::{BlockEntry, BlockIndex, Shards};
use super::output::Output;
use super::{Run, block, file_name, key_section};

/// A run that is being written. One that is dropped before it is finished leaves a file that is not
/// a run; who made it removes it.
pub(crate) struct RunWriter {
    /// After how many bytes the file is synced on the way.
    pub sync_every: u64,
    number: u64,
    output: Output,
    /// The block that grows at the end of the output.
    block: Option<OpenBlock>,
    /// Where in it each row begins.
    offsets: Vec<u32>,
    index: Vec<BlockEntry>,
    shards: Shards,
    /// The hash of each row's key.
    hashes: Vec<u64>,
    groups: Vec<GroupEntry>,
    row_bytes: u64,
}

struct OpenBlock {
    /// Where it begins in the output's buffer.
    start: usize,
    place: (ShardId, Table),
    first: Position,
    last: Position,
}

impl RunWriter {
    /// Begins the run with this number.
    pub fn create(disk: &dyn Disk, number: u64) -> Result<RunWriter, io::Error> {
        let mut output = Output::new(disk.create(&file_name(number))?);
        output.append(&header(number))?;
        Ok(RunWriter {
            sync_every: 1 << 20,
            number,
            output,
            block: None,
            offsets: Vec::new(),
            index: Vec::new(),
            shards: Shards::default(),
            hashes: Vec::new(),
            groups: Vec::new(),
            row_bytes: 0,
        })
    }

    /// Adds a row, which comes after all others in the order of (shard, table, position), with this
    /// body; with its own one if this is empty. Gives its ordinal.
    pub fn push(&mut self, shard: ShardId, row: StoredRow<'_>, body: &[u8]) -> io::Result<u32> {
        assert!(self.hashes.len() < Address::MOST_ROWS, "a run has at most {} rows", Address::MOST_ROWS);
        let (table, position) = (row.table(), row.position());
        let length = if body.is_empty() { row.bytes().len() } else { row.without_body().len() + body.len() };
        let ordinal = self.hashes.len() as u32;

        let start = self.room_in_block((shard, table), position, length)?;
        let buffer = &mut self.output.buffer;
        self.offsets.push((buffer.len() - start) as u32);
        if body.is_empty() {
            buffer.extend_from_slice(row.bytes());
        } else {
            write_with_body(row, body, buffer);
        }

        self.row_bytes += length as u64;
        self.hashes.push(row.key().hash(shard, table));
        if table == Table::Live {
            self.shards.add(shard, position.seq);
        }
        if table != Table::Settings {
            self.groups.push((numbers_hash(shard), position.seq, ordinal));
        }
        if let Some(group) = row.group() {
            self.groups.push((group_hash(shard, group), position.seq, ordinal));
        }
        Ok(ordinal)
    }

    /// Makes a block ready for a row of this length; tells where in the buffer it begins.
    fn room_in_block(&mut self, place: (ShardId, Table), position: Position, length: usize) -> io::Result<usize> {
        if let Some(open) = &mut self.block {
            debug_assert!((open.place, open.last) < (place, position), "rows come in order");
            let bytes = self.output.buffer.len() - open.start;
            if open.place == place && !block::is_full(self.offsets.len(), bytes, length) {
                open.last = position;
                return Ok(open.start);
            }
            self.close_block()?;
        }
        let start = self.output.buffer.len();
        self.block = Some(OpenBlock { start, place, first: position, last: position });
        Ok(start)
    }

    fn close_block(&mut self) -> io::Result<()> {
        let Some(OpenBlock { start, place: (shard, table), first, .. }) = self.block.take() else { return Ok(()) };
        let rows = self.offsets.len();
        block::seal(&mut self.output.buffer, start, &self.offsets);
        self.offsets.clear();
        let length = u32::try_from(self.output.buffer.len() - start).map_err(io::Error::other)?;
        let offset = self.output.position() - u64::from(length);
        let ordinal = (self.hashes.len() - rows) as u32;
        self.index.push(BlockEntry { first, offset, length, ordinal, shard, table });
        self.output.keep_up(self.sync_every)
    }

    /// Writes the indexes and makes the file durable; its name is so only when the disk is synced.
    /// Gives the run, ready to be read, and the hash of each row's key with its ordinal, by partition.
    pub fn finish(mut self) -> io::Result<(Run, Vec<(u64, u32)>)> {
        self.close_block()?;
        let mut output = self.output;
        let keys_at = output.position();
        let (keys, starts) = key_section::by_partition(&self.hashes);
        key_section::write(&keys, &starts, &mut output)?;
        let groups_at = output.position();
        let group_entries = self.groups.len() as u32;
        let groups = Groups::write(self.groups, &mut output)?;
        let index = BlockIndex::new(self.index, keys.len() as u32);

        let parts = [groups.index_bytes(), groups.filter_bytes(), index.bytes(), self.shards.bytes()];
        let mut starts = [0; 4];
        for (part, start) in parts.iter().zip(&mut starts) {
            *start = output.position();
            output.append(part)?;
        }
        let footer = Footer {
            number: self.number,
            rows: keys.len() as u32,
            blocks: index.blocks() as u32,
            group_entries,
            shard_entries: self.shards.len() as u32,
            row_bytes: self.row_bytes,
            keys: keys_at,
            groups: groups_at,
            group_index: starts[0],
            filter: starts[1],
            block_index: starts[2],
            shards: starts[3],
            sums: parts.map(|part| crc32c::crc32c(&part)),
        };
        output.append(&footer.bytes())?;
        let file = RunFile::new(output.finish()?, file_name(self.number));
        let version = super::footer::VERSION;
        Ok((Run { file, version, footer, index, shards: self.shards, groups }, keys))
    }
}
