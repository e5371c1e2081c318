//! Counts of measured values by how great they are, for whoever adds up over many nodes and long times.

/// How many values of a measurement are at most so great.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buckets {
    /// The bounds, rising.
    pub bounds: &'static [u64],
    /// For each bound: how many values are at most that.
    pub counts: Vec<u64>,
    /// How many values there are; those above the last bound are counted only here.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
}

impl Buckets {
    /// Adds what was counted elsewhere by the same bounds.
    pub fn add(&mut self, other: &Buckets) {
        let counts = self.counts.iter_mut().zip(&other.counts);
        counts.for_each(|(count, other)| *count = count.saturating_add(*other));
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// The mean of the values.
    pub fn mean(&self) -> u64 {
        self.sum.checked_div(self.count).unwrap_or(0)
    }

    /// A bound that so many of a thousand values do not exceed: the lowest that is known, the last one if none is.
    pub fn at_most(&self, of_thousand: u64) -> u64 {
        let enough = (u128::from(self.count) * u128::from(of_thousand)).div_ceil(1_000);
        let place = self.counts.iter().position(|count| u128::from(*count) >= enough);
        let bound = place.map_or(self.bounds.last(), |place| self.bounds.get(place));
        if self.count == 0 { 0 } else { bound.copied().unwrap_or(0) }
    }
}

/// The bounds of the lateness of deliveries and of the time of a commit, in microseconds. Nodes add up what others have counted
/// by them: other bounds would be another field of what they say.
pub const MICROS: &[u64] = &[
    250, 500, 1_000, 2_000, 3_000, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000,
    60_000_000,
];
