//! What was counted, slot by slot: the newest slots of one series, packed, for as long as there is room for them.

use std::collections::VecDeque;

use punctual_center::{Gauges, Grain, MICROS, Slot};
use punctual_core::{Timestamp, What};

/// How many slots are kept: an hour of the fine ones, two days of the coarse ones.
const FINE: usize = 360;
const COARSE: usize = 2_880;

/// By how many slots a ring grows, so that one that was just begun costs little.
const GROWTH: usize = 120;

/// How many places the lateness of deliveries is told apart by.
const PLACES: usize = MICROS.len() + 1;

/// Counts an event, if it is one of those that series tell.
pub(super) fn count(slot: &mut Slot, what: &What) {
    let count = match what {
        What::Scheduled { .. } | What::Replaced { .. } => &mut slot.scheduled,
        What::Fired => &mut slot.fired,
        What::Done => &mut slot.done,
        What::Failed { .. } => &mut slot.failed,
        What::Died(_) => &mut slot.died,
        What::Cancelled => &mut slot.cancelled,
        _ => return,
    };
    *count += 1;
}

/// A slot that is over.
#[derive(Clone, Copy, Debug)]
struct Packed {
    counts: [u32; 6],
    gauges: Option<[u32; 4]>,
    /// How late deliveries were, by the same places as in a slot, in units of a power of two.
    late: [u16; PLACES],
    doublings: u8,
}

impl Packed {
    fn of(slot: &Slot) -> Packed {
        let packed = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let Slot { scheduled, fired, done, failed, died, cancelled, .. } = *slot;
        let gauges = slot.gauges.map(|Gauges { waiting, ready, leased, dead }| [waiting, ready, leased, dead]);
        let most = slot.lateness.iter().copied().max().unwrap_or(0);
        let doublings = (0..u64::BITS).find(|shift| most.div_ceil(1 << shift) <= u64::from(u16::MAX)).unwrap_or(0);
        let mut late = [0; PLACES];
        // A few must not become none: they are what people look for.
        let counts = late.iter_mut().zip(&slot.lateness);
        counts.for_each(|(late, count)| *late = count.div_ceil(1 << doublings) as u16);
        Packed {
            counts: [scheduled, fired, done, failed, died, cancelled].map(packed),
            gauges: gauges.map(|gauges| gauges.map(packed)),
            late,
            doublings: doublings as u8,
        }
    }

    fn read(&self) -> Slot {
        let [scheduled, fired, done, failed, died, cancelled] = self.counts.map(u64::from);
        let gauges = self.gauges.map(|gauges| gauges.map(u64::from));
        let gauges = gauges.map(|[waiting, ready, leased, dead]| Gauges { waiting, ready, leased, dead });
        let is_late = self.late != [0; PLACES];
        let late = self.late.iter().filter(|_| is_late).map(|count| u64::from(*count) << self.doublings);
        Slot { scheduled, fired, done, failed, died, cancelled, lateness: late.collect(), gauges }
    }
}

/// The newest slots of one length.
#[derive(Debug)]
struct Ring {
    /// How long a slot is, in milliseconds.
    length: u64,
    most: usize,
    /// The number of the slot that is running, counted from the beginning of time.
    number: u64,
    running: Slot,
    /// Those before it.
    over: VecDeque<Packed>,
}

impl Ring {
    fn new(grain: Grain, most: usize, now: Timestamp) -> Ring {
        let length = grain.length().0;
        Ring { length, most, number: now.as_millis() / length, running: Slot::default(), over: VecDeque::new() }
    }

    /// The slot that is running at this time; if the time is before it, it still is.
    fn at(&mut self, now: Timestamp) -> &mut Slot {
        let number = now.as_millis() / self.length;
        // After a long rest none of the old ones is left, and there is no need to go through all.
        let skipped = number.saturating_sub(self.number).saturating_sub(self.most as u64);
        self.number += skipped;
        while self.number < number {
            self.number += 1;
            // There is as much as before, as far as is known.
            let next = Slot { gauges: self.running.gauges, ..Slot::default() };
            let over = std::mem::replace(&mut self.running, next);
            self.push(Packed::of(&over));
        }
        &mut self.running
    }

    fn push(&mut self, slot: Packed) {
        if self.over.len() + 1 >= self.most {
            self.over.pop_front();
        } else if self.over.len() == self.over.capacity() {
            self.over.reserve_exact(GROWTH);
        }
        self.over.push_back(slot);
    }

    /// So many slots from the one of this time on. What was not counted is empty.
    fn read(&self, from: Timestamp, slots: usize) -> Vec<Slot> {
        let begin = self.number - self.over.len() as u64;
        let read = |number: u64| match number.checked_sub(begin) {
            Some(_) if number == self.number => self.running.clone(),
            Some(place) => self.over.get(place as usize).map_or_else(Slot::default, Packed::read),
            None => Slot::default(),
        };
        (from.as_millis() / self.length..).take(slots).map(read).collect()
    }
}

/// One series, in both lengths of slots.
#[derive(Debug)]
pub(super) struct Track {
    /// Since when it has been counted.
    pub since: Timestamp,
    /// When something happened last.
    pub busy_at: Timestamp,
    fine: Ring,
    coarse: Ring,
}

