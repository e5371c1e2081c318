//! What keeps the server from taking more, as far as its answers have shown.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use punctual_core::store::Hardship;

use crate::error::Trouble;

/// How long a hardship is believed in. After that somebody tries again, which is the only way to know.
const BELIEF: Duration = Duration::from_secs(10);

/// The latest hardship.
#[derive(Default)]
pub(crate) struct Hardships {
    /// Whether there is any: every new task asks, and need not take the lock.
    is_hard: AtomicBool,
    latest: Mutex<Option<(Hardship, Instant)>>,
}

impl Hardships {
    /// Learns from what went wrong.
    pub(crate) fn note(&self, trouble: &Trouble) {
        let hardship = match trouble {
            Trouble::NoRoom(text) => {
                Hardship::NoRoom(format!("there is no room on the database server's disk, so make some there: {text}"))
            }
            Trouble::ReadOnly(text) => Hardship::Failing(format!(
                "the database server only reads, as a standby does: connect to one that writes: {text}"
            )),
            Trouble::Away(_) | Trouble::Astray(_) | Trouble::Refused(_) => return,
        };
        *self.latest() = Some((hardship, Instant::now()));
        self.is_hard.store(true, Ordering::Release);
    }

    /// Learns that rows could be inserted.
    pub(crate) fn forget(&self) {
        if self.is_hard.swap(false, Ordering::AcqRel) {
            *self.latest() = None;
        }
    }

    pub(crate) fn current(&self) -> Option<Hardship> {
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
