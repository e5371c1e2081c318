//! Merging: writing a frozen layer, and what still lives in runs that are mostly dead, as one new run.
//!
//! The new run holds exactly what the journal said up to the freeze. What happens to its rows while
//! it is being written is noted beside the frozen layer and in the old runs' deaths, and carried
//! over when the run is adopted (`adopt.rs`).

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use foldhash::fast::FixedState;
use punctual_core::store::{Position, ShardId, Table};
use punctual_disk::Disk;

use crate::address::Address;
use crate::blocks::Blocks;
use crate::error::ReadError;
use crate::holdings::Holdings;
use crate::lock::lock;
use crate::recent::{Body, Rows, SlotId};
use crate::row::StoredRow;
use crate::run::{Block, Run, RunWriter, file_name};
use crate::shelf::Shelved;

/// A run with fewer of its rows alive than one in so many has them carried over.
const MOSTLY_DEAD: u64 = 4;

/// What there was at the freeze.
pub(crate) struct Plan {
    pub rows: Arc<Rows>,
    /// The runs with their places and the deaths of that moment.
    pub runs: Vec<(u16, Shelved)>,
    /// How large a run is that is left alone while most of it lives.
    pub full_size: u64,
    /// Whether rows of other runs are carried along; not if there is no room for them.
    pub carries: bool,
}

/// What a merge has come to.
pub(crate) struct Merged {
    /// The new run; none if nothing was alive.
    pub run: Option<Arc<Run>>,
    /// The hashes of its keys with their ordinals, by partition.
    pub keys: Vec<(u64, u32)>,
    /// By slot of the frozen layer: which row of the run it has become.
    pub ordinals: Vec<u32>,
    /// The places of the runs whose rows were carried over, and by ordinal what they have become.
    pub carried: Vec<(u16, Vec<u32>)>,
    /// Bodies that were borrowed from runs, and in which row of the new one they are.
    pub borrowed: HashMap<Address, u32, FixedState>,
}

impl Merged {
    /// Whether a run of the plan does not count any more: all of it was dead, or what lived is in the new one.
    pub fn replaces(&self, (place, then): &(u16, Shelved)) -> bool {
        then.living() == 0 || self.carried.iter().any(|(carried, _)| carried == place)
    }
}

/// No row of the new run.
pub(crate) const NONE: u32 = u32::MAX;

/// Why nothing was merged; it can be tried again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MergeError {
    #[error("a run could not be written: {0}")]
    Write(#[from] io::Error),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("the almanac is closing")]
    Closing,
}

/// Writes a run of what a plan says.
pub(crate) struct Merger<'a> {
    pub disk: &'a dyn Disk,
    pub holdings: &'a Mutex<Holdings>,
    pub blocks: &'a Blocks,
    pub closing: &'a AtomicBool,
}

