//! What a failure means: whether to try again, what to tell the caller, and what keeps the store from taking more.

use punctual_core::store::{Hardship, StoreError};
use punctual_database::OpenError;

use crate::answer::Garbled;

/// Why a conversation with the server, or one statement of it, came to an end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// The server does not do it. The conversation can go on.
    #[error("{message} (error {code})")]
    Server {
        /// The number of the error.
        code: u16,
        /// What the server says.
        message: String,
    },
    /// The server is not there, or not any more.
    #[error("{0}")]
    Away(String),
    /// The server took longer than it may.
    #[error("it did not answer in time")]
    Late,
    /// Something may have happened or not, and nobody can tell any more.
    #[error("{0}")]
    Unclear(String),
    /// The server and we do not understand each other; trying again does not help.
    #[error("{0}")]
    Foreign(String),
}

/// Errors of the server, by their numbers, which MariaDB and MySQL share as far as both know them.
pub(crate) mod code {
    pub(crate) const DUPLICATE: u16 = 1062;
    pub(crate) const NOT_NULL: u16 = 1048;
    /// What our guards fail with.
    pub(crate) const OUT_OF_RANGE: u16 = 1690;
    pub(crate) const NO_SUCH_TABLE: u16 = 1146;
    pub(crate) const NO_SUCH_DATABASE: u16 = 1049;
    const LOCK_WAIT: u16 = 1205;
    const DEADLOCK: u16 = 1213;
    /// A snapshot was overtaken; a transaction cannot be certified (Galera).
    const CHANGED_MEANWHILE: u16 = 1020;
    const NOT_PREPARED: u16 = 1047;
    const SHUTTING_DOWN: u16 = 1053;
    const TOO_MANY_CONNECTIONS: u16 = 1040;
    const TOO_MANY_OF_USER: u16 = 1203;
    const INTERRUPTED: u16 = 1317;
    const KILLED: u16 = 1927;
    const STATEMENT_TIME: u16 = 1969;
    const EXECUTION_TIME: u16 = 3024;
    const IDLE_TOO_LONG: u16 = 4031;
    const DISK_FULL: u16 = 1021;
    const TABLE_FULL: u16 = 1114;
    const WRITE_FAILED: u16 = 1026;
    const FILE_WRITE_FAILED: u16 = 3;
    const OPTION_PREVENTS: u16 = 1290;
    const READ_ONLY_TRANSACTION: u16 = 1792;
    const READ_ONLY_ENGINE: u16 = 1836;

    /// What passes by itself, sooner or later.
    pub(super) const PASSING: [u16; 13] = [
        LOCK_WAIT,
        DEADLOCK,
        CHANGED_MEANWHILE,
        NOT_PREPARED,
        SHUTTING_DOWN,
        TOO_MANY_CONNECTIONS,
        TOO_MANY_OF_USER,
        INTERRUPTED,
        KILLED,
        STATEMENT_TIME,
        EXECUTION_TIME,
        IDLE_TOO_LONG,
        // A duplicate entry of the cluster or of a shard: somebody was quicker.
        DUPLICATE,
    ];
    /// Another server is the primary by now, or somebody has said so.
    pub(super) const READ_ONLY: [u16; 3] = [OPTION_PREVENTS, READ_ONLY_TRANSACTION, READ_ONLY_ENGINE];
    pub(super) const NO_ROOM: [u16; 4] = [DISK_FULL, TABLE_FULL, WRITE_FAILED, FILE_WRITE_FAILED];
}

impl Trouble {
    /// The number of the server's error.
    pub(crate) fn code(&self) -> Option<u16> {
        let Trouble::Server { code, .. } = self else { return None };
        Some(*code)
    }

    /// Whether the same may succeed in a moment, on this connection or another.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Trouble::Away(_) | Trouble::Late => true,
            Trouble::Foreign(_) | Trouble::Unclear(_) => false,
            Trouble::Server { code, .. } => code::PASSING.contains(code) || code::READ_ONLY.contains(code),
        }
    }

    /// The same for what must not be done twice: only a server that says no has not done it.
    pub(crate) fn unclear_if_lost(self) -> Trouble {
        match self {
            Trouble::Away(_) | Trouble::Late => Trouble::Unclear(format!("{self}, and may have done it")),
            known => known,
        }
    }

    /// Whether it comes from a server that is not the primary, so that a new connection may find the right one.
    pub(crate) fn is_read_only(&self) -> bool {
        self.code().is_some_and(|code| code::READ_ONLY.contains(&code))
    }

    /// What it says about the store as a whole.
    pub(crate) fn hardship(&self) -> Option<Hardship> {
        let code = self.code()?;
        if code::NO_ROOM.contains(&code) {
            return Some(Hardship::NoRoom(format!("the database server has no room: {self}")));
        }
        let why = "the database server takes no changes, as a replica or one with read_only set does";
        code::READ_ONLY.contains(&code).then(|| Hardship::Failing(format!("{why}: {self}")))
    }
}

impl From<Garbled> for Trouble {
    fn from(garbled: Garbled) -> Trouble {
        Trouble::Foreign(garbled.to_string())
    }
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> StoreError {
        StoreError::Unavailable(trouble.to_string())
    }
}

impl From<Trouble> for OpenError {
    fn from(trouble: Trouble) -> OpenError {
        match trouble.code() {
            Some(code::NO_SUCH_DATABASE) => {
                OpenError::Refused(format!("{trouble}: make it, by CREATE DATABASE, and GRANT the user ALL on it"))
            }
            _ if trouble.passes() => OpenError::Away(trouble.to_string()),
            _ => OpenError::Refused(trouble.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(code: u16) -> Trouble {
        Trouble::Server { code, message: "why".to_owned() }
    }

    #[test]
    fn deadlocks_pass_and_errors_of_ours_do_not() {
        assert!(server(1213).passes() && server(1205).passes() && Trouble::Late.passes());
        assert!(!server(1064).passes() && !Trouble::Foreign(String::new()).passes());
        assert!(server(1290).passes() && server(1290).is_read_only());
    }

    #[test]
    fn a_full_disk_and_a_replica_are_hardships() {
        assert_eq!(server(1213).hardship(), None);
        assert!(matches!(server(1114).hardship(), Some(Hardship::NoRoom(_))));
        assert!(matches!(server(1290).hardship(), Some(Hardship::Failing(_))));
    }
}
