//! The only source of chance in tests and simulations: splitmix64, so that a seed is all that a run depends on.
//!
//! It is no source of secrets, and nothing that users run is built from it.

/// Draws numbers from a seed.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// The next number of the sequence.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A sequence of its own, so that drawing more there changes nothing here.
    pub fn fork(&mut self) -> Chance {
        Chance(self.draw())
    }

    /// A number from 0 up to, and without, this one; 0 if there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(end)) >> 64) as u64
    }

    /// A number from `first` to `last`, both included.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    /// An index below `len`, which is at least one.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Whether something happens that happens in so many of so many cases.
    pub fn happens(&mut self, cases: u64, of: u64) -> bool {
        self.below(of) < cases
    }

    /// Whether something happens that happens in so many of a hundred cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.happens(percent, 100)
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }

    /// A number from `first` to `last` whose order of magnitude is even, so that small ones are
    /// as likely as large ones.
    pub fn magnitude(&mut self, first: u64, last: u64) -> u64 {
        let (low, high) = (u64::from(first.max(1).ilog2()), u64::from(last.max(1).ilog2()));
        let bits = self.between(low, high);
        let drawn = (1u64 << bits) + self.below(1u64 << bits);
        drawn.clamp(first, last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_sequence() {
        let draw = |seed| -> Vec<u64> {
            let mut chance = Chance::new(seed);
            (0..8).map(|_| chance.draw()).collect()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn bounds_are_kept() {
        let mut chance = Chance::new(1);
        for _ in 0..1_000 {
            assert!((3..=5).contains(&chance.between(3, 5)));
            assert!((10..=100_000).contains(&chance.magnitude(10, 100_000)));
        }
    }
}
