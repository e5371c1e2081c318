//! How long it is tried again when a store does not answer.

use std::thread;
use std::time::{Duration, Instant};

use punctual_core::store::StoreError;

/// The first wait before it is tried again, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));

/// How long a store may be away before the move gives up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience(pub Duration);

impl Patience {
    /// Tries until there is an answer.
    pub fn retry<T>(self, mut attempt: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut waiting = self.begin();
        loop {
            match attempt() {
                Err(error) => waiting.bear(error)?,
                answer => return answer,
            }
        }
    }

    /// Begins to wait for a store.
    pub fn begin(self) -> Waiting {
        Waiting { since: Instant::now(), patience: self.0, pause: PAUSE.0 }
    }
}

/// A store is waited for.
pub(crate) struct Waiting {
    since: Instant,
    patience: Duration,
    pause: Duration,
}

impl Waiting {
    /// Waits a little, unless it is an error that waiting does not mend, or has been waited for long enough.
    pub fn bear(&mut self, error: StoreError) -> Result<(), StoreError> {
        if !matches!(error, StoreError::Unavailable(_)) || self.since.elapsed() >= self.patience {
            return Err(error);
        }
        thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(PAUSE.1);
        Ok(())
    }
}
