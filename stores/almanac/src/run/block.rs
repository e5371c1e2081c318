//! A data block: rows of one shard and table in time order, and where each begins. It is what is
//! read, checked and cached as a whole.
//!
//! Invariant: the offsets of a block that was made lie where rows begin, one right after the other.

use std::cmp::Ordering;

use punctual_core::store::Position;

use crate::row::StoredRow;

use super::file::{append_checksum, checked, u32_at};

/// How long a block grows, unless a single row is longer.
pub(super) const BLOCK_BYTES: usize = 32 << 10;

/// What a block has besides rows and their offsets: how many there are, and the checksum.
const TAIL: usize = 8;

/// A block that was read and found whole.
pub(crate) struct Block {
    bytes: Box<[u8]>,
    rows: usize,
    /// Where the rows end and their offsets begin.
    rows_end: usize,
}

impl Block {
    /// The block in these bytes, or what is wrong with them.
    pub(super) fn new(bytes: Vec<u8>, rows: usize) -> Result<Block, &'static str> {
        checked(&bytes).ok_or("a data block has a wrong checksum")?;
        let table = rows.checked_mul(4).and_then(|table| table.checked_add(TAIL));
        let rows_end = table.and_then(|table| bytes.len().checked_sub(table)).ok_or("a data block is too short")?;
        if u32_at(&bytes, bytes.len() - TAIL) as usize != rows {
            return Err("a data block has a different number of rows than its index says");
        }
        let block = Block { bytes: bytes.into_boxed_slice(), rows, rows_end };
        let mut end = 0;
        for row in 0..rows {
            let rest = &block.bytes[end..rows_end];
            let stored = StoredRow::first(rest).filter(|_| block.begin(row) == end);
            end += stored.ok_or("a data block has no row where one should start")?.bytes().len();
        }
        if end != rows_end {
            return Err("a data block contains something other than rows");
        }
        Ok(block)
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How much memory it takes, about.
    pub fn bytes(&self) -> usize {
        self.bytes.len() + size_of::<Block>()
    }

    /// One of its rows, counted from zero.
    pub fn row(&self, number: usize) -> StoredRow<'_> {
        let rows = &self.bytes[..self.rows_end];
        StoredRow::first(&rows[self.begin(number)..]).expect("every row was looked at when the block was read")
    }

    /// Which row stands at this position, or which one is the first behind it.
    pub fn search(&self, position: Position) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.rows);
        while low < high {
            let middle = low.midpoint(high);
            match self.row(middle).position().cmp(&position) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    fn begin(&self, row: usize) -> usize {
        u32_at(&self.bytes, self.rows_end + row * 4) as usize
    }
}

/// Whether rows of so many bytes are a block that is full enough, so that no further row of that length fits.
pub(super) fn is_full(rows: usize, bytes: usize, next: usize) -> bool {
    bytes + next + (rows + 1) * 4 + TAIL > BLOCK_BYTES
}

/// Makes a block of the rows that stand in `to` from `start` on.
pub(super) fn seal(to: &mut Vec<u8>, start: usize, offsets: &[u32]) {
    for offset in offsets {
        to.extend_from_slice(&offset.to_le_bytes());
    }
    to.extend_from_slice(&(offsets.len() as u32).to_le_bytes());
    append_checksum(to, start);
}
