//! Reading: recent rows and runs brought together.
//!
//! The holdings are locked only to find out which rows are meant, never while the disk is read: an
//! attempt that lacks blocks names them, they are loaded without the lock, and it is made again. So
//! what a read gives is what there was at one moment, and commits do not wait for the disk of readers.

mod group;
mod numbered;
mod scan;
mod way;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex};

use punctual_core::store::{Bodies, Key, Position, Row, ShardId, StoreError, Table};

use crate::address::Address;
use crate::blocks::Blocks;
use crate::error::ReadError;
use crate::holdings::{Holdings, Stand};
use crate::lock::lock;
use crate::recent::Body;
use crate::row::KeyText;
use crate::run::{Block, Run};

/// Reads from the holdings and the runs that they name.
pub(crate) struct Reader<'a> {
    pub holdings: &'a Mutex<Holdings>,
    pub blocks: &'a Blocks,
}

/// A row that was found, to be copied out when the lock is free again.
enum Found {
    Row(Row),
    InBlock(Arc<Block>, usize),
    /// A recent row whose body is in a run.
    Borrowed(Row, Arc<Block>, usize),
}

impl Found {
    fn read(self, bodies: Bodies) -> Row {
        match self {
            Found::Row(row) => row,
            Found::InBlock(block, index) => block.row(index).read(bodies),
            Found::Borrowed(row, block, index) => {
                Row { body: bytes::Bytes::copy_from_slice(block.row(index).body()), ..row }
            }
        }
    }
}

/// The blocks that a read has at hand, and those it lacks.
struct Hand<'a> {
    cache: &'a Blocks,
    held: BTreeMap<(u64, usize), Arc<Block>>,
    missing: Vec<(Arc<Run>, usize)>,
}

impl Hand<'_> {
    fn block(&mut self, run: &Arc<Run>, block: usize) -> Option<Arc<Block>> {
        if let Some(held) = self.held.get(&(run.number(), block)) {
            return Some(Arc::clone(held));
        }
        match self.cache.get(run, block) {
            Some(cached) => {
                self.held.insert((run.number(), block), Arc::clone(&cached));
                Some(cached)
            }
            None => {
                self.missing.push((Arc::clone(run), block));
                None
            }
        }
    }

    /// The row at an address.
    fn row(&mut self, holdings: &Holdings, address: Address) -> Option<(Arc<Block>, usize)> {
        let run = &holdings.shelf.get(address.run).expect("an address names a run on the shelf").run;
        let (block, index) = run.locate(address.ordinal);
        Some((self.block(run, block)?, index))
    }

    /// A recent row, with its body if that is wanted; `None` if the body's block is missing.
    fn recent(&mut self, holdings: &Holdings, stand: Stand, bodies: Bodies) -> Option<Found> {
        let (row, body) = holdings.recent_row(stand);
        match (bodies, body) {
            (Bodies::With, Body::Borrowed(address)) => {
                let (block, index) = self.row(holdings, address)?;
                Some(Found::Borrowed(row.read(Bodies::Without), block, index))
            }
            _ => Some(Found::Row(row.read(bodies))),
        }
    }
}

