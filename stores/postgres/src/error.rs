//! What can go wrong between us and the server, by what is done about it.

use std::error::Error as _;
use std::time::Duration;

use punctual_core::store::Hardship;
use punctual_database::OpenError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// What went wrong with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The connection is of no use any more, or the server is: another attempt may be better.
    Away(String),
    /// The statement did not happen because of what is in the tables. The connection is fine.
    Astray(String),
    /// There is no room on the server's disk.
    NoRoom(String),
    /// The server only reads: it is a standby, or was made to.
    ReadOnly(String),
    /// Trying again does not help.
    Refused(String),
}

impl Trouble {
    pub(crate) fn of(error: &Error) -> Trouble {
        let text = words(error);
        let Some(code) = error.code() else {
            return if is_final(error) { Trouble::Refused(text) } else { Trouble::Away(text) };
        };
        if *code == SqlState::INVALID_TEXT_REPRESENTATION || *code == SqlState::UNIQUE_VIOLATION {
            return Trouble::Astray(text);
        }
        if *code == SqlState::DISK_FULL {
            return Trouble::NoRoom(text);
        }
        if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
            return Trouble::ReadOnly(text);
        }
        // What may go by itself: lost connections (08), rollbacks by conflict (40), lack of resources (53), locks (55),
        // an operator's doing and timeouts (57), the server's files (58), statements that a pooler forgot (26), and
        // plans that a migration has made stale (0A).
        match &code.code()[..2] {
            "08" | "0A" | "26" | "40" | "53" | "55" | "57" | "58" => Trouble::Away(text),
            _ => Trouble::Refused(text),
        }
    }

    /// There was no answer in time.
    pub(crate) fn late(patience: Duration) -> Trouble {
        Trouble::Away(format!("no answer within {patience:?}"))
    }

    /// The work was broken off, as at the end of the process.
    pub(crate) fn broken_off() -> Trouble {
        Trouble::Refused("the work was broken off".to_owned())
    }

    /// Whether the connection it came over can be used again.
    pub(crate) fn spares_connection(&self) -> bool {
        matches!(self, Trouble::Astray(_) | Trouble::NoRoom(_))
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Trouble::Away(text)
            | Trouble::Astray(text)
            | Trouble::NoRoom(text)
            | Trouble::ReadOnly(text)
            | Trouble::Refused(text) => text,
        }
    }

    /// What it says about the store as a whole.
    pub(crate) fn hardship(&self) -> Option<Hardship> {
        match self {
            Trouble::NoRoom(text) => Some(Hardship::NoRoom(format!(
                "there is no room on the database server's disk, so make some there: {text}"
            ))),
            Trouble::ReadOnly(text) => Some(Hardship::Failing(format!(
                "the database server only reads, as a standby does: connect to one that writes: {text}"
            ))),
            Trouble::Away(_) | Trouble::Astray(_) | Trouble::Refused(_) => None,
        }
    }

    /// The same as of opening a store.
    pub(crate) fn opening(self) -> OpenError {
        match self {
            Trouble::Away(text) | Trouble::NoRoom(text) | Trouble::ReadOnly(text) => OpenError::Away(text),
            Trouble::Refused(text) | Trouble::Astray(text) => OpenError::Refused(text),
        }
    }
}

/// Whether an error that did not come from the server would come again: who it is was not believed, or no way to let us in was
/// found. The driver tells by its words only.
fn is_final(error: &Error) -> bool {
    let text = error.to_string();
    if text.starts_with("error performing TLS handshake") {
        let io = error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>());
        return io.is_none_or(|io| io.get_ref().is_some_and(|cause| cause.is::<rustls::Error>()));
    }
    ["invalid configuration", "authentication error"].iter().any(|kind| text.starts_with(kind))
}

/// What an error says, with what the server or the system says beneath it. Neither repeats a password.
fn words(error: &Error) -> String {
    if let Some(said) = error.as_db_error() {
        let hint = said.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        return format!("PostgreSQL says: {}{hint} [{}]", said.message(), said.code().code());
    }
    let mut text = error.to_string();
    let mut beneath = error.source();
    while let Some(cause) = beneath {
        text = format!("{text}: {cause}");
        beneath = cause.source();
    }
    text
}
