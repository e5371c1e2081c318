//! The machine's clock.

use std::time::{SystemTime, UNIX_EPOCH};

use punctual_core::{Clock, Timestamp};

/// The machine's wall clock. It may step in either direction; nothing fires early for that.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.micros() / 1_000)
    }

    fn micros(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }
}
