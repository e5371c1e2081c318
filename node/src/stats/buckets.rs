//! Counts of measured values while they are being made.

use punctual_center::Buckets;

/// The bounds of the number of rows that a commit changes.
pub(super) const CHANGES: &[u64] = &[1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];

/// Buckets while they are filled: each value is counted in the first one that fits.
pub(super) struct Filling {
    bounds: &'static [u64],
    counts: Vec<u64>,
    above: u64,
    sum: u64,
}

impl Filling {
    pub fn new(bounds: &'static [u64]) -> Filling {
        Filling { bounds, counts: vec![0; bounds.len()], above: 0, sum: 0 }
    }

    pub fn record(&mut self, value: u64) {
        let fits = self.bounds.partition_point(|bound| *bound < value);
        *self.counts.get_mut(fits).unwrap_or(&mut self.above) += 1;
        self.sum = self.sum.saturating_add(value);
    }

    pub fn read(&self) -> Buckets {
        let mut count = 0;
        let cumulative = self.counts.iter().map(|bucket| {
            count += bucket;
            count
        });
        let counts = cumulative.collect();
        Buckets { bounds: self.bounds, counts, count: count + self.above, sum: self.sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_center::MICROS;

    #[test]
    fn a_value_counts_for_every_bound_that_it_does_not_exceed() {
        let mut filling = Filling::new(&[1, 10, 100]);
        for value in [0, 1, 2, 10, 11, 101] {
            filling.record(value);
        }
        let buckets = filling.read();
        assert_eq!((&buckets.counts, buckets.count, buckets.sum), (&vec![2, 4, 5], 6, 125));
        assert_eq!(
            (buckets.mean(), buckets.at_most(300), buckets.at_most(500), buckets.at_most(990)),
            (20, 1, 10, 100)
        );
    }

    #[test]
    fn bounds_rise() {
        assert!([MICROS, CHANGES].iter().all(|bounds| bounds.is_sorted_by(|lower, higher| lower < higher)));
    }
}
