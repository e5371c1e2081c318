//! What keeps the store from taking more, as far as is known from the last beat and the last failures. Asked before every
//! step, so a look at it waits for nothing.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use punctual_core::store::{Hardship, Room};
use punctual_database::Address;

use crate::trouble::Trouble;

/// New tasks are refused from here on, in percent of the limit: what the others need to go their way has room.
const LITTLE: u64 = 90;
/// From here on nothing may grow.
const NONE: u64 = 98;
/// How often memory is looked at.
const EVERY: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Health {
    level: AtomicU8,
    hardship: Mutex<Option<Hardship>>,
    looked_at: Mutex<Option<Instant>>,
    bytes: AtomicU64,
}

const WELL: u8 = 0;
const FAILING: u8 = 1;
const CRAMPED: u8 = 2;
const FULL: u8 = 3;

impl Health {
    pub(crate) fn hardship(&self) -> Option<Hardship> {
        if self.level.load(Relaxed) == WELL {
            None
        } else {
            self.hardship.lock().expect("nothing panics under it").clone()
        }
    }

    pub(crate) fn room(&self) -> Room {
        match self.level.load(Relaxed) {
            FULL => Room::None,
            CRAMPED => Room::Little,
            _ => Room::Enough,
        }
    }

    /// Whether it is time to look at memory again.
    pub(crate) fn is_due(&self) -> bool {
        let mut looked_at = self.looked_at.lock().expect("nothing panics under it");
        let is_due = looked_at.is_none_or(|at| at.elapsed() >= EVERY);
        if is_due {
            *looked_at = Some(Instant::now());
        }
        is_due
    }

    /// Takes in how much memory each server uses, and may.
    pub(crate) fn see(&self, memory: &[(Address, u64, u64)]) {
        self.bytes.store(memory.iter().map(|(_, used, _)| used).sum(), Relaxed);
        let percent = |used: u64, limit: u64| used.saturating_mul(100).checked_div(limit).unwrap_or_default();
        let fullest = memory.iter().max_by_key(|(_, used, limit)| percent(*used, *limit));
        let Some((server, used, limit)) = fullest else { return };
        let percent = percent(*used, *limit);
        if percent >= LITTLE {
            let why = format!(
                "Redis at {server} uses {percent} % of its memory ({used} of {limit} bytes): raise maxmemory, or keep \
                 finished tasks for a shorter time"
            );
            self.set(if percent >= NONE { FULL } else { CRAMPED }, Some(Hardship::NoRoom(why)));
        } else if self.level.load(Relaxed) >= CRAMPED {
            self.set(WELL, None);
        }
    }

    /// A write was refused.
    pub(crate) fn mark(&self, trouble: &Trouble) {
        match trouble {
            Trouble::Full(_) => self.set(FULL, Some(Hardship::NoRoom(format!("{trouble}: raise maxmemory")))),
            Trouble::CannotSave(_) => self.set(FAILING, Some(Hardship::Failing(trouble.to_string()))),
            Trouble::Away(_) | Trouble::Refused(_) => {}
        }
    }

    /// A write has succeeded: what kept Redis from writing is over.
    pub(crate) fn succeed(&self) {
        if self.level.load(Relaxed) == FAILING {
            self.set(WELL, None);
        }
    }

    fn set(&self, level: u8, hardship: Option<Hardship>) {
        *self.hardship.lock().expect("nothing panics under it") = hardship;
        self.level.store(level, Relaxed);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(used: u64, limit: u64) -> (Address, u64, u64) {
        (Address { host: "a".to_owned(), port: 1 }, used, limit)
    }

    #[test]
    fn the_fullest_server_says_how_much_room_there_is() {
        let health = Health::default();
        health.see(&[memory(5_000, 0), memory(89, 100)]);
        assert_eq!((health.room(), health.hardship()), (Room::Enough, None));
        health.see(&[memory(10, 100), memory(90, 100)]);
        assert_eq!(health.room(), Room::Little);
        assert!(matches!(health.hardship(), Some(Hardship::NoRoom(_))));
        health.see(&[memory(98, 100)]);
        assert_eq!(health.room(), Room::None);
        health.see(&[memory(50, 100)]);
        assert_eq!((health.room(), health.hardship()), (Room::Enough, None));
    }

    #[test]
    fn a_disk_that_cannot_be_written_is_a_hardship_until_it_can() {
        let health = Health::default();
        health.mark(&Trouble::CannotSave("disk".to_owned()));
        assert!(matches!(health.hardship(), Some(Hardship::Failing(_))));
        assert_eq!(health.room(), Room::Enough);
        health.succeed();
        assert_eq!(health.hardship(), None);
    }
}