impl<'a> Reader<'a> {
    pub fn get(&self, shard: ShardId, keys: &[Key], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        let keys: Vec<(u64, KeyText<'_>)> =
            keys.iter().map(KeyText::of).map(|key| (key.hash(shard, Table::Live), key)).collect();
        let found = self.attempt(|holdings, hand| {
            // Many cold lines of memory are waited for at once here, and one by one below.
            holdings.shelf.keys().warm(keys.iter().map(|(hash, _)| *hash));
            keys.iter().map(|(hash, key)| get(holdings, hand, shard, *hash, *key, bodies)).collect::<Vec<_>>()
        })?;
        Ok(found.into_iter().map(|found| found.map(|found| found.read(bodies))).collect())
    }

    pub fn fetch(
        &self,
        shard: ShardId,
        positions: &[Position],
        bodies: Bodies,
    ) -> Result<Vec<Option<Row>>, StoreError> {
        let found = self.attempt(|holdings, hand| {
            positions.iter().map(|position| fetch(holdings, hand, shard, *position, bodies)).collect::<Vec<_>>()
        })?;
        Ok(found.into_iter().map(|found| found.map(|found| found.read(bodies))).collect())
    }

    /// Reads by what a run says that never changes, such as which rows a group has: the runs are asked without the
    /// lock, and the attempt counts once all that are on the shelf by then have been asked.
    fn attempt_asking<A, T>(
        &self,
        ask: impl Fn(&Run) -> Result<A, ReadError>,
        mut attempt: impl FnMut(&mut Holdings, &mut Hand<'a>, &BTreeMap<u64, A>) -> T,
    ) -> Result<T, StoreError> {
        let mut told: BTreeMap<u64, A> = BTreeMap::new();
        loop {
            let runs: Vec<Arc<Run>> =
                lock(self.holdings).shelf.runs().map(|(_, shelved)| Arc::clone(&shelved.run)).collect();
            for run in runs {
                if let Entry::Vacant(unasked) = told.entry(run.number()) {
                    unasked.insert(ask(&run)?);
                }
            }
            let result = self.attempt(|holdings, hand| {
                let all_asked = holdings.shelf.runs().all(|(_, shelved)| told.contains_key(&shelved.run.number()));
                all_asked.then(|| attempt(holdings, hand, &told))
            })?;
            // Otherwise the keeper has put another run up meanwhile.
            if let Some(result) = result {
                return Ok(result);
            }
        }
    }

    /// Makes attempts until one lacks nothing. What was loaded for one stays in hand for the next, so that a small cache
    /// that drops it again does not keep a large read from ever coming to its end.
    fn attempt<T>(&self, mut attempt: impl FnMut(&mut Holdings, &mut Hand<'a>) -> T) -> Result<T, StoreError> {
        let mut hand = Hand { cache: self.blocks, held: BTreeMap::new(), missing: Vec::new() };
        let mut unreadable = None;
        loop {
            let result = attempt(&mut lock(self.holdings), &mut hand);
            if hand.missing.is_empty() {
                return Ok(result);
            }
            // The lock is free here: commits go on while the disk is read, and the next attempt sees what they did.
            for (run, block) in std::mem::take(&mut hand.missing) {
                // Several rows of one block have named it several times.
                if hand.held.contains_key(&(run.number(), block)) {
                    continue;
                }
                match self.blocks.load(&run, block) {
                    Ok(loaded) => _ = hand.held.insert((run.number(), block), loaded),
                    // The rows of the block may all have died meanwhile and its room given back; the next attempt does
                    // not ask for it any more. If it does ask, the block is damaged, and that is said the second time.
                    Err(_) if unreadable != Some((run.number(), block)) && self.is_gone(&run, block) => {
                        unreadable = Some((run.number(), block));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    fn is_gone(&self, run: &Run, block: usize) -> bool {
        let holdings = lock(self.holdings);
        let shelved = holdings.shelf.runs().find(|(_, shelved)| shelved.run.number() == run.number());
        shelved.is_none_or(|(_, shelved)| shelved.is_dead(block))
    }
}

fn get(
    holdings: &Holdings,
    hand: &mut Hand<'_>,
    shard: ShardId,
    hash: u64,
    key: KeyText<'_>,
    bodies: Bodies,
) -> Option<Found> {
    if let Some(stand) = holdings.find_recent(hash, key, shard, Table::Live) {
        return hand.recent(holdings, stand, bodies);
    }
    for address in holdings.shelf.candidates(hash) {
        let Some((block, index)) = hand.row(holdings, address) else { continue };
        let run = &holdings.shelf.get(address.run).expect("a candidate is on the shelf").run;
        let (of, table) = run.place(run.block_of(address.ordinal));
        if of == shard && table != Table::Settings && block.row(index).has_key(key) {
            return Some(Found::InBlock(block, index));
        }
    }
    None
}

fn fetch(
    holdings: &mut Holdings,
    hand: &mut Hand<'_>,
    shard: ShardId,
    position: Position,
    bodies: Bodies,
) -> Option<Found> {
    let active = holdings.active.table(shard, Table::Live).and_then(|index| index.get(position)).map(Stand::Active);
    let frozen =
        holdings.frozen.as_mut().and_then(|frozen| frozen.get(shard, Table::Live, position)).map(Stand::Frozen);
    if let Some(stand) = active.or(frozen) {
        return hand.recent(holdings, stand, bodies);
    }
    for (_, shelved) in holdings.shelf.runs() {
        if !shelved.run.seqs(shard).is_some_and(|seqs| seqs.contains(&position.seq)) {
            continue;
        }
        let blocks = shelved.run.blocks_from(shard, Table::Live, position);
        if blocks.is_empty() || shelved.is_dead(blocks.start) {
            continue;
        }
        let Some(block) = hand.block(&shelved.run, blocks.start) else { continue };
        if let Ok(index) = block.search(position)
            && !shelved.deaths.contains(shelved.run.ordinals(blocks.start).start + index as u32)
        {
            return Some(Found::InBlock(block, index));
        }
    }
    None
}
