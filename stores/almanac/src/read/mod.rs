//! Reading: recent rows and runs brought together.
//!
//! The holdings are locked only to find out which rows are meant, never while the disk is read: an
//! attempt that lacks blocks names them, they are loaded without the lock, and it is made again. So
//! what a read gives is what there was at one moment, and commits do not wait for the disk of readers. All that is wanted
//! is attempted under one lock; what lacks nothing is done, and only the rest is attempted again.

mod group;
mod key;
mod numbered;
mod position;
mod scan;
mod tallies;
mod told;
mod way;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use punctual_core::store::{Bodies, Found, Refusal, Row, ShardId, StoreError, Want};

use crate::address::Address;
use crate::blocks::Blocks;
use crate::error::ReadError;
use crate::holdings::{Holdings, Stand};
use crate::lock::lock;
use crate::recent::Body;
use crate::run::{Block, Run};
use group::Group;
use key::ByKey;
use numbered::Numbered;
use position::ByPosition;
use scan::Span;
use tallies::Counts;

/// How many rows a read looks at, besides those that it gives, before it stops and says where.
const LOOKED: usize = 4_096;
/// About how many bytes of bodies a page has when it stops for their sake.
const BODIES: usize = 8 << 20;

/// Reads from the holdings and the runs that they name.
pub(crate) struct Reader<'a> {
    pub holdings: &'a Mutex<Holdings>,
    pub blocks: &'a Blocks,
}

/// One thing that is wanted, on its way.
trait Errand {
    /// Looks for it with the holdings locked; says whether it is done. If not, it lacks blocks, or has runs to
    /// [ask](Errand::ask).
    fn attempt(&mut self, holdings: &mut Holdings, hand: &mut Hand<'_>) -> bool;

    /// Asks runs what the last attempt had to know of them, without the lock.
    fn ask(&mut self) -> Result<(), ReadError> {
        Ok(())
    }

    /// Copies out what was found, without the lock.
    fn bring(self: Box<Self>) -> Found;
}

fn errand<'w>(shard: ShardId, want: &Want<'w>) -> Box<dyn Errand + 'w> {
    match *want {
        Want::Keys(keys, bodies) => Box::new(ByKey::new(shard, keys, bodies)),
        Want::Positions(positions, bodies) => Box::new(ByPosition::new(shard, positions, bodies)),
        Want::Numbers(numbers, bodies) => Box::new(Numbered::new(shard, numbers, bodies)),
        Want::Scan(scan) => Box::new(Span::ahead(shard, scan)),
        Want::ScanBack(back) => Box::new(Span::back(shard, back)),
        Want::Find(find) => Box::new(Group::ahead(shard, find)),
        Want::FindBack(back) => Box::new(Group::back(shard, back)),
        Want::Tallies => Box::new(Counts::new(shard)),
    }
}

/// A row that was found, to be copied out when the lock is free again.
enum Hit {
    Row(Row),
    InBlock(Arc<Block>, usize),
    /// A recent row whose body is in a run.
    Borrowed(Row, Arc<Block>, usize),
}

impl Hit {
    /// About how long the body is that comes along. Blocks are short, but for those of one long row, so their average
    /// does: no row has to be looked at for it.
    fn body(&self, bodies: Bodies) -> usize {
        match (self, bodies) {
            (_, Bodies::Without) => 0,
            (Hit::Row(row), _) => row.body.len(),
            (Hit::InBlock(block, _) | Hit::Borrowed(_, block, _), _) => block.bytes() / block.rows(),
        }
    }

    fn read(self, bodies: Bodies) -> Row {
        match self {
            Hit::Row(row) => row,
            Hit::InBlock(block, index) => block.row(index).read(bodies),
            Hit::Borrowed(row, block, index) => {
                Row { body: bytes::Bytes::copy_from_slice(block.row(index).body()), ..row }
            }
        }
    }
}

/// A row or nothing for each that was looked for.
fn each(hits: Vec<Option<Hit>>, bodies: Bodies) -> Found {
    Found::Each(hits.into_iter().map(|hit| hit.map(|hit| hit.read(bodies))).collect())
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
    fn recent(&mut self, holdings: &Holdings, stand: Stand, bodies: Bodies) -> Option<Hit> {
        let (row, body) = holdings.recent_row(stand);
        match (bodies, body) {
            (Bodies::With, Body::Borrowed(address)) => {
                let (block, index) = self.row(holdings, address)?;
                Some(Hit::Borrowed(row.read(Bodies::Without), block, index))
            }
            _ => Some(Hit::Row(row.read(bodies))),
        }
    }

    /// Does something that may lack blocks; gives what it gave, and whether it lacked none.
    fn lacking_none<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> (T, bool) {
        let before = self.missing.len();
        let done = work(self);
        (done, self.missing.len() == before)
    }
}

impl<'a> Reader<'a> {
    /// Brings what is wanted, each as it was at one moment; and then, in the moment of the last, asks `admit` whether
    /// the reader may have it.
    pub fn read<'w>(
        &self,
        wants: impl Iterator<Item = (ShardId, &'w Want<'w>)>,
        admit: impl FnOnce(&Holdings) -> Result<(), Refusal>,
    ) -> Result<Vec<Found>, StoreError> {
        let mut errands: Vec<_> = wants.map(|(shard, want)| (errand(shard, want), false)).collect();
        let mut hand = Hand { cache: self.blocks, held: BTreeMap::new(), missing: Vec::new() };
        let mut unreadable = None;
        loop {
            let mut holdings = lock(self.holdings);
            for (errand, is_done) in errands.iter_mut().filter(|(_, is_done)| !is_done) {
                *is_done = errand.attempt(&mut holdings, &mut hand);
            }
            if errands.iter().all(|(_, is_done)| *is_done) {
                admit(&holdings)?;
                break;
            }
            // The lock is free here: commits go on while the disk is read, and the next attempt sees what they did.
            drop(holdings);
            self.load(&mut hand, &mut unreadable)?;
            for (errand, _) in errands.iter_mut().filter(|(_, is_done)| !is_done) {
                errand.ask()?;
            }
        }
        Ok(errands.into_iter().map(|(errand, _)| errand.bring()).collect())
    }

    /// Loads the blocks that an attempt lacked. They stay in hand for the next, so that a small cache that drops them
    /// again does not keep a large read from ever coming to its end.
    fn load(&self, hand: &mut Hand<'a>, unreadable: &mut Option<(u64, usize)>) -> Result<(), StoreError> {
        for (run, block) in std::mem::take(&mut hand.missing) {
            let name = (run.number(), block);
            // Several rows of one block have named it several times.
            if hand.held.contains_key(&name) {
                continue;
            }
            match self.blocks.load(&run, block) {
                Ok(loaded) => _ = hand.held.insert(name, loaded),
                // The rows of the block may all have died meanwhile and its room given back; the next attempt does
                // not ask for it any more. If it does ask, the block is damaged, and that is said the second time.
                Err(_) if *unreadable != Some(name) && self.is_gone(&run, block) => *unreadable = Some(name),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn is_gone(&self, run: &Run, block: usize) -> bool {
        let holdings = lock(self.holdings);
        let shelved = holdings.shelf.runs().find(|(_, shelved)| shelved.run.number() == run.number());
        shelved.is_none_or(|(_, shelved)| shelved.is_dead(block))
    }
}
