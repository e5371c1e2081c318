//! The slots of all levels, and in them the indices of timers in the order they came.
//! A slot is a chain of chunks, each two cache lines: reading a slot is reading arrays, where a list linked through
//! the timers would wait for one cache miss after the other. What a timer is, this module does not know.

use crate::pages::Pages;
use crate::slab::NONE;

const SLOT_BITS: u32 = 8;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = (u64::BITS / SLOT_BITS) as usize;
const WORDS: usize = LEVELS * SLOTS / 64;

/// A place is the number of a chunk and, in so many low bits, where in the chunk.
const OFFSET_BITS: u32 = 5;
const CHUNK_LEN: usize = 29;

/// How many timers are read of a slot at once: enough that the processor can fetch many of them side by side.
pub(crate) const BATCH: usize = 256;

/// The slot that a time belongs to as seen from the cursor: the level is the highest digit in
/// which the two differ, the slot on that level is the time's digit. Requires `at >= cursor`.
///
/// Slots are numbered through all levels, so that a lower number is an earlier time.
#[inline]
pub(crate) fn slot_of(at: u64, cursor: u64) -> usize {
    let level = ((at ^ cursor) | 1).ilog2() / SLOT_BITS;
    ((level as usize) << SLOT_BITS) | digit(at, level)
}

/// The first time that a slot stands for, as seen from the cursor.
#[inline]
pub(crate) fn start_of(slot: usize, cursor: u64) -> u64 {
    let shift = (slot >> SLOT_BITS) as u32 * SLOT_BITS;
    let above = (cursor >> shift) & !(SLOTS as u64 - 1);
    (above | (slot % SLOTS) as u64) << shift
}

/// Whether all timers of the slot are due at the same time.
#[inline]
pub(crate) fn is_single_tick(slot: usize) -> bool {
    slot < SLOTS
}

#[inline]
fn digit(at: u64, level: u32) -> usize {
    (at >> (level * SLOT_BITS)) as usize % SLOTS
}

#[derive(Clone, Copy)]
struct Slot {
    first: u32,
    last: u32,
}

const EMPTY: Slot = Slot { first: NONE, last: NONE };

/// Up to 29 timers of one slot, in order. A timer that left in between leaves `NONE` behind; a chunk without
/// timers is freed at once, so garbage is bounded by one chunk a waiting timer.
#[repr(align(64))]
struct Chunk {
    next: u32,
    previous: u32,
    /// The part of `timers` that counts ...
    start: u8,
    end: u8,
    /// ... and how many in it are not `NONE`.
    live: u8,
    timers: [u32; CHUNK_LEN],
}

pub(crate) struct Levels {
    slots: Box<[Slot]>,
    /// One bit a slot, set where there are timers.
    occupied: [u64; WORDS],
    /// One bit a word of `occupied`, set where the word is not zero.
    summary: u32,
    chunks: Pages<Chunk>,
    free: u32,
}

impl Levels {
    pub(crate) fn new() -> Self {
        Levels {
            slots: vec![EMPTY; LEVELS * SLOTS].into_boxed_slice(),
            occupied: [0; WORDS],
            summary: 0,
            chunks: Pages::with_capacity(0),
            free: NONE,
        }
    }

    /// The earliest slot with a timer in it.
    #[inline]
    pub(crate) fn first(&self) -> Option<usize> {
        if self.summary == 0 {
            return None;
        }
        let word = self.summary.trailing_zeros() as usize;
        Some(word * 64 + self.occupied[word].trailing_zeros() as usize)
    }

    /// Notes a timer as the last of a slot, and returns its place.
    #[inline]
    pub(crate) fn push(&mut self, slot: usize, timer: u32) -> u32 {
        let mut last = self.slots[slot].last;
        if last == NONE || self.chunks[last].end as usize == CHUNK_LEN {
            last = self.append_chunk(slot);
        }
        let chunk = &mut self.chunks[last];
        let offset = chunk.end;
        chunk.timers[offset as usize] = timer;
        chunk.end += 1;
        chunk.live += 1;
        last << OFFSET_BITS | u32::from(offset)
    }

    /// Forgets the timer at a place of a slot.
    #[inline]
    pub(crate) fn remove(&mut self, slot: usize, place: u32) {
        let index = place >> OFFSET_BITS;
        let chunk = &mut self.chunks[index];
        chunk.timers[(place % (1 << OFFSET_BITS)) as usize] = NONE;
        chunk.live -= 1;
        if chunk.live == 0 {
            self.unlink(slot, index);
        }
    }

    /// Takes out the first timer of an occupied slot.
    #[inline]
    pub(crate) fn pop(&mut self, slot: usize) -> u32 {
        let index = self.slots[slot].first;
        let chunk = &mut self.chunks[index];
        loop {
            let timer = chunk.timers[chunk.start as usize];
            chunk.start += 1;
            if timer != NONE {
                chunk.live -= 1;
                if chunk.live == 0 {
                    self.unlink(slot, index);
                }
                return timer;
            }
        }
    }

    /// Empties a slot. What was in it is then to be read with [`Levels::read`].
    pub(crate) fn open(&mut self, slot: usize) -> Chain {
        let Slot { first, .. } = std::mem::replace(&mut self.slots[slot], EMPTY);
        self.mark_empty(slot);
        Chain { next: first }
    }

