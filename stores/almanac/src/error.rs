//! What can go wrong with an almanac's files, and what to do about it.

use std::io;

use punctual_core::store::StoreError;

use crate::journal::{SegmentFile, reach};

/// Why an almanac did not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error("{place} is in use by another process: stop it first, or choose another directory")]
    InUse {
        /// The directory.
        place: String,
    },
    /// A newer version of Punctual wrote it.
    #[error(
        "{file} has format version {found}, but this version of Punctual reads only up to {known}: use a newer Punctual"
    )]
    Newer {
        /// The file.
        file: String,
        /// Its version.
        found: u32,
        /// The newest version that can be read.
        known: u32,
    },
    /// The files hold something else than what was written.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// There was an almanac, and it is gone.
    #[error("the store that was in {place} is gone: restore it from a backup, or mount the disk it is on")]
    Gone {
        /// The directory.
        place: String,
    },
    /// The operating system refused.
    #[error("{what}: {error}")]
    Io {
        /// What was tried.
        what: String,
        /// What it said.
        error: io::Error,
    },
    /// The settings contradict each other.
    #[error("the almanac's settings are not valid: {0}")]
    Config(String),
}

impl OpenError {
    /// Whether it would open without what is lost, see [`Config::accepts_loss`](crate::Config::accepts_loss).
    pub fn is_loss(&self) -> bool {
        match self {
            OpenError::Gone { .. } => true,
            OpenError::Damaged(damage) => SegmentFile::is_one(&damage.file) || damage.file == reach::NAME,
            _ => false,
        }
    }

    /// For `map_err`: what was tried when the operating system refused.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> OpenError {
        let what = what.into();
        move |error| OpenError::Io { what, error }
    }
}

/// Whether the system refused for lack of room.
pub(crate) fn is_no_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// A file does not hold what was written to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{file} is damaged at byte {offset}: {what}. Nothing was changed. Restore the directory from a backup or a \
     replica; `punctual store check` lists all damage and `punctual store show` prints what can still be read"
)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// Where in it.
    pub offset: u64,
    /// What is wrong there.
    pub what: String,
}

/// Why a read of a file that is open failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Damaged(#[from] Damage),
    #[error("{file} cannot be read: {error}")]
    Io { file: String, error: io::Error },
}

impl From<ReadError> for StoreError {
    /// A store that reads something else than what was written cannot vouch for anything; a disk
    /// that does not answer may do so later.
    fn from(error: ReadError) -> StoreError {
        match error {
            ReadError::Damaged(damage) => StoreError::Poisoned(damage.to_string()),
            ReadError::Io { .. } => StoreError::Unavailable(error.to_string()),
        }
    }
}

impl From<ReadError> for OpenError {
    fn from(error: ReadError) -> OpenError {
        match error {
            ReadError::Damaged(damage) => OpenError::Damaged(damage),
            ReadError::Io { file, error } => OpenError::Io { what: format!("{file} cannot be read"), error },
        }
    }
}
