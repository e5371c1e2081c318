//! Listing the rows of an almanac, also of a damaged one: table by table, and in each of them all
//! shards together in time order.
//!
//! Each run and each table of recent rows is a source; the source whose next row comes first is
//! always at the top of a heap. Blocks come through the cache, so that memory stays bounded however
//! many sources there are.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use punctual_core::Timestamp;
use punctual_core::store::{Position, ShardId, Table};

use super::look::Look;
use crate::blocks::Blocks;
use crate::error::{Damage, ReadError};
use crate::recent::{Body, Frozen, SlotId};
use crate::row::StoredRow;
use crate::shelf::{Shelf, Shelved};

/// What a listing comes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    /// A row.
    Row(ListedRow),
    /// Rows that cannot be read.
    Lost {
        /// Their table.
        table: Table,
        /// Their shard.
        shard: ShardId,
        /// How many there are.
        rows: u64,
        /// From when on they are.
        at: Timestamp,
        /// What is wrong.
        damage: Damage,
    },
}

/// A row, with how long its state and its body are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRow {
    /// The table it stands in.
    pub table: Table,
    /// Its shard.
    pub shard: ShardId,
    /// Topic, id and queue.
    pub key: [String; 3],
    /// Its time.
    pub at: Timestamp,
    /// Its number.
    pub seq: u64,
    /// Its group.
    pub group: Option<String>,
    /// How long its state is.
    pub state: usize,
    /// How long its body is; none if that is lost.
    pub body: Option<usize>,
    /// The number of the run that has it; none if it is only in the journal.
    pub run: Option<u64>,
}

/// All rows of an almanac, one after the other.
pub struct Rows<'a> {
    shelf: &'a Shelf,
    frozen: &'a mut Frozen,
    blocks: &'a Blocks,
    /// Whether it is known which rows are dead.
    knows_deaths: bool,
    topic: Option<&'a str>,
    tables: std::array::IntoIter<Table, 4>,
    table: Table,
    sources: Vec<Source<'a>>,
    heap: BinaryHeap<Reverse<(Position, usize)>>,
}

/// The rows of one shard, of one table, in one place.
enum Source<'a> {
    Run {
        shard: ShardId,
        shelved: &'a Shelved,
        /// The block that is being read, and those after it.
        blocks: Range<usize>,
        /// The next row of the block; none while the block was not yet looked at.
        index: Option<usize>,
    },
    Recent {
        shard: ShardId,
        leaves: Range<usize>,
        leaf: std::vec::IntoIter<(Position, SlotId)>,
    },
}

