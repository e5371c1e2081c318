//! Which server, and how it is worked with.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use punctual_database::{Config, Database, Kind, OpenError};
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::PostgresStore;
use crate::layout::Layout;
use crate::tls::{Tls, Trust};

const KIND: Kind = PostgresStore::KIND;

/// A server that can be connected to.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) server: tokio_postgres::Config,
    pub(crate) tls: Tls,
    pub(crate) layout: Layout,
    pub(crate) patience: Duration,
    /// Whether connections see the tables as they are at one moment. Only one can, and here is whether it was made.
    pub(crate) moment: Option<Arc<AtomicBool>>,
}

impl Target {
    /// What the settings come to. The address is `postgres://user:password@host:port/database?sslmode=verify-full`; several
    /// hosts are tried in turn: `postgres://user@one,two/database`.
    pub(crate) fn of(config: &Config) -> Result<Target, OpenError> {
        let (address, parameters) = config.url.split_once('?').unwrap_or((&config.url, ""));
        if !KIND.schemes.iter().any(|scheme| address.strip_prefix(scheme).is_some_and(|rest| rest.starts_with("://"))) {
            return Err(OpenError::Url("the address of a PostgreSQL begins with postgres://".to_owned()));
        }
        let (mut mode, mut config) = (None, config.clone());
        let mut others = form_urlencoded::Serializer::new(String::new());
        for (name, value) in form_urlencoded::parse(parameters.as_bytes()) {
            match &*name {
                "sslmode" => mode = Some(value.into_owned()),
                "sslrootcert" => config.ca = Some(value.into_owned().into()),
                "sslcert" => config.certificate = Some(value.into_owned().into()),
                "sslkey" => config.key = Some(value.into_owned().into()),
                _ => drop(others.append_pair(&name, &value)),
            }
        }
        config.check(&KIND)?;
        // The driver does not take a plus for a space, as forms do.
        let others = others.finish().replace('+', "%20");
        let mut server: tokio_postgres::Config = format!("{address}?{others}").parse().map_err(unreadable)?;
        if server.get_hosts().is_empty() && server.get_hostaddrs().is_empty() {
            return Err(OpenError::Url("the address names no host".to_owned()));
        }
        let (ssl_mode, trust) = secrecy(mode.as_deref(), config.ca.is_some())?;
        settle(&mut server, ssl_mode, config.patience);
        let layout =
            Layout::new(config.schema.as_deref().unwrap_or("punctual"), config.prefix.as_deref().unwrap_or(""))?;
        Ok(Target { server, tls: Tls::new(trust, &config)?, layout, patience: config.patience, moment: None })
    }

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

/// What the mode of PostgreSQL's own clients means.
fn secrecy(mode: Option<&str>, has_ca: bool) -> Result<(SslMode, Trust), OpenError> {
    let mode = match mode {
        None if !has_ca => "prefer",
        // Who gives certificates wants them to be looked at.
        None => "verify-full",
        Some("require") if has_ca => "verify-ca",
        Some(mode) => mode,
    };
    Ok(match mode {
        "disable" => (SslMode::Disable, Trust::Anybody),
        "allow" | "prefer" => (SslMode::Prefer, Trust::Anybody),
        "require" => (SslMode::Require, Trust::Anybody),
        "verify-ca" => (SslMode::Require, Trust::Certificate),
        "verify-full" => (SslMode::Require, Trust::CertificateAndName),
        other => {
            let known = "disable, prefer, require, verify-ca or verify-full";
            return Err(OpenError::Url(format!("sslmode is {known}, and not {other:?}")));
        }
    })
}

/// What is not for the address to say, or goes without saying.
fn settle(server: &mut tokio_postgres::Config, ssl_mode: SslMode, patience: Duration) {
    server.ssl_mode(ssl_mode);
    server.tcp_user_timeout(patience);
    server.keepalives_idle(Duration::from_secs(20));
    if server.get_application_name().is_none() {
        server.application_name("punctual");
    }
    // Of several hosts the one is meant that writes, wherever that is after a failover.
    if server.get_hosts().len() > 1 && server.get_target_session_attrs() == TargetSessionAttrs::Any {
        server.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
}

/// The driver's own words may quote the address, and the password with it.
fn unreadable(error: tokio_postgres::Error) -> OpenError {
    let part = std::error::Error::source(&error).map(ToString::to_string).filter(|text| text.len() < 60);
    let part = part.unwrap_or_else(|| "it is not of the form postgres://user:password@host:port/database".to_owned());
    OpenError::Url(format!("the address of the PostgreSQL cannot be read: {part}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        match Target::of(&Config::new(url)) {
            Err(OpenError::Url(text)) => text,
            Err(other) => panic!("{url}: {other:?}"),
            Ok(_) => panic!("{url} was taken"),
        }
    }

    #[test]
    fn an_address_says_where_the_server_is() {
        let place = |url: &str| Target::of(&Config::new(url)).unwrap().place();
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
        for broken in
            ["postgres://me:secret@host:port/tasks", "postgres://me:secret@host/d?nonsense=1", "x://me:secret@h"]
        {
            assert!(!refused(broken).contains("secret"), "{}", refused(broken));
        }
    }
}
