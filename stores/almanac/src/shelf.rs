//! The shelf: the runs that count, which of their rows are dead, and where each key's row is.
//!
//! **Invariant**: the key index has an entry for each living row of each run on the shelf. It may
//! also have entries of runs that are just being put up or taken down; their places are empty, and
//! such entries are passed over.

use std::ops::Range;
use std::sync::Arc;

use punctual_core::store::{Position, ShardId, Table};
use roaring::RoaringBitmap;

use crate::address::Address;
use crate::keys::Keys;
use crate::manifest::RunEntry;
use crate::run::Run;

pub(crate) struct Shelf {
    /// By place; place 0 is never used.
    places: Vec<Option<Shelved>>,
    /// Places that no entry of the key index names any more.
    free: Vec<u16>,
    keys: Keys,
}

/// A run and its dead rows.
#[derive(Clone)]
pub(crate) struct Shelved {
    pub run: Arc<Run>,
    pub deaths: Arc<RoaringBitmap>,
}

impl Shelved {
    /// How many rows live.
    pub fn living(&self) -> u64 {
        u64::from(self.run.rows()) - self.deaths.len()
    }

    /// How a manifest names it.
    pub fn entry(&self) -> RunEntry {
        RunEntry {
            number: self.run.number(),
            rows: self.run.rows(),
            bytes: self.run.file_bytes(),
            deaths: Arc::clone(&self.deaths),
        }
    }

    /// Whether all rows of a block are dead. Such a block is never read: its place on the disk may
    /// have been given back.
    pub fn is_dead(&self, block: usize) -> bool {
        self.deaths.contains_range(self.run.ordinals(block))
    }

    /// The first of these blocks that has a living row; the end if none has.
    pub fn first_living(&self, blocks: Range<usize>) -> usize {
        let Range { start, end } = blocks;
        if start >= end || !self.is_dead(start) {
            return start.min(end);
        }
        // Rows die in the order of their times, so long stretches are dead: leap, then look closer.
        let begin = self.run.ordinals(start).start;
        let all_dead = |block: usize| self.deaths.contains_range(begin..self.run.ordinals(block).end);
        let (mut dead, mut step) = (start, 1);
        while dead + step < end && all_dead(dead + step) {
            dead += step;
            step *= 2;
        }
        let mut living = (dead + step).min(end);
        while living - dead > 1 {
            let middle = dead + (living - dead) / 2;
            if all_dead(middle) { dead = middle } else { living = middle }
        }
        living
    }
}

impl Shelved {
    /// The end of these blocks without those at their end whose rows are all dead.
    pub fn living_end(&self, blocks: Range<usize>) -> usize {
        let Range { start, end } = blocks;
        if start >= end || !self.is_dead(end - 1) {
            return end.max(start);
        }
        let last = self.run.ordinals(end - 1).end;
        let all_dead = |block: usize| self.deaths.contains_range(self.run.ordinals(block).start..last);
        let (mut low, mut dead) = (start, end - 1);
        while low < dead {
            let middle = low.midpoint(dead);
            if all_dead(middle) { dead = middle } else { low = middle + 1 }
        }
        dead
    }
}

impl Shelf {
    /// A shelf with these runs, on the places 1, 2, …, and the index of their keys.
    pub fn new(runs: Vec<Shelved>, keys: Keys) -> Shelf {
        Shelf { places: std::iter::once(None).chain(runs.into_iter().map(Some)).collect(), free: Vec::new(), keys }
    }

    /// The runs and their dead rows as of now, with their places: they stay so whatever dies meanwhile.
    pub fn as_it_is(&self) -> Vec<(u16, Shelved)> {
        self.runs().map(|(place, shelved)| (place, shelved.clone())).collect()
    }

    /// The runs with their places.
    pub fn runs(&self) -> impl Iterator<Item = (u16, &Shelved)> {
        (0..).zip(&self.places).filter_map(|(place, run)| Some((place, run.as_ref()?)))
    }

    pub fn get(&self, place: u16) -> Option<&Shelved> {
        self.places.get(usize::from(place))?.as_ref()
    }

    /// The living rows that may have a key of this hash.
    pub fn candidates(&self, hash: u64) -> impl Iterator<Item = Address> {
        self.keys.candidates(hash).filter(|address| self.is_living(*address))
    }

    /// The living rows that may have a key of this hash and stand at this position.
    pub fn at(&self, hash: u64, shard: ShardId, table: Table, position: Position) -> impl Iterator<Item = Address> {
        self.candidates(hash).filter(move |address| {
            let shelved = self.get(address.run).expect("a living row is on the shelf");
            shelved.run.covers(address.ordinal, shard, table, position)
        })
    }

    /// A row dies.
    pub fn kill(&mut self, hash: u64, address: Address) {
        self.keys.remove(hash, address);
        let shelved = self.places[usize::from(address.run)].as_mut().expect("a living row is on the shelf");
        Arc::make_mut(&mut shelved.deaths).insert(address.ordinal);
    }

    /// A place for a run that is to be put up.
    pub fn reserve(&mut self) -> u16 {
        self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            u16::try_from(self.places.len() - 1).expect("small runs are joined, so there are fewer than 65,535")
        })
    }

    /// Gives a place back that no entry names any more.
    pub fn vacate(&mut self, place: u16) {
        self.free.push(place);
    }

    /// Puts a run up, whose keys have been entered.
    pub fn put(&mut self, place: u16, run: Shelved) {
        self.places[usize::from(place)] = Some(run);
    }

    /// Takes a run down. Its keys are still to be taken out, and its place to be vacated.
    pub fn take(&mut self, place: u16) -> Option<Shelved> {
        self.places[usize::from(place)].take()
    }

    pub fn keys_mut(&mut self) -> &mut Keys {
        &mut self.keys
    }

    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    fn is_living(&self, address: Address) -> bool {
        self.get(address.run).is_some_and(|shelved| !shelved.deaths.contains(address.ordinal))
    }
}
