//! The attempts that did not end in the work being done, as far as a row remembers them.
//!
//! **Invariant**: the log of a row is bounded, however often it is handed out: it holds the first few attempts, which
//! show how the trouble began, and the last few. What went well at once leaves nothing here.

use serde::{Deserialize, Serialize};

use crate::answer::Refused;
use crate::name::Name;
use crate::time::Timestamp;

/// The longest note that a consumer may give along with what it says, in bytes.
pub const NOTE_BYTES: usize = 1_024;

/// How much of a note the log keeps, in bytes. A dead letter has the whole note it died with beside its log.
const KEPT_BYTES: usize = 256;

/// How many of the first and of the last attempts are kept.
const FIRST: usize = 2;
const LAST: usize = 6;

/// An attempt that did not end in the work being done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Which one it was, as its consumer was told. After a replay they count from one again.
    pub number: u32,
    /// When it ended.
    pub at: Timestamp,
    /// The consumer.
    pub holder: Name,
    /// How it ended.
    pub undone: Undone,
    /// The beginning of what was said about it.
    pub note: Option<String>,
}

/// How an attempt ended, if the work was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Undone {
    /// Its consumer gave it back to be retried.
    Failed,
    /// Its lease ended without a word.
    Lapsed,
    /// Its consumer gave it back for a time of its choice. That is no failure.
    Released,
    /// Its consumer said that the work cannot be done.
    Rejected,
    /// An operator ended its lease.
    Revoked,
    /// The connection of its consumer was gone.
    Abandoned,
}

impl Undone {
    /// The word for it on the wire and in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Undone::Failed => "failed",
            Undone::Lapsed => "lapsed",
            Undone::Released => "released",
            Undone::Rejected => "rejected",
            Undone::Revoked => "revoked",
            Undone::Abandoned => "abandoned",
        }
    }
}

/// The first and the last attempts of a row, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptLog(Vec<Attempt>);

impl AttemptLog {
    /// Notes one more. One in the middle gives way if there are too many.
    pub fn push(&mut self, mut attempt: Attempt) {
        if let Some(note) = &mut attempt.note {
            note.truncate(note.floor_char_boundary(KEPT_BYTES));
        }
        if self.0.len() == FIRST + LAST {
            self.0.remove(FIRST);
        }
        self.0.push(attempt);
    }

    /// What it costs in memory, roughly.
    pub(crate) fn weight(&self) -> usize {
        let notes = self.0.iter().filter_map(|attempt| attempt.note.as_ref()).map(String::len).sum::<usize>();
        self.0.len() * size_of::<Attempt>() + notes
    }

    /// All that are known, oldest first.
    pub fn attempts(&self) -> &[Attempt] {
        &self.0
    }
}

/// Whether a note is short enough to be kept.
pub(crate) fn check_note(note: Option<&str>) -> Result<(), Refused> {
    match note {
        Some(note) if note.len() > NOTE_BYTES => {
            let why = format!("{} bytes, but at most {NOTE_BYTES} are kept: put the rest in a log", note.len());
            Err(Refused::Invalid { field: "note", why })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(number: u32, note: &str) -> Attempt {
        let (at, holder) = (Timestamp::from_millis(number.into()), Name::new("c").unwrap());
        Attempt { number, at, holder, undone: Undone::Failed, note: Some(note.into()) }
    }

    #[test]
    fn the_first_and_the_last_attempts_are_kept() {
        let mut log = AttemptLog::default();
        for number in 1..=100 {
            log.push(attempt(number, "no"));
        }
        let numbers: Vec<u32> = log.attempts().iter().map(|attempt| attempt.number).collect();
        assert_eq!(numbers, [1, 2, 95, 96, 97, 98, 99, 100]);
    }

    #[test]
    fn a_long_note_is_cut_between_characters() {
        let mut log = AttemptLog::default();
        log.push(attempt(1, &format!("x{}", "é".repeat(500))));
        assert_eq!(log.attempts()[0].note.as_ref().map(String::len), Some(KEPT_BYTES - 1));
    }

    #[test]
    fn what_is_longer_than_the_limit_is_refused() {
        assert_eq!(check_note(Some(&"x".repeat(NOTE_BYTES))), Ok(()));
        assert!(matches!(check_note(Some(&"x".repeat(NOTE_BYTES + 1))), Err(Refused::Invalid { field: "note", .. })));
    }
}
