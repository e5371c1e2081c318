//! The home of the timers. A timer stays at one index for life; a freed index is used again under
//! a new generation, so that an old handle never reaches the timer that lives there now.

use std::num::NonZeroU32;

use crate::pages::Pages;

/// Marks the end of a list of indices.
pub(crate) const NONE: u32 = u32::MAX;

/// Names one timer of one wheel, until it fires or is cancelled.
///
/// A handle that outlives its timer is *stale*. A stale handle is told apart from that of the timer that took
/// over its place (until one place has been used 2³² times).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle {
    pub(crate) index: u32,
    generation: NonZeroU32,
}

/// A timer that is waiting. `place` says where the wheel keeps its index.
pub(crate) struct Timer<T> {
    pub(crate) at: u64,
    pub(crate) value: T,
    pub(crate) place: u32,
    generation: NonZeroU32,
}

/// The generation is never zero, which is where the compiler hides the tag: an entry is no larger than a timer.
enum Entry<T> {
    Used(Timer<T>),
    Free { generation: NonZeroU32, next: u32 },
}

pub(crate) struct Slab<T> {
    entries: Pages<Entry<T>>,
    free: u32,
    len: usize,
}

impl<T> Slab<T> {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Slab { entries: Pages::with_capacity(capacity), free: NONE, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Takes a timer in. Its place is unknown as yet.
    #[inline]
    pub(crate) fn insert(&mut self, at: u64, value: T) -> Handle {
        self.len += 1;
        let index = self.free;
        if index == NONE {
            let generation = NonZeroU32::MIN;
            let index = self.entries.push(Entry::Used(Timer { at, value, place: NONE, generation }));
            return Handle { index, generation };
        }
        let entry = &mut self.entries[index];
        let Entry::Free { generation, next } = *entry else { unreachable!("the free list holds free entries") };
        self.free = next;
        *entry = Entry::Used(Timer { at, value, place: NONE, generation });
        Handle { index, generation }
    }

    pub(crate) fn get(&self, handle: Handle) -> Option<&Timer<T>> {
        if handle.index >= self.entries.len() {
            return None;
        }
        match &self.entries[handle.index] {
            Entry::Used(timer) if timer.generation == handle.generation => Some(timer),
            _ => None,
        }
    }

    /// The timer at an index that the wheel itself has noted, and which is therefore in use.
    #[inline]
    pub(crate) fn timer_mut(&mut self, index: u32) -> &mut Timer<T> {
        match &mut self.entries[index] {
            Entry::Used(timer) => timer,
            Entry::Free { .. } => unreachable!("the wheel notes waiting timers only"),
        }
    }

    /// Takes a timer out, unless the handle is stale.
    #[inline]
    pub(crate) fn remove(&mut self, handle: Handle) -> Option<Timer<T>> {
        self.get(handle)?;
        Some(self.take(handle.index))
    }

    /// Takes out the timer at an index that the wheel itself has noted.
    #[inline]
    pub(crate) fn take(&mut self, index: u32) -> Timer<T> {
        let entry = &mut self.entries[index];
        let Entry::Used(timer) = entry else { unreachable!("the wheel notes waiting timers only") };
        let generation = timer.generation.checked_add(1).unwrap_or(NonZeroU32::MIN);
        let freed = std::mem::replace(entry, Entry::Free { generation, next: self.free });
        self.free = index;
        self.len -= 1;
        match freed {
            Entry::Used(timer) => timer,
            Entry::Free { .. } => unreachable!("it was in use a moment ago"),
        }
    }

    /// Drops all timers. Their handles turn stale, as after a cancel.
    pub(crate) fn clear(&mut self) {
        for index in 0..self.entries.len() {
            if matches!(self.entries[index], Entry::Used(_)) {
                self.take(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_costs_at_most_eight_bytes_beyond_time_and_value() {
        assert_eq!(size_of::<Entry<u64>>(), 24);
    }

    #[test]
    fn a_freed_entry_is_used_again_under_a_new_generation() {
        let mut slab = Slab::with_capacity(0);
        let old = slab.insert(1, 'a');
        slab.take(old.index);
        let new = slab.insert(2, 'b');
        assert_eq!(new.index, old.index);
        assert!(slab.get(old).is_none());
        assert!(slab.remove(old).is_none());
        assert_eq!(slab.get(new).map(|timer| timer.value), Some('b'));
    }

    #[test]
    fn a_handle_of_another_slab_is_harmless() {
        let handle = Slab::with_capacity(0).insert(1, 'a');
        assert!(Slab::<char>::with_capacity(0).get(handle).is_none());
    }
}
