//! What keeps a database from taking more, as far as its answers have shown.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use punctual_core::store::Hardship;

/// How long a hardship is believed in. After that somebody tries again, which is the only way to know.
const BELIEF: Duration = Duration::from_secs(10);

/// The latest hardship.
#[derive(Default)]
pub struct Hardships {
    /// Whether there is any: every new task asks, and need not take the lock.
    is_hard: AtomicBool,
    latest: Mutex<Option<(Hardship, Instant)>>,
}

impl Hardships {
    /// Learns from what went wrong.
    pub fn note(&self, hardship: Hardship) {
        *self.latest() = Some((hardship, Instant::now()));
        self.is_hard.store(true, Ordering::Release);
    }

    /// Learns that rows could be written.
    pub fn forget(&self) {
        if self.is_hard.swap(false, Ordering::AcqRel) {
            *self.latest() = None;
        }
    }

    /// The hardship that there is, as far as is known.
    pub fn current(&self) -> Option<Hardship> {
        if !self.is_hard.load(Ordering::Acquire) {
            return None;
        }
        let latest = self.latest();
        latest.as_ref().filter(|(_, since)| since.elapsed() < BELIEF).map(|(hardship, _)| hardship.clone())
    }

    fn latest(&self) -> MutexGuard<'_, Option<(Hardship, Instant)>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hardship_is_there_until_something_could_be_written() {
        let hardships = Hardships::default();
        assert_eq!(hardships.current(), None);
        hardships.note(Hardship::NoRoom("full".to_owned()));
        hardships.note(Hardship::Failing("read-only".to_owned()));
        assert_eq!(hardships.current(), Some(Hardship::Failing("read-only".to_owned())));
        hardships.forget();
        assert_eq!(hardships.current(), None);
    }
}
