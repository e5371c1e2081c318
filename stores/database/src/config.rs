//! Which server, and how it is worked with.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, fs};

use crate::Kind;

/// What a store in a database is opened with.
///
/// ```
/// let config = punctual_database::Config::new("postgres://punctual:secret@db.example.com/tasks");
/// assert!(!format!("{config:?}").contains("secret"));
/// ```
#[derive(Clone)]
pub struct Config {
    /// Where it is, in the form that its [`Kind`] tells. The password may be in it.
    pub url: String,
    /// How many connections there are at most to each server.
    pub connections: usize,
    /// How long a call may take, with all its attempts.
    pub patience: Duration,
    /// A file of certificates that the server's must come from, as PEM, instead of those that are trusted anyway.
    pub ca: Option<PathBuf>,
    /// A file with the certificate that we show, and those that it comes from.
    pub certificate: Option<PathBuf>,
    /// A file with the key of that certificate.
    pub key: Option<PathBuf>,
    /// What the names of all tables or keys begin with, so that several stores find room in one database.
    pub prefix: Option<String>,
    /// The schema that the tables are in, where there are schemas.
    pub schema: Option<String>,
    /// How many replicas must have a commit before it counts, where one can wait for them.
    pub replicas: usize,
}

impl Config {
    /// What most want.
    pub fn new(url: impl Into<String>) -> Config {
        Config {
            url: url.into(),
            connections: 8,
            patience: Duration::from_secs(5),
            ca: None,
            certificate: None,
            key: None,
            prefix: None,
            schema: None,
            replicas: 0,
        }
    }

    /// Whether it can be meant for a database of this kind.
    pub fn check(&self, kind: &Kind) -> Result<(), OpenError> {
        let refused = |why: String| Err(OpenError::Url(why));
        if self.connections == 0 || self.patience.is_zero() {
            return refused("a store needs at least one connection, and some patience".to_owned());
        }
        if self.certificate.is_some() != self.key.is_some() {
            return refused("a certificate and its key belong together: name both files, or neither".to_owned());
        }
        let said = [("schema", self.schema.is_some()), ("replicas", self.replicas > 0)];
        match said.iter().find(|(name, is_said)| *is_said && !kind.settings.contains(name)) {
            Some((name, _)) => refused(format!("`{name}` means nothing for {}", kind.name)),
            None => Ok(()),
        }
    }

    /// The certificate that we show and its key, if there are any.
    pub fn identity(&self) -> Option<(&Path, &Path)> {
        self.certificate.as_deref().zip(self.key.as_deref())
    }
}

/// The content of a file that the settings name. Read now, so that it is missed now and not by each connection.
pub fn content(path: &Path) -> Result<Vec<u8>, OpenError> {
    fs::read(path).map_err(|error| OpenError::Url(format!("{} cannot be read: {error}", path.display())))
}

/// The URL may hold a password.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Config { connections, patience, prefix, schema, replicas, .. } = self;
        f.debug_struct("Config")
            .field("connections", connections)
            .field("patience", patience)
            .field("prefix", prefix)
            .field("schema", schema)
            .field("replicas", replicas)
            .finish_non_exhaustive()
    }
}

/// Why a store could not be opened, by what to do about it. No text of it has a password in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The URL, or a setting beside it, cannot be meant: correct it.
    #[error("{0}")]
    Url(String),
    /// The server cannot be reached, or is not ready: try again later.
    #[error("{0}")]
    Away(String),
    /// The server is there, and does not let us in or will not do: trying again does not help.
    #[error("{0}")]
    Refused(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind {
        name: "Any",
        word: "any",
        schemes: &["any"],
        form: "any://HOST",
        settings: &["schema"],
        backup: "a copy",
    };

    fn refused(config: Config) -> String {
        config.check(&KIND).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_reason() {
        let config = || Config::new("any://host");
        assert_eq!(refused(config()), "");
        assert_eq!(refused(Config { schema: Some("mine".to_owned()), ..config() }), "");
        assert_eq!(refused(Config { replicas: 1, ..config() }), "`replicas` means nothing for Any");
        assert!(refused(Config { connections: 0, ..config() }).contains("at least one"));
        assert!(refused(Config { patience: Duration::ZERO, ..config() }).contains("patience"));
        assert!(refused(Config { key: Some("key.pem".into()), ..config() }).contains("belong together"));
    }
}
