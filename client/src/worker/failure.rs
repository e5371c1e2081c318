//! How a handler says that it did not succeed.

use std::fmt;
use std::time::Duration;

use punctual_wire::{Action, Do};

/// The longest note that may go with what is said about a delivery, in bytes: the server's limit.
const NOTE_BYTES: usize = 1_024;

/// Why a handler did not do its work, and what should become of the delivery.
///
/// Any error becomes one by `?` and means: try again, as the queue's retry policy says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    next: Next,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Retry,
    After(Duration),
    Reject,
}

impl Failure {
    /// It failed: the retry policy says when it is tried again, and when it is given up. The message stays with the
    /// task, so that a dead letter says why it is one; 1,024 bytes of it are sent.
    pub fn retry(message: impl Into<String>) -> Failure {
        Failure { next: Next::Retry, message: message.into() }
    }

    /// It cannot be done now: again after this time, without counting as failed.
    pub fn retry_after(wait: Duration) -> Failure {
        Failure { next: Next::After(wait), message: String::new() }
    }

    /// It can never be done: it becomes a dead letter with this note, of which 1,024 bytes are kept.
    pub fn reject(note: impl Into<String>) -> Failure {
        Failure { next: Next::Reject, message: note.into() }
    }

    /// The same, with words for the log and for the task.
    pub fn because(mut self, message: impl Into<String>) -> Failure {
        self.message = message.into();
        self
    }

    /// Whether it is given up.
    pub(crate) fn is_rejection(&self) -> bool {
        self.next == Next::Reject
    }

    /// What to tell the server.
    pub(crate) fn action(&self, lease: String) -> Action {
        match self.next {
            Next::Retry => Action { note: self.note(), ..Action::new(Do::Release, lease) },
            Next::After(wait) => {
                Action { after: Some(wait.into()), note: self.note(), ..Action::new(Do::Release, lease) }
            }
            Next::Reject => Action { note: self.note(), ..Action::new(Do::Reject, lease) },
        }
    }

    fn note(&self) -> Option<String> {
        let end = self.message.floor_char_boundary(NOTE_BYTES);
        (end > 0).then(|| self.message[..end].to_owned())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// So that `?` works on whatever fails. For that, a failure must not be an error itself.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::retry(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use punctual_wire::Span;

    use super::*;

    #[test]
    fn an_error_means_to_try_again_by_the_policy() {
        fn work() -> Result<u32, Failure> {
            Ok("seven".parse::<u32>()?)
        }
        let failure = work().unwrap_err();
        let note = Some("invalid digit found in string".to_owned());
        assert_eq!(failure.action("l".into()), Action { note, ..Action::new(Do::Release, "l") });
    }

    #[test]
    fn a_time_of_ones_own_is_not_a_failure_by_the_policy() {
        let failure = Failure::retry_after(Duration::from_secs(7)).because("the bank is closed");
        let action = failure.action("l".into());
        assert_eq!((action.after, action.note.as_deref()), (Some(Span(7_000)), Some("the bank is closed")));
        assert!(!failure.is_rejection());
    }

    #[test]
    fn a_long_note_is_cut_between_characters() {
        let action = Failure::reject("é".repeat(1_000)).action("l".into());
        assert_eq!((action.what, action.note.map(|note| note.len())), (Do::Reject, Some(1_024)));
        assert_eq!(Failure::reject("x".to_owned() + &"é".repeat(1_000)).note().map(|note| note.len()), Some(1_023));
        assert_eq!(Failure::reject("").note(), None);
    }
}