    /// Reads on in what an opened slot held, and returns how many timers it wrote into the batch; none at the end.
    pub(crate) fn read(&mut self, chain: &mut Chain, batch: &mut [u32; BATCH]) -> usize {
        let mut len = 0;
        while chain.next != NONE && len + CHUNK_LEN <= BATCH {
            let index = chain.next;
            let chunk = &self.chunks[index];
            for timer in &chunk.timers[chunk.start as usize..chunk.end as usize] {
                // Without a branch: which timers were cancelled is hard to predict.
                batch[len] = *timer;
                len += usize::from(*timer != NONE);
            }
            chain.next = chunk.next;
            self.free_chunk(index);
        }
        len
    }

    /// Makes the slots right for a cursor that moves back: what had come down from the slot that `from` lies in, as
    /// seen from `to`, returns there. Timers of the same time share a slot, so they keep their order.
    pub(crate) fn rewind(&mut self, from: u64, to: u64) {
        let home = slot_of(from, to);
        let level_start = home & !(SLOTS - 1);
        while let Some(slot) = self.first().filter(|slot| *slot < level_start) {
            let moved = std::mem::replace(&mut self.slots[slot], EMPTY);
            self.mark_empty(slot);
            let last = self.slots[home].last;
            if last == NONE {
                self.slots[home] = moved;
                self.mark_occupied(home);
            } else {
                self.chunks[last].next = moved.first;
                self.chunks[moved.first].previous = last;
                self.slots[home].last = moved.last;
            }
        }
    }

    fn append_chunk(&mut self, slot: usize) -> u32 {
        let previous = self.slots[slot].last;
        let index = self.new_chunk();
        let chunk = &mut self.chunks[index];
        (chunk.next, chunk.previous) = (NONE, previous);
        (chunk.start, chunk.end, chunk.live) = (0, 0, 0);
        if previous == NONE {
            self.slots[slot].first = index;
            self.mark_occupied(slot);
        } else {
            self.chunks[previous].next = index;
        }
        self.slots[slot].last = index;
        index
    }

    /// A chunk to be filled; what it held before is still in it.
    fn new_chunk(&mut self) -> u32 {
        let index = self.free;
        if index != NONE {
            self.free = self.chunks[index].next;
            return index;
        }
        let index = self.chunks.push(Chunk {
            next: NONE,
            previous: NONE,
            start: 0,
            end: 0,
            live: 0,
            timers: [NONE; CHUNK_LEN],
        });
        assert!(index < NONE >> OFFSET_BITS, "a place has room for the number of any chunk");
        index
    }

    fn unlink(&mut self, slot: usize, index: u32) {
        let Chunk { next, previous, .. } = self.chunks[index];
        match previous {
            NONE => self.slots[slot].first = next,
            _ => self.chunks[previous].next = next,
        }
        match next {
            NONE => self.slots[slot].last = previous,
            _ => self.chunks[next].previous = previous,
        }
        if self.slots[slot].first == NONE {
            self.mark_empty(slot);
        }
        self.free_chunk(index);
    }

    fn free_chunk(&mut self, index: u32) {
        self.chunks[index].next = self.free;
        self.free = index;
    }

    #[inline]
    fn mark_occupied(&mut self, slot: usize) {
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.summary |= 1 << (slot / 64);
    }

    #[inline]
    fn mark_empty(&mut self, slot: usize) {
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        if self.occupied[slot / 64] == 0 {
            self.summary &= !(1 << (slot / 64));
        }
    }
}

/// What is left to take of an opened slot.
pub(crate) struct Chain {
    next: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_fills_two_cache_lines() {
        assert_eq!(size_of::<Chunk>(), 128);
    }

    #[test]
    fn a_slot_starts_at_or_before_the_times_in_it() {
        for cursor in [0, 255, 256, 1 << 40, u64::MAX - 300] {
            for at in [cursor, cursor + 1, cursor + 300, cursor | 0xFFFF_FFFF, u64::MAX] {
                let slot = slot_of(at, cursor);
                let start = start_of(slot, cursor);
                assert!(start <= at, "{at} as seen from {cursor}");
                assert!(start >= cursor || is_single_tick(slot), "{at} as seen from {cursor}");
                assert!(!is_single_tick(slot) || start == at, "{at} as seen from {cursor}");
            }
        }
    }

    #[test]
    fn chunks_left_by_all_their_timers_are_used_again() {
        let mut levels = Levels::new();
        for _ in 0..10 {
            let places: Vec<u32> = (0..100).map(|timer| levels.push(7, timer)).collect();
            for place in places {
                levels.remove(7, place);
            }
            assert_eq!(levels.first(), None);
        }
        assert_eq!(levels.chunks.len(), 100u32.div_ceil(CHUNK_LEN as u32));
    }

    #[test]
    fn a_slot_is_read_in_order_and_without_those_that_left() {
        let mut levels = Levels::new();
        let places: Vec<u32> = (0..1_000).map(|timer| levels.push(300, timer)).collect();
        for place in places.iter().step_by(3) {
            levels.remove(300, *place);
        }
        let mut chain = levels.open(300);
        let mut batch = [0; BATCH];
        let mut read = Vec::new();
        loop {
            match levels.read(&mut chain, &mut batch) {
                0 => break,
                len => read.extend_from_slice(&batch[..len]),
            }
        }
        let expected: Vec<u32> = (0..1_000).filter(|timer| timer % 3 != 0).collect();
        assert_eq!(read, expected);
        assert_eq!(levels.first(), None);
    }
}
