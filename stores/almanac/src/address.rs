//! Where a row lies in the runs: the run's place on the shelf, and the row's number within the run.

/// A row in a run. The shelf gives each run a small number while it stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address {
    /// The run's place on the shelf; never zero, so that an address is never all zeros.
    pub run: u16,
    /// Which row of the run, counted from zero in the run's order; below [`Address::MOST_ROWS`].
    pub ordinal: u32,
}

impl Address {
    /// How many rows a run may have: ordinals have 24 bits.
    pub const MOST_ROWS: usize = 1 << 24;

    /// In the lower 40 bits of a number.
    pub fn packed(self) -> u64 {
        u64::from(self.run) << 24 | u64::from(self.ordinal)
    }

    /// The address in the lower 40 bits of a number.
    pub fn unpacked(number: u64) -> Address {
        Address { run: (number >> 24) as u16, ordinal: (number & 0xff_ffff) as u32 }
    }
}
