//! The wheel: timers by time, and by handle. It has no clock; what happens depends on the arguments alone.
//! Invariant: a timer before the cursor is in `early`, every other in the slot that `slot_of` names.

use std::collections::BTreeMap;
use std::fmt;

use crate::levels::{BATCH, Levels, is_single_tick, slot_of, start_of};
use crate::slab::{Handle, Slab};

/// So many early timers are welcome before the cursor moves back for them ...
const EARLY_ALWAYS: usize = 64;
/// ... and one more for so many timers in all. Moving back may undo work for each of them once, which the early
/// ones have then paid for: inserting stays O(1) in the long run, whatever the order of times.
const TIMERS_PER_EARLY: usize = 8;

/// A hierarchical timing wheel over milliseconds.
///
/// Times count from whatever the caller likes, and the caller says what time it is.
/// Timers come out in the order of their times, those of the same time in the order in which they went in.
///
/// | method | cost |
/// | --- | --- |
/// | [`insert`](Wheel::insert), [`cancel`](Wheel::cancel), [`reschedule`](Wheel::reschedule) | O(1), amortized |
/// | [`pop`](Wheel::pop), [`next_at`](Wheel::next_at) | O(1), amortized: a timer moves at most once a level |
///
/// No cost depends on how much time passes. Memory for cancelled and fired timers is used again.
///
/// # Examples
/// ```
/// use punctual_wheel::Wheel;
///
/// let mut wheel = Wheel::new(1_000);
/// wheel.insert(1_500, "tea");
/// let call = wheel.insert(1_200, "call");
/// wheel.insert(1_200, "mail");
///
/// assert_eq!(wheel.next_at(), Some(1_200));
/// assert!(wheel.reschedule(call, 1_300));
///
/// let due: Vec<_> = wheel.advance(1_400).collect();
/// assert_eq!(due, [(1_200, "mail"), (1_300, "call")]);
///
/// assert_eq!(wheel.cancel(call), None, "it has fired");
/// assert_eq!(wheel.next_at(), Some(1_500));
/// ```
pub struct Wheel<T> {
    slab: Slab<T>,
    levels: Levels,
    /// No timer in the levels is due before the cursor. It may run ahead of the caller's time, up to the earliest
    /// timer of the levels, and moves back when too many timers turn out to be earlier.
    cursor: u64,
    /// Timers before the cursor, by time and then by a number that rises with each of them; it is their place.
    early: BTreeMap<(u64, u32), u32>,
    next_early: u32,
}

impl<T> Wheel<T> {
    /// An empty wheel. Timers before `now` are welcome all the same; those from `now` on cost less at first.
    pub fn new(now: u64) -> Self {
        Self::with_capacity(now, 0)
    }

    /// An empty wheel that has taken the memory for the values of so many timers already.
    pub fn with_capacity(now: u64, capacity: usize) -> Self {
        Wheel {
            slab: Slab::with_capacity(capacity),
            levels: Levels::new(),
            cursor: now,
            early: BTreeMap::new(),
            next_early: 0,
        }
    }

    /// How many timers are waiting.
    pub fn len(&self) -> usize {
        self.slab.len()
    }

    /// Whether no timer is waiting.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets a timer. Any time will do: one in the past is due at once, in its order.
    ///
    /// # Panics
    /// When more timers are waiting than 32 bits can number.
    #[inline]
    pub fn insert(&mut self, at: u64, value: T) -> Handle {
        let handle = self.slab.insert(at, value);
        self.attach(handle.index, at);
        handle
    }

    /// Takes a timer back and returns its value; `None` when the handle is stale.
    #[inline]
    pub fn cancel(&mut self, handle: Handle) -> Option<T> {
        let timer = self.slab.remove(handle)?;
        self.detach(timer.at, timer.place);
        Some(timer.value)
    }

    /// Moves a timer to another time, behind those that wait for that time already. The handle stays
    /// good. Returns `false`, and changes nothing, when the handle is stale.
    pub fn reschedule(&mut self, handle: Handle, at: u64) -> bool {
        let Some(timer) = self.slab.get(handle) else { return false };
        self.detach(timer.at, timer.place);
        self.slab.timer_mut(handle.index).at = at;
        self.attach(handle.index, at);
        true
    }

    /// The time and the value of a waiting timer; `None` when the handle is stale.
    pub fn get(&self, handle: Handle) -> Option<(u64, &T)> {
        self.slab.get(handle).map(|timer| (timer.at, &timer.value))
    }

