//! The cache of data blocks that were read from runs, bounded in bytes. Blocks never change, so all
//! there is to do besides reading is to forget those of runs that are gone.

use std::sync::Arc;

use foldhash::fast::FixedState;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};

use crate::error::ReadError;
use crate::run::{Block, Run};

/// The number of a run, and which of its blocks.
type BlockId = (u64, u32);

/// Data blocks of runs in memory. May be used from many threads at once.
pub(crate) struct Blocks {
    cache: Cache<BlockId, Arc<Block>, Bytes, FixedState>,
}

/// A block weighs what it takes.
#[derive(Clone)]
struct Bytes;

impl Weighter<BlockId, Arc<Block>> for Bytes {
    fn weight(&self, _: &BlockId, block: &Arc<Block>) -> u64 {
        block.bytes() as u64
    }
}

/// How much of the cache is for blocks that were asked for more than once. Most are needed a few
/// times in a short while, when what is due next is read, and then never again; so the others get
/// more than is usual.
const HOT: f64 = 0.5;
/// How many parts the cache has, each with a lock of its own.
const SHARDS: usize = 4;

impl Blocks {
    /// A cache that takes about so many bytes at most.
    pub fn new(bytes: u64) -> Blocks {
        let usual_blocks = usize::try_from(bytes >> 15).unwrap_or(usize::MAX);
        let options = OptionsBuilder::new()
            .estimated_items_capacity(usual_blocks)
            .weight_capacity(bytes)
            .shards(SHARDS)
            .hot_allocation(HOT)
            .build()
            .expect("both capacities are given");
        // What is hashed are numbers that nobody outside chooses.
        let cache = Cache::with_options(options, Bytes, FixedState::default(), DefaultLifecycle::default());
        Blocks { cache }
    }

    /// The block if it is in memory; reads nothing.
    pub fn get(&self, run: &Run, block: usize) -> Option<Arc<Block>> {
        self.cache.get(&(run.number(), block as u32))
    }

    /// The block, read if it must be. If several ask at once, one reads and the others wait for it.
    pub fn load(&self, run: &Run, block: usize) -> Result<Arc<Block>, ReadError> {
        self.cache.get_or_insert_with(&(run.number(), block as u32), || run.read_block(block).map(Arc::new))
    }

    /// The block with the row of this ordinal, read if it must be, and which row of the block it is.
    pub fn load_row(&self, run: &Run, ordinal: u32) -> Result<(Arc<Block>, usize), ReadError> {
        let (block, index) = run.locate(ordinal);
        Ok((self.load(run, block)?, index))
    }

    /// Drops all blocks of the run with this number.
    pub fn forget(&self, run: u64) {
        self.cache.retain(|(number, _), _| *number != run);
    }

    /// How many bytes the blocks take.
    pub fn bytes(&self) -> u64 {
        self.cache.weight()
    }
}

#[cfg(test)]
mod tests {
    use punctual_simulated_disk::SimulatedDisk;

    use super::*;
    use crate::run::samples;

    #[test]
    fn a_block_is_read_once_and_then_remembered() {
        let disk = SimulatedDisk::new(1);
        let (run, _) = samples::write(&disk, 1, &samples::rows(1, 0..1_000));
        let blocks = Blocks::new(1 << 20);
        assert!(blocks.get(&run, 1).is_none());
        let loaded = blocks.load(&run, 1).unwrap();
        let calls = disk.calls();
        assert!(Arc::ptr_eq(&loaded, &blocks.load(&run, 1).unwrap()));
        assert!(Arc::ptr_eq(&loaded, &blocks.get(&run, 1).unwrap()));
        assert!(blocks.get(&run, 0).is_none());
        assert_eq!(disk.calls(), calls);
    }

    #[test]
    fn blocks_of_a_run_that_is_gone_are_forgotten() {
        let disk = SimulatedDisk::new(1);
        let [(one, _), (two, _)] = [1, 2].map(|number| samples::write(&disk, number, &samples::rows(1, 0..1_000)));
        let blocks = Blocks::new(1 << 20);
        for block in 0..3 {
            blocks.load(&one, block).unwrap();
            blocks.load(&two, block).unwrap();
        }
        blocks.forget(1);
        assert!((0..3).all(|block| blocks.get(&one, block).is_none() && blocks.get(&two, block).is_some()));
    }

    #[test]
    fn the_cache_stays_within_its_bounds() {
        let disk = SimulatedDisk::new(1);
        let (run, _) = samples::write(&disk, 1, &samples::rows(1, 0..20_000));
        for bytes in [0, 1, 300_000, 1 << 20] {
            let blocks = Blocks::new(bytes);
            for block in 0..run.blocks() {
                assert!(blocks.load(&run, block).is_ok());
            }
            assert!(blocks.bytes() <= bytes, "{} bytes of {bytes}", blocks.bytes());
            assert!(bytes < 300_000 || blocks.bytes() > bytes / 2);
        }
    }

    #[test]
    fn a_block_that_cannot_be_read_is_asked_for_again() {
        let disk = SimulatedDisk::new(1);
        let (run, _) = samples::write(&disk, 1, &samples::rows(1, 0..100));
        let blocks = Blocks::new(1 << 20);
        disk.flip(&crate::run::file_name(1), 100, 0);
        assert!(blocks.load(&run, 0).is_err());
        disk.flip(&crate::run::file_name(1), 100, 0);
        assert!(blocks.load(&run, 0).is_ok());
    }
}
