//! How Redis is reached, as the URL says it. Nothing here shows a secret.

use std::fmt;
use std::time::Duration;

use punctual_database::Address;

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
