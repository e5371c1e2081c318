//! Where in the runs a key may lie: a part of its hash leads to the few addresses that may be its
//! row's. Only living rows are in it.
//!
//! ```text
//!  hash  63        52 51               28 27         0
//!       │ partition  │ fingerprint       │ not used   │
//!
//!  entry 63               40 39      24 23            0
//!       │ fingerprint       │ run      │ ordinal       │
//! ```
//! The 4,096 partitions grow and shrink one by one, so that no single change takes long. An entry
//! takes 10 to 12.5 bytes while rows come and up to 13.3 while they go, and what the allocator loses on
//! top is little: 16 are promised for each row.
//!
//! Which partition a key belongs to, and which stretch of them is read together, is the runs' matter: see
//! [`crate::run`].

mod partition;
#[cfg(test)]
mod tests;

use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use roaring::RoaringBitmap;

use crate::address::Address;
use crate::error::ReadError;
use crate::run::{KeySection, Run, STRETCHES};

pub(crate) use crate::run::{PARTITIONS, partition_of};

use partition::Partition;

/// With fewer rows than this a second thread is not worth its start.
const ROWS_FOR_TWO: usize = 100_000;

/// The key index.
pub(crate) struct Keys {
    partitions: Vec<Partition>,
    len: usize,
    slots: usize,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys { partitions: vec![Partition::default(); PARTITIONS], len: 0, slots: 0 }
    }
}

impl Keys {
    /// The index of all rows of these runs, each under its number on the shelf, but for those that are dead.
    pub fn build(runs: &[(u16, &Run, &RoaringBitmap)]) -> Result<Keys, ReadError> {
        let sources = runs.iter().map(IndexedRun::new).collect::<Result<Vec<_>, _>>()?;
        let rows: usize = runs.iter().map(|(_, run, _)| run.rows() as usize).sum();
        let next = AtomicUsize::new(0);
        let mut stretches = if rows < ROWS_FOR_TWO {
            build_stretches(&sources, &next)?
        } else {
            thread::scope(|scope| {
                let other = scope.spawn(|| build_stretches(&sources, &next));
                let mut stretches = build_stretches(&sources, &next)?;
                stretches.extend(other.join().expect("reading runs does not panic")?);
                Ok::<_, ReadError>(stretches)
            })?
        };
        stretches.sort_unstable_by_key(|(stretch, _)| *stretch);
        let partitions: Vec<Partition> = stretches.into_iter().flat_map(|(_, partitions)| partitions).collect();
        let len = partitions.iter().map(Partition::len).sum();
        let slots = partitions.iter().map(Partition::slots).sum();
        Ok(Keys { partitions, len, slots })
    }

    /// A row with a key of this hash comes to this address.
    #[cfg(test)]
    pub fn insert(&mut self, hash: u64, address: Address) {
        self.change(partition_of(hash), |partition| partition.insert(entry(hash, address)));
    }

    /// Rows of a run come, all of one partition: their hashes and ordinals. One such step takes some microseconds.
    pub fn insert_partition(&mut self, partition: usize, run: u16, rows: &[(u64, u32)]) {
        debug_assert!(rows.iter().all(|(hash, _)| partition_of(*hash) == partition), "the rows are of this partition");
        self.change(partition, |partition| {
            let entries = rows.iter().map(|(hash, ordinal)| entry(*hash, Address { run, ordinal: *ordinal }));
            partition.reserve(rows.len());
            partition.warm(entries.clone());
            entries.for_each(|entry| partition.insert(entry));
        });
    }

    /// The row at this address, whose key has this hash, goes; false if it was not there.
    pub fn remove(&mut self, hash: u64, address: Address) -> bool {
        self.change(partition_of(hash), |partition| partition.remove(entry(hash, address)))
    }

    /// Looks at where the entries of many hashes begin before each is asked for or changed, so that
    /// memory answers for all of them together: one by one each would wait for it.
    pub fn warm(&self, hashes: impl Iterator<Item = u64>) {
        hashes.for_each(|hash| self.partitions[partition_of(hash)].warm(iter::once(fingerprint(hash) << 40)));
    }

    /// The addresses where a row may lie whose key has this hash. Others may be among them.
    pub fn candidates(&self, hash: u64) -> impl Iterator<Item = Address> + '_ {
        self.partitions[partition_of(hash)].with_fingerprint(fingerprint(hash)).map(Address::unpacked)
    }

    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// How much memory it takes.
    pub fn bytes(&self) -> usize {
        self.slots * size_of::<u64>() + self.partitions.len() * size_of::<Partition>()
    }

    /// Changes a partition and keeps the sums right.
    fn change<R>(&mut self, partition: usize, change: impl FnOnce(&mut Partition) -> R) -> R {
        let partition = &mut self.partitions[partition];
        let (len, slots) = (partition.len(), partition.slots());
        let answer = change(partition);
        self.len = self.len - len + partition.len();
        self.slots = self.slots - slots + partition.slots();
        answer
    }
}

/// A run that the index is built from.
struct IndexedRun<'a> {
    run: u16,
    keys: KeySection<'a>,
    /// A bit for each row that is dead; empty if none is.
    dead: Vec<u64>,
}

impl<'a> IndexedRun<'a> {
    /// The deaths are laid out plainly, since each row asks for its own and in no order.
    fn new((number, run, deaths): &(u16, &'a Run, &RoaringBitmap)) -> Result<IndexedRun<'a>, ReadError> {
        let words = if deaths.is_empty() { 0 } else { (run.rows() as usize).div_ceil(64) };
        let mut dead = vec![0; words];
        for ordinal in deaths.iter().take_while(|ordinal| *ordinal < run.rows()) {
            dead[ordinal as usize / 64] |= 1 << (ordinal % 64);
        }
        Ok(IndexedRun { run: *number, keys: run.keys()?, dead })
    }

    fn is_dead(&self, ordinal: u32) -> bool {
        self.dead.get(ordinal as usize / 64).is_some_and(|word| word >> (ordinal % 64) & 1 == 1)
    }
}

/// Builds the partitions of one stretch after the other, as long as there is one that nobody has taken.
fn build_stretches(sources: &[IndexedRun<'_>], next: &AtomicUsize) -> Result<Vec<(usize, Vec<Partition>)>, ReadError> {
    let mut built = Vec::new();
    let mut entries: Vec<u64> = Vec::new();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= STRETCHES {
            return Ok(built);
        }
        let stretches = sources.iter().map(|source| source.keys.stretch(number)).collect::<Result<Vec<_>, _>>()?;
        let mut partitions = Vec::with_capacity(PARTITIONS / STRETCHES);
        for partition in KeySection::partitions(number) {
            entries.clear();
            for (source, stretch) in sources.iter().zip(&stretches) {
                let rows = stretch.partition(partition).filter(|(_, ordinal)| !source.is_dead(*ordinal));
                let address = |ordinal| Address { run: source.run, ordinal }.packed();
                entries.extend(rows.map(|(bits, ordinal)| u64::from(bits >> 8) << 40 | address(ordinal)));
            }
            entries.sort_unstable();
            partitions.push(Partition::of(&entries));
        }
        built.push((number, partitions));
    }
}

/// The 24 bits of the hash after those that tell the partition.
fn fingerprint(hash: u64) -> u64 {
    hash >> 28 & 0xff_ffff
}

fn entry(hash: u64, address: Address) -> u64 {
    debug_assert!(address.run != 0 && (address.ordinal as usize) < Address::MOST_ROWS, "an address is as it should be");
    fingerprint(hash) << 40 | address.packed()
}
