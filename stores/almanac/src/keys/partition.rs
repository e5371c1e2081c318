//! One part of the key index: a hash table that is also sorted.
//!
//! ```text
//!  slot     0    1    2    3    4    5    6    7    8   | spare
//!  entry         ·  12.a  .    30.c 31.b 31.f 33.a  .   |  .   .
//!                               ▲         │
//!                               └─ home ──┘  an entry stands at its home or right of it,
//!                                            with no gap between
//! ```
//! An entry is a fingerprint (24 bits) above an address (40 bits, never zero); zero is an empty slot.
//! Its home is `fingerprint * homes >> 24`. That rises with the fingerprint, so entries can be kept in
//! order: a search for what is not there ends at the first greater entry instead of the next gap,
//! and to grow is to copy once from left to right. Behind the last home are some spare slots, so that
//! nothing ever wraps around.
//!
//! Invariant: entries ascend, and there is no gap between an entry and its home.

use std::{hint, iter};

/// Fewer homes than this are not worth shrinking.
const FEW: usize = 8;

#[derive(Clone, Default)]
pub(super) struct Partition {
    slots: Box<[u64]>,
    homes: u32,
    len: u32,
}

impl Partition {
    /// The partition with these entries, which ascend.
    pub fn of(entries: &[u64]) -> Partition {
        Partition::laid_out(entries.iter().copied(), homes_for(entries.len()))
    }

    pub fn len(&self) -> usize {
        self.len as usize
    }

    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Makes room for so many more entries.
    pub fn reserve(&mut self, more: usize) {
        if self.len() + more > self.most() {
            self.rebuild(homes_for(self.len() + more).max(self.grown()));
        }
    }

    /// Reads the slots where the ways of these entries begin, one right after the other. The reads do
    /// not wait for each other as those of changes do, and what is read is near when it is needed.
    pub fn warm(&self, entries: impl Iterator<Item = u64>) {
        let read = |sum: u64, entry| sum ^ self.slots.get(self.home(entry)).copied().unwrap_or(0);
        hint::black_box(entries.fold(0, read));
    }

    /// Adds an entry; one that is there stays as it is.
    pub fn insert(&mut self, entry: u64) {
        if self.len() >= self.most() {
            self.rebuild(self.grown());
        }
        loop {
            let at = self.seek(entry);
            let rest = &mut self.slots[at..];
            if rest.first() == Some(&entry) {
                return;
            }
            if let Some(gap) = rest.iter().position(|slot| *slot == 0) {
                rest.copy_within(..gap, 1);
                rest[0] = entry;
                self.len += 1;
                return;
            }
            // The spare slots are used up; laid out anew, there are some again.
            self.rebuild(self.homes as usize);
        }
    }

    /// Takes an entry out; false if it is not there.
    pub fn remove(&mut self, entry: u64) -> bool {
        let at = self.seek(entry);
        if self.slots.get(at) != Some(&entry) {
            return false;
        }
        // All that stands right of its home, up to the next gap, moves one slot nearer to it.
        let stays = |(slot, entry): (usize, &u64)| *entry == 0 || self.home(*entry) == slot;
        let end =
            (at + 1..).zip(&self.slots[at + 1..]).position(stays).map_or(self.slots.len(), |moves| at + 1 + moves);
        self.slots.copy_within(at + 1..end, at);
        self.slots[end - 1] = 0;
        self.len -= 1;
        if self.homes as usize > FEW && self.len() < self.least() {
            self.rebuild(homes_for(self.len()));
        }
        true
    }

    /// The lower 40 bits of all entries with this fingerprint.
    pub fn with_fingerprint(&self, fingerprint: u64) -> impl Iterator<Item = u64> + '_ {
        let entries = self.slots[self.seek(fingerprint << 40)..].iter().copied();
        entries.take_while(move |entry| *entry != 0 && entry >> 40 == fingerprint).map(|entry| entry & ((1 << 40) - 1))
    }

    /// The slot where this entry is or would have to be.
    fn seek(&self, entry: u64) -> usize {
        let home = self.home(entry);
        let at = self.slots[home..].iter().position(|slot| *slot == 0 || *slot >= entry);
        at.map_or(self.slots.len(), |steps| home + steps)
    }

    fn home(&self, entry: u64) -> usize {
        home(entry, self.homes as usize)
    }

    /// How many entries it takes before it grows: four for five homes.
    fn most(&self) -> usize {
        self.homes as usize * 4 / 5
    }

    /// With fewer entries than this it shrinks: three for five homes, which is 13.3 bytes an entry.
    fn least(&self) -> usize {
        self.homes as usize * 3 / 5
    }

    fn grown(&self) -> usize {
        (self.homes as usize * 5 / 4).max(FEW)
    }

    fn rebuild(&mut self, homes: usize) {
        *self = Partition::laid_out(self.entries(), homes);
    }

    /// All entries, in order.
    pub fn entries(&self) -> impl Iterator<Item = u64> + '_ {
        self.slots.iter().copied().filter(|entry| *entry != 0)
    }

    fn laid_out(entries: impl Iterator<Item = u64>, homes: usize) -> Partition {
        let spare = if homes == 0 { 0 } else { 4 + homes / 128 };
        let mut slots: Vec<u64> = Vec::with_capacity(homes + spare);
        let mut len = 0;
        for entry in entries {
            let gap = home(entry, homes).saturating_sub(slots.len());
            slots.extend(iter::repeat_n(0, gap));
            slots.push(entry);
            len += 1;
        }
        slots.resize(slots.len().max(homes) + spare, 0);
        Partition { slots: slots.into_boxed_slice(), homes: homes as u32, len }
    }

    /// Whether the invariant holds.
    #[cfg(test)]
    pub fn is_sound(&self) -> bool {
        let standing = || self.slots.iter().enumerate().filter(|(_, entry)| **entry != 0);
        let at_home = |(slot, entry): (usize, &u64)| {
            let home = self.home(*entry);
            home <= slot && self.slots[home..slot].iter().all(|entry| *entry != 0)
        };
        standing().map(|(_, entry)| entry).is_sorted_by(|a, b| a < b)
            && standing().all(at_home)
            && standing().count() == self.len()
    }
}

/// How many homes so many entries get when it is known how many there are: ten for seven.
fn homes_for(entries: usize) -> usize {
    (entries * 10).div_ceil(7)
}

fn home(entry: u64, homes: usize) -> usize {
    (((entry >> 40) * homes as u64) >> 24) as usize
}
