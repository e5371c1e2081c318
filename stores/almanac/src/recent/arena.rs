//! The bytes of recent rows, packed one after the other into large blocks.
//!
//! A block goes when its last row is gone, so that rows which live briefly leave nothing behind.

use crate::row::{StoredRow, write_head, write_with_body};

/// How large a block is, unless one row needs more.
const BLOCK: usize = 256 << 10;

/// How many blocks of memory are kept while rows come and go.
const SPARE: usize = 16;

/// How long a line of memory is, and how many an ordinary row takes.
const LINE: usize = 64;
const LINES: usize = 6;

/// Where a row's bytes begin: the block's number and the offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    block: u32,
    offset: u32,
}

const ROW: &str = "a spot is where a row begins";

#[derive(Default)]
pub(crate) struct Arena {
    blocks: Vec<Chunk>,
    /// Numbers of blocks that are empty and can be filled anew.
    free: Vec<u32>,
    /// The block that is being filled.
    current: Option<u32>,
    bytes: usize,
    /// Memory for blocks that held others before.
    spare: Vec<Vec<u8>>,
}

#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// How many rows in it are still needed.
    rows: u32,
}

impl Arena {
    /// Takes a row in, with its body given apart.
    pub fn put(&mut self, row: StoredRow<'_>, body: &[u8]) -> Spot {
        let number = self.room_for(row.without_body().len() + body.len());
        let block = &mut self.blocks[number as usize];
        let offset = block.bytes.len() as u32;
        write_with_body(row, body, &mut block.bytes);
        block.rows += 1;
        self.bytes += block.bytes.len() - offset as usize;
        Spot { block: number, offset }
    }

    /// Takes a row in that has the body of another, which goes.
    pub fn put_instead(&mut self, row: StoredRow<'_>, old: Spot) -> Spot {
        let length = self.get(old).body().len();
        let number = self.room_for(row.without_body().len() + length);
        // Taken out, so that the old row can be read from another block meanwhile.
        let mut bytes = std::mem::take(&mut self.blocks[number as usize].bytes);
        let offset = bytes.len() as u32;
        if old.block == number {
            let end = old.offset as usize + StoredRow::first(&bytes[old.offset as usize..]).expect(ROW).bytes().len();
            write_head(row, length, &mut bytes);
            bytes.extend_from_within(end - length..end);
        } else {
            write_with_body(row, self.get(old).body(), &mut bytes);
        }
        let block = &mut self.blocks[number as usize];
        block.bytes = bytes;
        block.rows += 1;
        self.bytes += block.bytes.len() - offset as usize;
        self.free(old);
        Spot { block: number, offset }
    }

    pub fn get(&self, spot: Spot) -> StoredRow<'_> {
        let bytes = &self.blocks[spot.block as usize].bytes[spot.offset as usize..];
        StoredRow::first(bytes).expect(ROW)
    }

    /// Looks at the lines of memory in which an ordinary row stands.
    pub fn touch(&self, spot: Spot) -> u8 {
        let bytes = &self.blocks[spot.block as usize].bytes[spot.offset as usize..];
        bytes.chunks(LINE).take(LINES).fold(0, |sum, line| sum ^ line[0])
    }

    /// Lets a row go.
    pub fn free(&mut self, spot: Spot) {
        let block = &mut self.blocks[spot.block as usize];
        block.rows -= 1;
        if block.rows == 0 && self.current != Some(spot.block) {
            self.release(spot.block);
        }
    }

    /// Lets all rows go, and keeps the memory of ordinary blocks, at most so many bytes.
    pub fn clear(&mut self, keep: usize) {
        self.spare.extend(self.blocks.drain(..).map(|block| block.bytes).filter(|bytes| bytes.capacity() == BLOCK));
        self.spare.truncate(keep / BLOCK);
        self.free.clear();
        self.current = None;
        self.bytes = 0;
    }

    /// How much memory its rows take, those included that are gone from blocks where others remain.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of a block with room for so many bytes.
    fn room_for(&mut self, length: usize) -> u32 {
        if let Some(current) = self.current {
            let block = &mut self.blocks[current as usize];
            if block.bytes.capacity() - block.bytes.len() >= length {
                return current;
            }
            if block.rows == 0 && block.bytes.capacity() >= length {
                self.bytes -= block.bytes.len();
                block.bytes.clear();
                return current;
            }
        }
        let full = self.current.take();
        if let Some(full) = full.filter(|full| self.blocks[*full as usize].rows == 0) {
            self.release(full);
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.blocks.push(Chunk::default());
            self.blocks.len() as u32 - 1
        });
        let spare = if length <= BLOCK { self.spare.pop() } else { None };
        let mut bytes = spare.unwrap_or_else(|| Vec::with_capacity(length.max(BLOCK)));
        bytes.clear();
        self.blocks[number as usize].bytes = bytes;
        self.current = Some(number);
        number
    }

    /// Takes a block back in which no row is needed any more.
    fn release(&mut self, number: u32) {
        let bytes = std::mem::take(&mut self.blocks[number as usize].bytes);
        self.bytes -= bytes.len();
        if bytes.capacity() == BLOCK && self.spare.len() < SPARE {
            self.spare.push(bytes);
        }
        self.free.push(number);
    }
}
