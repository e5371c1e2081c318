//! Why the keeper did not get something done. It is tried again; until then the almanac takes no more.

use std::fmt;
use std::io;

use punctual_core::store::{Hardship, StoreError};

use crate::error::is_no_room;

#[derive(Debug)]
pub(crate) enum Setback {
    /// There is no room for what has to be written.
    NoRoom(String),
    /// The disk does not do what it is asked for, for another reason.
    Failing(String),
    /// The almanac cannot go on, or is being closed.
    Store(StoreError),
}

impl Setback {
    /// For `map_err`: what was tried when the operating system refused.
    pub fn io(what: impl fmt::Display) -> impl FnOnce(io::Error) -> Setback {
        move |error| {
            let what = format!("{what}: {error}");
            if is_no_room(&error) { Setback::NoRoom(what) } else { Setback::Failing(what) }
        }
    }

    pub fn is_no_room(&self) -> bool {
        matches!(self, Setback::NoRoom(_))
    }

    /// What callers are to know of it.
    pub fn hardship(&self) -> Option<Hardship> {
        const GOES_ON: &str = "Acknowledging and cancelling still work";
        match self {
            Setback::NoRoom(what) => Some(Hardship::NoRoom(format!(
                "{what}; free some disk space, or wait until tasks are consumed, which frees theirs. {GOES_ON}"
            ))),
            Setback::Failing(what) => Some(Hardship::Failing(format!(
                "{what}; check the disk, its mount and its permissions: a new attempt is made every second. {GOES_ON}"
            ))),
            Setback::Store(StoreError::Unavailable(what)) => Some(Hardship::Failing(what.clone())),
            Setback::Store(_) => None,
        }
    }
}

impl From<Setback> for StoreError {
    fn from(setback: Setback) -> StoreError {
        match setback {
            Setback::NoRoom(what) => StoreError::Unavailable(format!("{what}; free some disk space")),
            Setback::Failing(what) => StoreError::Unavailable(what),
            Setback::Store(error) => error,
        }
    }
}

impl From<StoreError> for Setback {
    fn from(error: StoreError) -> Setback {
        Setback::Store(error)
    }
}
