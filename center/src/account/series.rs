//! What was counted in slots of time of equal length, one after the other.

use punctual_core::{Millis, Timestamp};

use super::MICROS;

/// How long a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grain {
    /// Ten seconds.
    TenSeconds,
    /// A minute.
    Minute,
}

impl Grain {
    /// Its length.
    pub fn length(self) -> Millis {
        match self {
            Grain::TenSeconds => Millis::from_secs(10),
            Grain::Minute => Millis::from_secs(60),
        }
    }
}

/// Slots one after the other, of one node or of several together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// Since when the first of the nodes has counted; nothing if nothing was counted.
    pub known_since: Option<Timestamp>,
    /// As many as were asked for, in their order.
    pub slots: Vec<Slot>,
}

/// What was counted in one slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// Tasks were taken in.
    pub scheduled: u64,
    /// Deliveries became available.
    pub fired: u64,
    /// Deliveries were acknowledged.
    pub done: u64,
    /// Attempts failed, and others come.
    pub failed: u64,
    /// Deliveries were given up.
    pub died: u64,
    /// Tasks or deliveries were cancelled.
    pub cancelled: u64,
    /// How many deliveries were handed over so late, by the bounds of [`MICROS`] and one for what is above them, each by
    /// itself. Empty if there were none.
    pub lateness: Vec<u64>,
    /// How much there was at its end, as far as that is known.
    pub gauges: Option<Gauges>,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Waiting for their time or for a consumer.
    pub waiting: u64,
    /// Waiting for a consumer.
    pub ready: u64,
    /// With a consumer.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
}

impl Gauges {
    /// Adds what is elsewhere.
    pub fn add(&mut self, other: &Gauges) {
        self.waiting = self.waiting.saturating_add(other.waiting);
        self.ready = self.ready.saturating_add(other.ready);
        self.leased = self.leased.saturating_add(other.leased);
        self.dead = self.dead.saturating_add(other.dead);
    }
}

impl Slot {
    /// Adds what was counted elsewhere in the same time.
    pub fn add(&mut self, other: &Slot) {
        self.count(other);
        match (&mut self.gauges, &other.gauges) {
            (Some(gauges), Some(other)) => gauges.add(other),
            (gauges @ None, Some(other)) => *gauges = Some(*other),
            (_, None) => {}
        }
    }

    /// Adds what was counted here in the time after: how much there is at the end of both is what there is at its end.
    pub fn append(&mut self, next: &Slot) {
        self.count(next);
        self.gauges = next.gauges.or(self.gauges);
    }

    fn count(&mut self, other: &Slot) {
        let counts = [
            (&mut self.scheduled, other.scheduled),
            (&mut self.fired, other.fired),
            (&mut self.done, other.done),
            (&mut self.failed, other.failed),
            (&mut self.died, other.died),
            (&mut self.cancelled, other.cancelled),
        ];
        counts.into_iter().for_each(|(count, other)| *count = count.saturating_add(other));
        let length = self.lateness.len().max(other.lateness.len());
        self.lateness.resize(length, 0);
        let late = self.lateness.iter_mut().zip(&other.lateness);
        late.for_each(|(count, other)| *count = count.saturating_add(*other));
    }

    /// A bound that the lateness of so many of a thousand deliveries did not exceed, the last one if none is known; nothing
    /// if there were none.
    pub fn lateness_at_most(&self, of_thousand: u64) -> Option<u64> {
        let count: u128 = self.lateness.iter().copied().map(u128::from).sum();
        let enough = (count * u128::from(of_thousand)).div_ceil(1_000);
        let mut met = 0;
        let place = self.lateness.iter().position(|count| {
            met += u128::from(*count);
            met >= enough
        });
        place.filter(|_| count > 0).and_then(|place| MICROS.get(place).or(MICROS.last()).copied())
    }
}

impl Series {
    /// Adds what another node has counted in the same slots.
    pub fn add(&mut self, other: &Series) {
        self.known_since = [self.known_since, other.known_since].into_iter().flatten().min();
        self.slots.iter_mut().zip(&other.slots).for_each(|(slot, other)| slot.add(other));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(counts: &[(usize, u64)]) -> Slot {
        let mut lateness = vec![0; MICROS.len() + 1];
        counts.iter().for_each(|(place, count)| lateness[*place] = *count);
        Slot { lateness, ..Slot::default() }
    }

    #[test]
    fn what_nodes_count_in_the_same_time_adds_up() {
        let gauges = |ready| Some(Gauges { ready, ..Gauges::default() });
        let of = |known_since, slots| Series { known_since, slots };
        let slot = |fired, ready| Slot { fired, gauges: gauges(ready), ..Slot::default() };
        let mut series = of(Some(Timestamp::from_millis(9)), vec![Slot::default(), slot(2, 5)]);
        series.add(&of(Some(Timestamp::from_millis(4)), vec![slot(1, 3), slot(7, 1)]));
        assert_eq!(series, of(Some(Timestamp::from_millis(4)), vec![slot(1, 3), slot(9, 6)]));
    }

    #[test]
    fn of_slots_one_after_the_other_the_last_says_how_much_there_is() {
        let slot = |ready: Option<u64>| Slot {
            done: 2,
            gauges: ready.map(|ready| Gauges { ready, ..Gauges::default() }),
            ..Slot::default()
        };
        let mut sum = slot(Some(7));
        sum.append(&slot(Some(3)));
        sum.append(&slot(None));
        assert_eq!((sum.done, sum.gauges.map(|gauges| gauges.ready)), (6, Some(3)));
    }

    #[test]
    fn lateness_is_told_by_its_bound() {
        let mut slot = late(&[(0, 98), (3, 1)]);
        assert_eq!(
            [500, 989, 990, 1_000].map(|share| slot.lateness_at_most(share)),
            [Some(250), Some(250), Some(2_000), Some(2_000)]
        );
        slot.add(&late(&[(MICROS.len(), 500)]));
        assert_eq!(slot.lateness_at_most(990), Some(60_000_000), "what is above all bounds is told as the last one");
        assert_eq!((late(&[]).lateness_at_most(990), Slot::default().lateness_at_most(500)), (None, None));
    }
}
