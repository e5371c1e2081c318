//! How the values of a measurement are spread.

use std::collections::BTreeMap;

/// Measured values to three digits, and how often each was met, rising.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread(Vec<(u64, u64)>);

impl Spread {
    /// Of these values and how often each was met, in any order.
    pub fn of(values: impl IntoIterator<Item = (u64, u64)>) -> Spread {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for (value, count) in values {
            let sum = counts.entry(value).or_default();
            *sum = sum.saturating_add(count);
        }
        Spread(counts.into_iter().filter(|(_, count)| *count > 0).collect())
    }

    /// Of values that rise, each of which was met.
    pub fn rising(values: impl IntoIterator<Item = (u64, u64)>) -> Spread {
        let values: Vec<(u64, u64)> = values.into_iter().collect();
        debug_assert!(values.is_sorted_by(|(lower, _), (higher, _)| lower < higher));
        Spread(values)
    }

    /// The values and how often each was met.
    pub fn values(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// Adds what was measured elsewhere.
    pub fn add(&mut self, other: &Spread) {
        *self = Spread::of(self.0.iter().chain(&other.0).copied());
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Their mean.
    pub fn mean(&self) -> u64 {
        let sum: u128 = self.0.iter().map(|(value, count)| u128::from(*value) * u128::from(*count)).sum();
        sum.checked_div(u128::from(self.count())).unwrap_or(0) as u64
    }

    /// What so many of a thousand values do not exceed.
    pub fn at_most(&self, of_thousand: u64) -> u64 {
        let enough = (u128::from(self.count()) * u128::from(of_thousand)).div_ceil(1_000);
        let mut met = 0;
        let place = self.0.iter().find(|(_, count)| {
            met += u128::from(*count);
            met >= enough
        });
        place.or(self.0.last()).map_or(0, |(value, _)| *value)
    }

    /// The greatest of them.
    pub fn max(&self) -> u64 {
        self.0.last().map_or(0, |(value, _)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_measured_in_two_places_are_spread_like_all_of_them() {
        let mut spread = Spread::of([(10, 98), (1_000, 1)]);
        spread.add(&Spread::of([(7, 100), (10, 0), (90_000, 1)]));
        assert_eq!(spread.values(), [(7, 100), (10, 98), (1_000, 1), (90_000, 1)]);
        assert_eq!((spread.count(), spread.mean(), spread.max()), (200, 463, 90_000));
        assert_eq!([500, 501, 990, 999, 1_000].map(|share| spread.at_most(share)), [7, 10, 10, 90_000, 90_000]);
    }

    #[test]
    fn nothing_measured_is_nothing() {
        let spread = Spread::default();
        assert_eq!((spread.count(), spread.mean(), spread.at_most(990), spread.max()), (0, 0, 0, 0));
    }
}