    /// The exact time of the earliest timer: when to look again. It is in the past when timers are due.
    ///
    /// Takes `&mut self` because it sorts, by the millisecond, as many of the next timers as it must to know.
    #[inline]
    pub fn next_at(&mut self) -> Option<u64> {
        if let Some(((at, _), _)) = self.early.first_key_value() {
            return Some(*at);
        }
        self.settle().then_some(self.cursor)
    }

    /// Takes out the earliest timer, with its time, if it is due at `now`.
    ///
    /// Between two calls anything may be inserted, cancelled or moved. A `now` before that of an earlier
    /// call is harmless: it finds what is due at that time, and never fires a timer early.
    #[inline]
    pub fn pop(&mut self, now: u64) -> Option<(u64, T)> {
        if self.next_at()? > now {
            return None;
        }
        let index = match self.early.pop_first() {
            Some((_, index)) => index,
            None => self.levels.pop(slot_of(self.cursor, self.cursor)),
        };
        let timer = self.slab.take(index);
        Some((timer.at, timer.value))
    }

    /// Takes out what is due at `now`, one timer at each step of the iterator. What is not asked for stays.
    pub fn advance(&mut self, now: u64) -> Advance<'_, T> {
        Advance { wheel: self, now }
    }

    /// Drops all timers. Their handles turn stale.
    pub fn clear(&mut self) {
        self.slab.clear();
        self.levels = Levels::new();
        self.early.clear();
    }

    /// Moves the cursor to the earliest timer of the levels. Returns `false` when there is none.
    fn settle(&mut self) -> bool {
        while let Some(slot) = self.levels.first() {
            self.cursor = start_of(slot, self.cursor);
            if is_single_tick(slot) {
                return true;
            }
            self.spread(slot);
        }
        false
    }

    /// Spreads the timers of a slot, in their order, over the levels below. The cursor stands at the slot's start.
    fn spread(&mut self, slot: usize) {
        let mut chain = self.levels.open(slot);
        let mut batch = [0; BATCH];
        loop {
            let len = self.levels.read(&mut chain, &mut batch);
            if len == 0 {
                return;
            }
            // Timers lie far apart, so nearly each is a cache miss. A tight loop of its own over all of them lets
            // the misses overlap, which halves the time that expiring takes.
            let mut times = [0; BATCH];
            for (index, at) in batch[..len].iter().zip(&mut times) {
                *at = self.slab.timer_mut(*index).at;
            }
            for (index, at) in batch[..len].iter().zip(times) {
                self.slab.timer_mut(*index).place = self.levels.push(slot_of(at, self.cursor), *index);
            }
        }
    }

    /// Notes a timer of the slab where its time belongs.
    #[inline]
    fn attach(&mut self, index: u32, at: u64) {
        let place = if at < self.cursor {
            self.attach_early(index, at)
        } else {
            self.levels.push(slot_of(at, self.cursor), index)
        };
        self.slab.timer_mut(index).place = place;
    }

    fn attach_early(&mut self, index: u32, at: u64) -> u32 {
        let welcome = EARLY_ALWAYS + self.len() / TIMERS_PER_EARLY;
        if self.early.len() >= welcome || self.next_early == u32::MAX {
            self.rewind(at);
            return self.levels.push(slot_of(at, self.cursor), index);
        }
        if self.early.is_empty() {
            self.next_early = 0;
        }
        let place = self.next_early;
        self.early.insert((at, place), index);
        self.next_early += 1;
        place
    }

    /// Undoes [`Wheel::attach`].
    #[inline]
    fn detach(&mut self, at: u64, place: u32) {
        if at < self.cursor {
            self.early.remove(&(at, place));
        } else {
            self.levels.remove(slot_of(at, self.cursor), place);
        }
    }

    /// Moves the cursor back so far that neither `at` nor any other timer is early.
    fn rewind(&mut self, at: u64) {
        let earliest = self.early.first_key_value().map_or(at, |((first, _), _)| at.min(*first));
        self.levels.rewind(self.cursor, earliest);
        self.cursor = earliest;
        for ((at, _), index) in std::mem::take(&mut self.early) {
            self.slab.timer_mut(index).place = self.levels.push(slot_of(at, self.cursor), index);
        }
        self.next_early = 0;
    }
}

impl<T> fmt::Debug for Wheel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// The iterator of [`Wheel::advance`]: takes out due timers, with their times.
#[derive(Debug)]
pub struct Advance<'a, T> {
    wheel: &'a mut Wheel<T>,
    now: u64,
}

impl<T> Iterator for Advance<'_, T> {
    type Item = (u64, T);

    fn next(&mut self) -> Option<(u64, T)> {
        self.wheel.pop(self.now)
    }
}
