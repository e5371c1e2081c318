//! Which server, and how it is worked with.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::error::OpenError;
use crate::layout::Layout;
use crate::tls::{Tls, Trust};

/// What a store is opened with.
#[derive(Clone)]
pub struct Config {
    /// The address, as `postgres://user:password@host:port/database?sslmode=verify-full`. Several hosts are tried in
    /// turn: `postgres://user@one,two/database`.
    pub url: String,
    /// How many connections there are at most, besides one for the beats.
    pub connections: usize,
    /// How long a call may take, with all its attempts.
    pub patience: Duration,
    /// A file of certificates that the server's must come from, instead of those that the system trusts.
    pub ca: Option<PathBuf>,
    /// A file with the certificate that we show, and those that it comes from.
    pub certificate: Option<PathBuf>,
    /// A file with the key of that certificate.
    pub key: Option<PathBuf>,
    /// The schema that the tables are in.
    pub schema: String,
    /// What the names of the tables begin with.
    pub prefix: String,
    /// Whether opening creates the tables, or brings them to this version; else it only looks whether they are.
    pub migrates: bool,
}

impl Config {
    /// The usual settings for a server.
    pub fn new(url: impl Into<String>) -> Config {
        Config {
            url: url.into(),
            connections: 8,
            patience: Duration::from_secs(5),
            ca: None,
            certificate: None,
            key: None,
            schema: "punctual".to_owned(),
            prefix: String::new(),
            migrates: true,
        }
    }

    /// What the settings come to.
    pub(crate) fn resolve(&self) -> Result<Target, OpenError> {
        let layout = Layout::new(&self.schema, &self.prefix)?;
        if self.connections == 0 || self.patience.is_zero() {
            return Err(OpenError::Url("a store needs at least one connection, and some patience".to_owned()));
        }
        let (address, parameters) = self.url.split_once('?').unwrap_or((&self.url, ""));
        if !["postgres://", "postgresql://"].iter().any(|scheme| address.starts_with(scheme)) {
            return Err(OpenError::Url("the address of a PostgreSQL begins with postgres://".to_owned()));
        }
        let (mut mode, mut ca, mut certificate, mut key) =
            (None, self.ca.clone(), self.certificate.clone(), self.key.clone());
        let mut others = form_urlencoded::Serializer::new(String::new());
        for (name, value) in form_urlencoded::parse(parameters.as_bytes()) {
            match &*name {
                "sslmode" => mode = Some(value.into_owned()),
                "sslrootcert" => ca = Some(value.into_owned().into()),
                "sslcert" => certificate = Some(value.into_owned().into()),
                "sslkey" => key = Some(value.into_owned().into()),
                _ => drop(others.append_pair(&name, &value)),
            }
        }
        // The driver does not take a plus for a space, as forms do.
        let others = others.finish().replace('+', "%20");
        let mut server: tokio_postgres::Config = format!("{address}?{others}").parse().map_err(unreadable)?;
        if server.get_hosts().is_empty() && server.get_hostaddrs().is_empty() {
            return Err(OpenError::Url("the address names no host".to_owned()));
        }
        let mode = match (mode.as_deref(), &ca) {
            (None, None) => "prefer",
            // Who gives certificates wants them to be looked at.
            (None, Some(_)) => "verify-full",
            (Some("require"), Some(_)) => "verify-ca",
            (Some(mode), _) => mode,
        };
        let (ssl_mode, trust) = match mode {
            "disable" => (SslMode::Disable, Trust::Anybody),
            "allow" | "prefer" => (SslMode::Prefer, Trust::Anybody),
            "require" => (SslMode::Require, Trust::Anybody),
            "verify-ca" => (SslMode::Require, Trust::Certificate),
            "verify-full" => (SslMode::Require, Trust::CertificateAndName),
            other => {
                let known = "disable, prefer, require, verify-ca or verify-full";
                return Err(OpenError::Url(format!("sslmode is {known}, and not {other:?}")));
            }
        };
        self.settle(&mut server, ssl_mode);
        let tls = Tls::new(trust, ca.as_deref(), certificate.as_deref(), key.as_deref())?;
        Ok(Target { server, tls, layout, patience: self.patience })
    }

    /// What is not for the address to say, or goes without saying.
    fn settle(&self, server: &mut tokio_postgres::Config, ssl_mode: SslMode) {
        server.ssl_mode(ssl_mode);
        server.tcp_user_timeout(self.patience);
        server.keepalives_idle(Duration::from_secs(20));
        if server.get_application_name().is_none() {
            server.application_name("punctual");
        }
        // Of several hosts the one is meant that writes, wherever that is after a failover.
        if server.get_hosts().len() > 1 && server.get_target_session_attrs() == TargetSessionAttrs::Any {
            server.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
    }
}

/// The driver's own words may quote the address, and the password with it.
fn unreadable(error: tokio_postgres::Error) -> OpenError {
    let part = std::error::Error::source(&error).map(ToString::to_string).filter(|text| text.len() < 60);
    let part = part.unwrap_or_else(|| "it is not of the form postgres://user:password@host:port/database".to_owned());
    OpenError::Url(format!("the address of the PostgreSQL cannot be read: {part}"))
}

/// A server that can be connected to.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) server: tokio_postgres::Config,
    pub(crate) tls: Tls,
    pub(crate) layout: Layout,
    pub(crate) patience: Duration,
}

impl Target {
    /// Where it is, for people: hosts, ports and database.
    pub(crate) fn place(&self) -> String {
        let ports = self.server.get_ports();
        let host = |(place, host): (usize, &Host)| {
            let port = ports.get(place).or(ports.first()).unwrap_or(&5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        };
        let hosts: Vec<String> = self.server.get_hosts().iter().enumerate().map(host).collect();
        let database = self.server.get_dbname().or(self.server.get_user()).unwrap_or_default();
        format!("{}/{database}", hosts.join(","))
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address holds the password.
        f.debug_struct("Config")
            .field("schema", &self.schema)
            .field("prefix", &self.prefix)
            .field("connections", &self.connections)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        match Config::new(url).resolve() {
            Err(OpenError::Url(text)) => text,
            Err(other) => panic!("{url}: {other:?}"),
            Ok(_) => panic!("{url} was taken"),
        }
    }

    #[test]
    fn an_address_says_where_the_server_is() {
        let place = |url: &str| Config::new(url).resolve().unwrap().place();
        assert_eq!(place("postgres://me:secret@db.example:6543/tasks"), "db.example:6543/tasks");
        assert_eq!(place("postgresql://me@one,two:7/tasks?sslmode=disable"), "one:5432,two:7/tasks");
        assert_eq!(place("postgres://me@%2Frun%2Fpostgresql/tasks"), "/run/postgresql:5432/tasks");
    }

    #[test]
    fn what_cannot_be_an_address_is_refused_with_the_reason() {
        assert!(refused("mysql://me@host/db").contains("begins with postgres://"));
        assert!(refused("postgres:///tasks").contains("no host"));
        assert!(refused("postgres://h/d?sslmode=maybe").contains("verify-full"));
        assert!(refused("postgres://h/d?sslmode=verify-full&sslrootcert=/no/such/file").contains("/no/such/file"));
    }

    #[test]
    fn a_password_is_in_no_text() {
        let config = Config::new("postgres://me:secret@host:5432/tasks");
        assert!(!format!("{config:?}").contains("secret"));
        for broken in
            ["postgres://me:secret@host:port/tasks", "postgres://me:secret@host/d?nonsense=1", "x://me:secret@h"]
        {
            assert!(!refused(broken).contains("secret"), "{}", refused(broken));
        }
    }
}
