//! Instants and durations in milliseconds, and the clock that others implement.
//!
//! Nothing in this crate reads a clock: `now` comes in as an argument.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A length of time in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Millis(pub u64);

impl Millis {
    /// No time at all.
    pub const ZERO: Millis = Millis(0);

    /// So many seconds.
    pub const fn from_secs(seconds: u64) -> Millis {
        Millis(seconds.saturating_mul(1_000))
    }

    /// So many minutes.
    pub const fn from_mins(minutes: u64) -> Millis {
        Millis::from_secs(minutes.saturating_mul(60))
    }

    /// So many hours.
    pub const fn from_hours(hours: u64) -> Millis {
        Millis::from_mins(hours.saturating_mul(60))
    }
}

impl From<std::time::Duration> for Millis {
    /// Rounds up, so that what waits for it is never early.
    fn from(duration: std::time::Duration) -> Millis {
        let millis = duration.as_nanos().div_ceil(1_000_000);
        Millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// An instant: milliseconds since 1970-01-01 00:00 UTC.
///
/// The last instant that can be named is [`Timestamp::LAST`], in the year 287396; sums stop
/// there. The bound keeps every instant exact in a double, as JSON and Redis need it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The beginning of time, before every other instant.
    pub const ZERO: Timestamp = Timestamp(0);
    /// After every other instant; what is never to be woken waits until here.
    pub const NEVER: Timestamp = Timestamp((1 << 53) - 1);
    /// The last instant at which something can happen.
    pub const LAST: Timestamp = Timestamp(Timestamp::NEVER.0 - 1);

    /// The instant so many milliseconds after the beginning of 1970, at most [`Timestamp::LAST`].
    pub const fn from_millis(millis: u64) -> Timestamp {
        if millis > Timestamp::LAST.0 { Timestamp::LAST } else { Timestamp(millis) }
    }

    /// The instant of a number that comes out of a store; none if there is no such instant.
    pub fn read_back(millis: u64) -> Option<Timestamp> {
        (millis <= Timestamp::NEVER.0).then_some(Timestamp(millis))
    }

    /// Milliseconds since the beginning of 1970.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// This instant and so much later, at most [`Timestamp::LAST`].
    #[must_use]
    pub const fn plus(self, length: Millis) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_add(length.0))
    }

    /// This instant and so much earlier, at least [`Timestamp::ZERO`].
    #[must_use]
    pub const fn minus(self, length: Millis) -> Timestamp {
        Timestamp(self.0.saturating_sub(length.0))
    }

    /// This instant moved by a number of milliseconds in either direction.
    #[must_use]
    pub const fn shifted(self, by: i64) -> Timestamp {
        if by < 0 { self.minus(Millis(by.unsigned_abs())) } else { self.plus(Millis(by.unsigned_abs())) }
    }

    /// How long ago `earlier` was; zero if it is still to come.
    pub const fn since(self, earlier: Timestamp) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Timestamp::NEVER { f.write_str("never") } else { write!(f, "{} ms", self.0) }
    }
}

/// Tells the time. The node reads the machine's clock, the simulation its own.
pub trait Clock: Send + Sync {
    /// The time by this clock; it may step in either direction.
    fn now(&self) -> Timestamp;

    /// The same in microseconds since 1970, as finely as this clock can tell. Whoever sleeps until
    /// an instant needs to know when the millisecond turns.
    fn micros(&self) -> u64 {
        self.now().as_millis() * 1_000
    }

    /// The first whole millisecond that has not passed: lengths of time that begin now count from here,
    /// so that none of them is over too soon.
    fn ceiling(&self) -> Timestamp {
        Timestamp::from_millis(self.micros().div_ceil(1_000))
    }

    /// The end of a length of time that begins now. No time at all is over at once.
    fn after(&self, length: Millis) -> Timestamp {
        if length == Millis::ZERO { self.now() } else { self.ceiling().plus(length) }
    }

    /// Microseconds by a clock that nobody sets, since an instant of its own: whoever waits for a length of time
    /// and for nothing else waits by this one.
    fn steady_micros(&self) -> u64 {
        self.micros()
    }

    /// What the store's clock showed, in microseconds since 1970, at some instant between this one of the steady clock
    /// and now. Only a clock that goes by the store's minds it.
    fn heard(&self, _micros: u64, _asked_at: u64) {}

    /// By how many microseconds the machine's own clock is ahead of this one, if that is measured.
    fn skew(&self) -> Option<i64> {
        None
    }

    /// How often it has stepped by more than a second, if that is counted: forward, and back.
    fn steps(&self) -> (u64, u64) {
        (0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stop_at_the_last_instant() {
        assert_eq!(Timestamp::from_millis(5).plus(Millis(u64::MAX)), Timestamp::LAST);
        assert!(Timestamp::LAST < Timestamp::NEVER);
    }

    #[test]
    fn shifts_go_both_ways_and_stop_at_zero() {
        let noon = Timestamp::from_millis(1_000);
        assert_eq!(noon.shifted(-400), Timestamp::from_millis(600));
        assert_eq!(noon.shifted(400), Timestamp::from_millis(1_400));
        assert_eq!(noon.shifted(i64::MIN), Timestamp::ZERO);
    }

    #[test]
    fn a_duration_is_rounded_up_to_whole_milliseconds() {
        assert_eq!(Millis::from(std::time::Duration::from_nanos(1)), Millis(1));
        assert_eq!(Millis::from(std::time::Duration::from_millis(7)), Millis(7));
    }
}
