//! How Redis is reached, and what is asked of it. Nothing here shows a secret.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// What the store is opened with.
#[derive(Clone)]
pub struct Config {
    /// Where Redis is:
    ///
    /// ```text
    /// redis://[user[:password]@]host[:port][/database]            one server
    /// redis+sentinel://[…@]host[:port],…/master[/database]        the master that these sentinels name
    /// redis+cluster://[…@]host[:port],…                           a cluster of which these servers are some
    /// ```
    /// With `rediss` instead of `redis` connections are encrypted. In the query may stand `wait_ms`,
    /// `sentinel_username` and `sentinel_password`.
    pub url: String,
    /// How many connections there are to each server at most.
    pub connections: usize,
    /// How long a call may take, with all its attempts.
    pub patience: Duration,
    /// The certificates of the authority to trust, instead of the system's.
    pub ca: Option<PathBuf>,
    /// The certificate to show to servers that ask for one.
    pub certificate: Option<PathBuf>,
    /// The key of that certificate.
    pub key: Option<PathBuf>,
    /// What all keys begin with, so that several stores can share a Redis.
    pub prefix: String,
    /// How many replicas must have a commit before it counts; 0 waits for none.
    pub replicas: usize,
}

impl Config {
    /// The settings for a URL, with nothing else said.
    pub fn new(url: impl Into<String>) -> Config {
        Config {
            url: url.into(),
            connections: 32,
            patience: Duration::from_secs(5),
            ca: None,
            certificate: None,
            key: None,
            prefix: "punctual".to_owned(),
            replicas: 0,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may hold a password.
        f.debug_struct("Config").field("prefix", &self.prefix).field("replicas", &self.replicas).finish_non_exhaustive()
    }
}

/// Why a store cannot be opened, by what to do about it. No text has a password in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The URL, or another setting, cannot be meant.
    #[error("{0}")]
    Url(String),
    /// Redis cannot be reached, or is not ready yet: try again.
    #[error("{0}")]
    Away(String),
    /// Redis is there and will not do: trying again does not help.
    #[error("{0}")]
    Refused(String),
}

/// What the URL says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The servers to begin with: the one, or some of the sentinels or of the cluster.
    pub(crate) servers: Vec<Address>,
    pub(crate) topology: Topology,
    pub(crate) is_secure: bool,
    pub(crate) user: User,
    /// The sentinels have users of their own.
    pub(crate) sentinel_user: User,
    pub(crate) database: u32,
    /// How long replicas are waited for.
    pub(crate) wait: Duration,
}

/// How the servers work together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    /// One server, or whatever stands in front of several and looks like one.
    Single,
    /// Sentinels, which know the master of this name.
    Sentinel(String),
    /// Each server has some of the slots.
    Cluster,
}

/// A server's host and port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// Who we say that we are, if we are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: Option<String>,
    pub(crate) password: Option<Secret>,
}

/// A password; nothing shows it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secure = if self.is_secure { "s" } else { "" };
        let servers: Vec<String> = self.servers.iter().map(Address::to_string).collect();
        let (servers, database) = (servers.join(","), self.database);
        match &self.topology {
            Topology::Single => write!(f, "redis{secure}://{servers}/{database}"),
            Topology::Sentinel(master) => write!(f, "redis{secure}+sentinel://{servers}/{master}/{database}"),
            Topology::Cluster => write!(f, "redis{secure}+cluster://{servers}"),
        }
    }
}