impl Merger<'_> {
    /// Merges what the plan says into the run of this number.
    pub fn merge(&self, plan: &Plan, number: u64) -> Result<Merged, MergeError> {
        let merged = self.write(plan, number);
        if merged.is_err() {
            // Half a run is of no use; if it cannot be removed now, the next opening does it.
            _ = self.disk.remove(&file_name(number));
        }
        merged
    }

    fn write(&self, plan: &Plan, number: u64) -> Result<Merged, MergeError> {
        let carried: Vec<&(u16, Shelved)> = plan.to_carry();
        let mut merged = Merged {
            run: None,
            keys: Vec::new(),
            ordinals: vec![NONE; plan.rows.slots()],
            carried: carried.iter().map(|(place, old)| (*place, vec![NONE; old.run.rows() as usize])).collect(),
            borrowed: HashMap::default(),
        };
        let mut writer = None;
        // All sources are in order already, so the run is written in one pass from front to back, and next to nothing
        // of it is held in memory.
        for (shard, table) in self.tables(&carried) {
            let mut frozen = FrozenRows::new(self.holdings, &plan.rows, shard, table);
            let mut old: Vec<OldRows<'_>> =
                carried.iter().map(|(_, shelved)| OldRows::new(shelved, shard, table)).collect();
            loop {
                let mut next = frozen.peek().map(|position| (position, None));
                for (index, rows) in old.iter_mut().enumerate() {
                    if let Some(position) = rows.peek()?
                        && next.is_none_or(|(first, _)| position < first)
                    {
                        next = Some((position, Some(index)));
                    }
                }
                let Some((_, source)) = next else { break };
                let writer = match &mut writer {
                    Some(writer) => writer,
                    // Not before the first row: if nothing lives, there is no run.
                    None => writer.insert(RunWriter::create(self.disk, number)?),
                };
                match source {
                    None => self.push_frozen(writer, shard, frozen.take(), plan, &mut merged)?,
                    Some(index) => {
                        let (row, ordinal) = old[index].current();
                        merged.carried[index].1[ordinal as usize] = writer.push(shard, row, &[])?;
                        old[index].advance();
                    }
                }
                // Nothing is lost by giving up: the journal still has all of it.
                if self.closing.load(Ordering::Relaxed) {
                    return Err(MergeError::Closing);
                }
            }
        }
        if let Some(writer) = writer {
            let (run, keys) = writer.finish()?;
            (merged.run, merged.keys) = (Some(Arc::new(run)), keys);
        }
        Ok(merged)
    }

    fn push_frozen(
        &self,
        writer: &mut RunWriter,
        shard: ShardId,
        slot: SlotId,
        plan: &Plan,
        merged: &mut Merged,
    ) -> Result<(), MergeError> {
        let (row, body) = plan.rows.row(slot);
        let ordinal = match body {
            Body::Here => writer.push(shard, row, &[])?,
            Body::Borrowed(address) => {
                // The body comes along, so that a run that lends does not have to stay for ever.
                let (_, lender) = plan.runs.iter().find(|(place, _)| *place == address.run).expect(LENDER);
                let (block, index) = self.blocks.load_row(&lender.run, address.ordinal)?;
                let ordinal = writer.push(shard, row, block.row(index).body())?;
                merged.borrowed.insert(address, ordinal);
                ordinal
            }
        };
        merged.ordinals[slot as usize] = ordinal;
        Ok(())
    }

    /// The tables that the new run is to have rows of, in order.
    fn tables(&self, carried: &[&(u16, Shelved)]) -> BTreeSet<(ShardId, Table)> {
        let frozen = lock(self.holdings).frozen.as_ref().map(|frozen| frozen.tables()).unwrap_or_default();
        frozen.into_iter().chain(carried.iter().flat_map(|(_, old)| old.run.tables())).collect()
    }
}

const LENDER: &str = "a run stays on the shelf while a body is borrowed from it";

impl Plan {
    /// About how many bytes would be carried along.
    pub fn carried_bytes(&self) -> u64 {
        self.to_carry().into_iter().map(|(_, shelved)| living_bytes(shelved)).sum()
    }

    /// The runs whose living rows are to be carried over: those that are mostly dead, and small ones
    /// as long as each is no larger than all that is smaller together. So a row is carried over a
    /// few times at most before it stands in a run that is left alone.
    fn to_carry(&self) -> Vec<&(u16, Shelved)> {
        if !self.carries {
            return Vec::new();
        }
        let mut by_size: Vec<(u64, &(u16, Shelved))> = self
            .runs
            .iter()
            .map(|entry| (living_bytes(&entry.1), entry))
            .filter(|(_, run)| run.1.living() > 0)
            .collect();
        by_size.sort_by_key(|(size, (place, _))| (*size, *place));
        // From the smallest on, like the digits of a counter: a run is taken up when what comes together below it has
        // grown as large, so each time a row is carried over it stands in a run at least twice the size.
        let mut rows = self.rows.slots() as u64;
        let mut smaller = self.rows.bytes() as u64;
        let mut room = 2 * self.full_size;
        let mut carried = Vec::new();
        for (size, entry) in by_size {
            let shelved = &entry.1;
            let mostly_dead = shelved.living() * MOSTLY_DEAD < u64::from(shelved.run.rows());
            let small = size < self.full_size / 2 && size <= smaller;
            rows += shelved.living();
            if (mostly_dead || small) && size <= room && rows < Address::MOST_ROWS as u64 {
                smaller += size;
                room -= size;
                carried.push(entry);
            }
        }
        carried
    }
}