impl Track {
    pub fn new(now: Timestamp) -> Track {
        let (fine, coarse) = (Ring::new(Grain::TenSeconds, FINE, now), Ring::new(Grain::Minute, COARSE, now));
        Track { since: now, busy_at: now, fine, coarse }
    }

    /// Adds what happened.
    pub fn count(&mut self, now: Timestamp, counts: &Slot) {
        self.busy_at = now;
        self.change(now, |slot| slot.add(counts));
    }

    /// A delivery was handed over so late.
    pub fn late(&mut self, now: Timestamp, micros: u64) {
        let place = MICROS.partition_point(|bound| *bound < micros);
        self.change(now, |slot| {
            slot.lateness.resize(PLACES, 0);
            slot.lateness[place] += 1;
        });
    }

    /// There is so much.
    pub fn gauge(&mut self, now: Timestamp, gauges: &Gauges) {
        self.change(now, |slot| slot.gauges = Some(*gauges));
    }

    fn change(&mut self, now: Timestamp, change: impl Fn(&mut Slot)) {
        change(self.fine.at(now));
        change(self.coarse.at(now));
    }

    /// So many slots from the one of a time on; those up to now are all there.
    pub fn read(&mut self, grain: Grain, from: Timestamp, slots: usize, now: Timestamp) -> Vec<Slot> {
        let ring = match grain {
            Grain::TenSeconds => &mut self.fine,
            Grain::Minute => &mut self.coarse,
        };
        ring.at(now);
        ring.read(from, slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn fired(fired: u64) -> Slot {
        Slot { fired, ..Slot::default() }
    }

    fn fires(slots: &[Slot]) -> Vec<u64> {
        slots.iter().map(|slot| slot.fired).collect()
    }

    #[test]
    fn what_happens_is_in_its_slot() {
        let mut track = Track::new(at(100));
        for (second, count) in [(100, 1), (109, 2), (110, 4), (135, 8)] {
            track.count(at(second), &fired(count));
        }
        assert_eq!(fires(&track.read(Grain::TenSeconds, at(95), 6, at(141))), [0, 3, 4, 0, 8, 0]);
        assert_eq!(fires(&track.read(Grain::Minute, at(60), 3, at(141))), [7, 8, 0]);
    }

    #[test]
    fn a_clock_that_goes_back_counts_in_the_last_slot() {
        let mut track = Track::new(at(100));
        track.count(at(130), &fired(1));
        track.count(at(100), &fired(1));
        assert_eq!(fires(&track.read(Grain::TenSeconds, at(100), 4, at(90))), [0, 0, 0, 2]);
    }

    #[test]
    fn a_ring_holds_its_newest_slots_and_no_more_memory() {
        let mut track = Track::new(at(0));
        for second in 0..10_000 {
            track.count(at(second), &fired(1));
        }
        assert_eq!((track.fine.over.len(), track.coarse.over.len()), (FINE - 1, 10_000 / 60));
        assert!(track.fine.over.capacity() <= FINE + GROWTH);
        assert_eq!(fires(&track.read(Grain::TenSeconds, at(0), 1, at(9_999))), [0], "it is forgotten");
        assert_eq!(fires(&track.read(Grain::TenSeconds, at(9_990 - 3_590), 360, at(9_999))), [10; 360]);
        track.count(at(1_000_000), &fired(5));
        assert_eq!(track.fine.over.len(), FINE - 1);
        assert_eq!(fires(&track.read(Grain::TenSeconds, at(999_990), 3, at(1_000_000))), [0, 5, 0]);
        assert!(size_of::<Packed>() <= 80, "as docs/operating.md says: {}", size_of::<Packed>());
    }

    #[test]
    fn how_much_there_is_stays_known_until_it_is_otherwise() {
        let mut track = Track::new(at(0));
        track.count(at(5), &fired(1));
        track.gauge(at(15), &Gauges { ready: 7, ..Gauges::default() });
        let slots = track.read(Grain::TenSeconds, at(0), 4, at(35));
        let ready: Vec<_> = slots.iter().map(|slot| slot.gauges.map(|gauges| gauges.ready)).collect();
        assert_eq!(ready, [None, Some(7), Some(7), Some(7)]);
    }

    #[test]
    fn lateness_keeps_its_shape_however_much_there_is() {
        let mut lateness = vec![0; PLACES];
        (lateness[0], lateness[5], lateness[13]) = (100_000_000, 1, 9_000_000);
        let packed = Packed::of(&Slot { lateness, ..Slot::default() }).read();
        assert_eq!(
            [500, 900, 990].map(|share| packed.lateness_at_most(share)),
            [Some(250), Some(250), Some(5_000_000)]
        );
        assert!(packed.lateness[5] > 0 && packed.lateness[1] == 0, "{packed:?}");
        let few = Slot { lateness: (0..PLACES as u64).collect(), ..Slot::default() };
        assert_eq!(Packed::of(&few).read(), few, "few are told as they are");
        assert_eq!(Packed::of(&Slot::default()).read(), Slot::default());
    }
}
