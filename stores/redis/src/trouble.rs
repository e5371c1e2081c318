//! Why a call came to nothing, or may have.

use punctual_core::store::StoreError;
use redis::ServerError;

/// What kept a call from being answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Trouble {
    /// There was no answer in time, or none that can be used.
    #[error("{0}")]
    Away(String),
    /// The server does not want us.
    #[error("{0}")]
    Refused(String),
    /// Memory is used up. Nothing was written.
    #[error("Redis has no memory left, and nothing was written: {0}")]
    Full(String),
    /// Redis cannot write its files and takes no writes. Nothing was written.
    #[error("Redis cannot write to its disk, and nothing was written: {0}")]
    CannotSave(String),
}

impl Trouble {
    /// What a server's refusal of a command means, if trying again does not help.
    pub(crate) fn of(error: &ServerError, why: String) -> Trouble {
        match error.code() {
            "OOM" => Trouble::Full(why),
            "MISCONF" => Trouble::CannotSave(why),
            "WRONGPASS" | "NOAUTH" | "NOPERM" => Trouble::Refused(why),
            _ => Trouble::Away(why),
        }
    }

    /// The same, with the server that it was.
    pub(crate) fn at(self, server: impl std::fmt::Display) -> Trouble {
        match self {
            Trouble::Away(why) => Trouble::Away(format!("{server}: {why}")),
            Trouble::Refused(why) => Trouble::Refused(format!("{server}: {why}")),
            Trouble::Full(why) => Trouble::Full(format!("{server}: {why}")),
            Trouble::CannotSave(why) => Trouble::CannotSave(format!("{server}: {why}")),
        }
    }
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> StoreError {
        StoreError::Unavailable(trouble.to_string())
    }
}

/// A server's error as it said it.
pub(crate) fn said(error: &ServerError) -> String {
    format!("{} {}", error.code(), error.details().unwrap_or_default())
}