/// About how many bytes the living rows of a run have.
fn living_bytes(shelved: &Shelved) -> u64 {
    shelved.run.row_bytes() * shelved.living() / u64::from(shelved.run.rows()).max(1)
}

/// The rows of a table of the frozen layer, in time order. They are fetched leaf by leaf, so that
/// commits and reads never wait long for the lock.
struct FrozenRows<'a> {
    holdings: &'a Mutex<Holdings>,
    rows: &'a Rows,
    table: (ShardId, Table),
    leaves: Range<usize>,
    leaf: std::vec::IntoIter<(Position, SlotId)>,
}

impl<'a> FrozenRows<'a> {
    fn new(holdings: &'a Mutex<Holdings>, rows: &'a Rows, shard: ShardId, table: Table) -> FrozenRows<'a> {
        let leaves = lock(holdings).frozen.as_ref().map_or(0, |frozen| frozen.leaves(shard, table));
        FrozenRows { holdings, rows, table: (shard, table), leaves: 0..leaves, leaf: Vec::new().into_iter() }
    }

    fn peek(&mut self) -> Option<Position> {
        while self.leaf.as_slice().is_empty() {
            let number = self.leaves.next()?;
            let mut holdings = lock(self.holdings);
            let frozen = holdings.frozen.as_mut().expect("the layer stays frozen until it is adopted");
            self.leaf = frozen.leaf(self.table.0, self.table.1, number).into_iter();
            drop(holdings);
            self.rows.warm(self.leaf.as_slice().iter().map(|(_, slot)| *slot));
        }
        self.leaf.as_slice().first().map(|(position, _)| *position)
    }

    fn take(&mut self) -> SlotId {
        self.leaf.next().expect("the caller has looked").1
    }
}

/// The living rows of a table of an old run, in time order.
struct OldRows<'a> {
    shelved: &'a Shelved,
    blocks: Range<usize>,
    block: Option<Block>,
    /// The next row of the block to look at.
    index: usize,
}

impl<'a> OldRows<'a> {
    fn new(shelved: &'a Shelved, shard: ShardId, table: Table) -> OldRows<'a> {
        let blocks = shelved.run.blocks_from(shard, table, Position::START);
        OldRows { shelved, blocks, block: None, index: 0 }
    }

    fn peek(&mut self) -> Result<Option<Position>, ReadError> {
        loop {
            if let Some(block) = &self.block {
                let first = self.shelved.run.ordinals(self.blocks.start).start;
                while self.index < block.rows() && self.shelved.deaths.contains(first + self.index as u32) {
                    self.index += 1;
                }
                if self.index < block.rows() {
                    return Ok(Some(block.row(self.index).position()));
                }
                self.blocks.start += 1;
                self.block = None;
            }
            self.blocks.start = self.shelved.first_living(self.blocks.clone());
            if self.blocks.is_empty() {
                return Ok(None);
            }
            self.block = Some(self.shelved.run.read_block(self.blocks.start)?);
            self.index = 0;
        }
    }

    /// The row that was looked at, and its ordinal.
    fn current(&self) -> (StoredRow<'_>, u32) {
        let block = self.block.as_ref().expect("the caller has looked");
        (block.row(self.index), self.shelved.run.ordinals(self.blocks.start).start + self.index as u32)
    }

    fn advance(&mut self) {
        self.index += 1;
    }
}