impl<'a> Rows<'a> {
    pub(super) fn new(look: &'a mut Look, topic: Option<&'a str>) -> Rows<'a> {
        let knows_deaths = look.manifest.is_some();
        let frozen = look.holdings.frozen.as_mut().expect("the recent rows were frozen when all was read");
        let mut tables = Table::ALL.into_iter();
        let table = tables.next().expect("there are tables");
        let (shelf, blocks) = (&look.holdings.shelf, &look.blocks);
        let (sources, heap) = (Vec::new(), BinaryHeap::new());
        let mut rows = Rows { shelf, frozen, blocks, knows_deaths, topic, tables, table, sources, heap };
        rows.begin();
        rows
    }

    /// Gathers the sources of the current table.
    fn begin(&mut self) {
        self.sources.clear();
        let table = self.table;
        for (_, shelved) in self.shelf.runs() {
            for (shard, _) in shelved.run.tables().filter(|(_, of)| *of == table) {
                let blocks = shelved.run.blocks_from(shard, table, Position::START);
                self.sources.push(Source::Run { shard, shelved, blocks, index: None });
            }
        }
        for (shard, _) in self.frozen.tables().into_iter().filter(|(_, of)| *of == table) {
            let leaves = 0..self.frozen.leaves(shard, table);
            self.sources.push(Source::Recent { shard, leaves, leaf: Vec::new().into_iter() });
        }
        for number in 0..self.sources.len() {
            self.enter(number);
        }
    }

    /// Puts a source at its place in the heap, by the next row that it may have.
    fn enter(&mut self, number: usize) {
        let table = self.table;
        let next = match &mut self.sources[number] {
            Source::Run { shelved, blocks, index: None, .. } => {
                blocks.start = shelved.first_living(blocks.clone());
                (blocks.start < blocks.end).then(|| shelved.run.first_position(blocks.start))
            }
            Source::Run { shelved, blocks, index: Some(index), .. } => {
                let block = self.blocks.load(&shelved.run, blocks.start).ok();
                block.map(|block| block.row(*index).position())
            }
            Source::Recent { shard, leaves, leaf } => {
                while leaf.as_slice().is_empty()
                    && let Some(number) = leaves.next()
                {
                    *leaf = self.frozen.leaf(*shard, table, number).into_iter();
                }
                leaf.as_slice().first().map(|(position, _)| *position)
            }
        };
        self.heap.extend(next.map(|position| Reverse((position, number))));
    }

    /// Takes the next row of a source; none if it has to be looked at again.
    fn take(&mut self, number: usize) -> Option<Listed> {
        let (table, topic) = (self.table, self.topic.map(str::as_bytes));
        let wanted = |row: &StoredRow<'_>| topic.is_none_or(|topic| row.topic() == topic);
        match &mut self.sources[number] {
            Source::Recent { shard, leaf, .. } => {
                let (_, slot) = leaf.next()?;
                let (row, body) = self.frozen.layer().rows().row(slot);
                let length = || match body {
                    Body::Here => Some(row.body().len()),
                    Body::Borrowed(address) => {
                        let run = &self.shelf.get(address.run)?.run;
                        let (block, index) = self.blocks.load_row(run, address.ordinal).ok()?;
                        Some(block.row(index).body().len())
                    }
                };
                wanted(&row).then(|| Listed::Row(ListedRow::new(*shard, row, length(), None)))
            }
            Source::Run { shard, shelved, blocks, index } => {
                let ordinals = shelved.run.ordinals(blocks.start);
                let block = match self.blocks.load(&shelved.run, blocks.start) {
                    Ok(block) => block,
                    Err(error) => {
                        let is_given_back = !self.knows_deaths && shelved.run.is_blank(blocks.start);
                        let at = shelved.run.first_position(blocks.start).at;
                        let rows = ordinals.len() as u64 - shelved.deaths.range_cardinality(ordinals);
                        blocks.start += 1;
                        *index = None;
                        let lost = || Listed::Lost { table, shard: *shard, rows, at, damage: damage(error) };
                        return (!is_given_back).then(lost);
                    }
                };
                let next_living = |from: usize| {
                    (from..block.rows()).find(|index| !shelved.deaths.contains(ordinals.start + *index as u32))
                };
                let Some(current) = *index else {
                    *index = next_living(0);
                    return None;
                };
                *index = next_living(current + 1);
                if index.is_none() {
                    blocks.start += 1;
                }
                let row = block.row(current);
                let number = shelved.run.number();
                wanted(&row).then(|| Listed::Row(ListedRow::new(*shard, row, Some(row.body().len()), Some(number))))
            }
        }
    }
}

impl Iterator for Rows<'_> {
    type Item = Listed;

    fn next(&mut self) -> Option<Listed> {
        loop {
            while let Some(Reverse((_, number))) = self.heap.pop() {
                let listed = self.take(number);
                self.enter(number);
                if listed.is_some() {
                    return listed;
                }
            }
            self.table = self.tables.next()?;
            self.begin();
        }
    }
}

impl ListedRow {
    fn new(shard: ShardId, row: StoredRow<'_>, body: Option<usize>, run: Option<u64>) -> ListedRow {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (topic, id) = (usize::from(row.key().parts.0), usize::from(row.key().parts.1));
        let key = row.key_text();
        ListedRow {
            table: row.table(),
            shard,
            key: [text(&key[..topic]), text(&key[topic..topic + id]), text(&key[topic + id..])],
            at: row.position().at,
            seq: row.position().seq,
            group: row.group().map(str::to_owned),
            state: row.state().len(),
            body,
            run,
        }
    }
}

fn damage(error: ReadError) -> Damage {
    match error {
        ReadError::Damaged(damage) => damage,
        ReadError::Io { file, error } => Damage { file, offset: 0, what: format!("it cannot be read: {error}") },
    }
}
