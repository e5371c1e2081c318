//! Which server to use, and how.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use mysql_async::{Opts, OptsBuilder};

use crate::OpenError;
use crate::secrecy::Secrecy;

/// The server closes a connection that rests longer, also one whose client is gone with a transaction open.
pub(crate) const SERVER_WAITS: Duration = Duration::from_secs(60);
/// After this long without a word the system looks whether the other side is still there.
const KEPT_ALIVE: Duration = Duration::from_secs(15);
/// The protocol's own limit; the server's is looked at where texts are put together.
const LONGEST_PACKET: usize = 1 << 30;

/// Which server to use, and how.
///
/// ```
/// let config = punctual_mysql::Config::new("mysql://punctual:secret@db.example.com/punctual");
/// assert!(!format!("{config:?}").contains("secret"));
/// ```
#[derive(Clone)]
pub struct Config {
    /// `mysql://user:password@host:3306/database`, with `?ssl-mode=` `disabled`, `preferred`, `required` or
    /// `verify-identity`, and `socket=` for a unix socket. Special characters are percent-encoded.
    pub url: String,
    /// At most so many connections, beside one for what keeps the node's shards.
    pub connections: usize,
    /// How long a call may take before it fails.
    pub patience: Duration,
    /// Certificates of authorities to trust, as PEM, instead of those of the system.
    pub ca: Option<PathBuf>,
    /// A certificate to show to the server, as PEM.
    pub certificate: Option<PathBuf>,
    /// The key of that certificate.
    pub key: Option<PathBuf>,
    /// What the names of all tables begin with: lower-case letters, digits and `_`.
    pub prefix: String,
}

impl Config {
    /// What most want: 16 connections, 5 seconds of patience, and tables whose names begin with `punctual_`.
    pub fn new(url: impl Into<String>) -> Config {
        Config {
            url: url.into(),
            connections: 16,
            patience: Duration::from_secs(5),
            ca: None,
            certificate: None,
            key: None,
            prefix: "punctual_".to_owned(),
        }
    }

    /// Checks what can be checked without a server.
    pub(crate) fn login(&self) -> Result<Login, OpenError> {
        let longest = 32;
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if self.prefix.len() > longest || !self.prefix.bytes().all(is_plain) {
            let what = "the prefix of the tables can have lower-case letters, digits and _, and at most";
            return Err(OpenError::Url(format!("{what} {longest} of them, not {:?}", self.prefix)));
        }
        let url = Url::from_str(&self.url).map_err(OpenError::Url)?;
        let secrecy = match url.secrecy {
            Some(secrecy) => secrecy,
            None if self.ca.is_some() => Secrecy::VerifyIdentity,
            None => Secrecy::Preferred,
        };
        let tls = secrecy.tls(self)?;
        let plain = url.options();
        Ok(Login {
            place: format!("{}/{}", url.address, url.database),
            secret: tls.map(|tls| plain.clone().ssl_opts(tls).into()),
            plain: secrecy.may_be_plain().then(|| plain.into()),
        })
    }
}

/// Where to go and as whom.
#[derive(Clone)]
pub(crate) struct Login {
    /// For people: without user and password.
    pub(crate) place: String,
    /// How to connect with TLS, if that is wanted.
    pub(crate) secret: Option<Opts>,
    /// How to connect without it, if that may be.
    pub(crate) plain: Option<Opts>,
}

/// Where a server is.
#[derive(Clone, PartialEq, Eq)]
enum Address {
    Host(String, u16),
    Local(String),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Host(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Host(host, port) => write!(f, "{host}:{port}"),
            Address::Local(path) => f.write_str(path),
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = Url::from_str(&self.url).map_or_else(|_| "unreadable".to_owned(), |url| url.without_password());
        f.debug_struct("Config").field("url", &url).field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

struct Url {
    address: Address,
    user: String,
    password: String,
    database: String,
    secrecy: Option<Secrecy>,
}

impl Url {
    fn without_password(&self) -> String {
        format!("mysql://{}@{}/{}", self.user, self.address, self.database)
    }

    fn options(&self) -> OptsBuilder {
        let options = OptsBuilder::default()
            .user(Some(self.user.clone()))
            .pass((!self.password.is_empty()).then(|| self.password.clone()))
            .db_name(Some(self.database.clone()))
            // A server on this machine is not sought elsewhere than where it was said to be.
            .prefer_socket(false)
            .stmt_cache_size(0)
            .tcp_keepalive(Some(KEPT_ALIVE))
            // Both are known here, and need not be asked for with each connection.
            .max_allowed_packet(Some(LONGEST_PACKET))
            .wait_timeout(Some(SERVER_WAITS.as_secs() as usize));
        match &self.address {
            Address::Host(host, port) => options.ip_or_hostname(host.clone()).tcp_port(*port),
            Address::Local(path) => options.socket(Some(path.clone())),
        }
    }
}

impl FromStr for Url {
    type Err = String;

    /// What is wrong is said without quoting the URL, in which the password stands.
    fn from_str(url: &str) -> Result<Url, String> {
        let rest = url.strip_prefix("mysql://").or_else(|| url.strip_prefix("mariadb://"));
        let rest = rest.ok_or("the URL should be like mysql://user:password@host:3306/database")?;
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (who, host) = place.rsplit_once('@').unwrap_or(("", place));
        let (user, password) = who.split_once(':').unwrap_or((who, ""));
        let mut url = Url {
            address: address(host)?,
            user: decoded("user", user)?,
            password: decoded("password", password)?,
            database: decoded("database", database)?,
            secrecy: None,
        };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match name {
                "ssl-mode" => url.secrecy = Some(value.parse()?),
                "socket" => url.address = Address::Local(decoded("socket", value)?),
                _ => return Err(format!("the URL has the option {name:?}; there are ssl-mode and socket")),
            }
        }
        for (part, what) in [(&url.user, "a user"), (&url.database, "a database")] {
            if part.is_empty() || part.contains('\0') {
                return Err(format!(
                    "the URL names {what} that is empty: it should be like mysql://user:password@host/database"
                ));
            }
        }
        Ok(url)
    }
}

fn address(host: &str) -> Result<Address, String> {
    let (host, port) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => host.split_once(':').map_or((host, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Ok(3306), |port| port.parse().map_err(|_| format!("{port:?} in the URL is not a port")))?;
    Ok(Address::Host(if host.is_empty() { "localhost".to_owned() } else { host.to_owned() }, port))
}

fn decoded(what: &str, text: &str) -> Result<String, String> {
    let text = percent_decode_str(text).decode_utf8().map_err(|_| format!("the {what} in the URL is not UTF-8"))?;
    Ok(text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Url, String> {
        url.parse()
    }

    #[test]
    fn a_url_says_who_where_and_what() {
        let url = parse("mysql://me:p%40ss%2fword@db.example.com:3307/mine?ssl-mode=VERIFY_IDENTITY").unwrap();
        assert_eq!((url.user.as_str(), url.password.as_str(), url.database.as_str()), ("me", "p@ss/word", "mine"));
        assert_eq!(url.address.to_string(), "db.example.com:3307");
        assert_eq!(url.secrecy, Some(Secrecy::VerifyIdentity));
        assert_eq!(parse("mariadb://me@[::1]/mine").unwrap().address.to_string(), "[::1]:3306");
        assert_eq!(parse("mysql://me@/mine").unwrap().address.to_string(), "localhost:3306");
        let local = parse("mysql://me@localhost/mine?socket=%2Frun%2Fmysqld.sock").unwrap();
        assert_eq!(local.address.to_string(), "/run/mysqld.sock");
    }

    #[test]
    fn what_is_wrong_with_a_url_is_said_without_the_password() {
        for url in [
            "postgres://me:secret@host/mine",
            "mysql://me:secret@host:many/mine",
            "mysql://me:secret@host",
            "mysql://:secret@host/mine",
            "mysql://me:secret@host/mine?ssl-mode=maybe",
            "mysql://me:secret@host/mine?compress=1",
            "mysql://me:secret%ff@host/mine",
        ] {
            let why = parse(url).err().unwrap();
            assert!(!why.contains("secret"), "{why}");
            assert!(!format!("{:?}", Config::new(url)).contains("secret"));
        }
    }

    #[test]
    fn a_prefix_is_part_of_a_plain_name() {
        let login = |prefix: &str| Config { prefix: prefix.to_owned(), ..Config::new("mysql://me@host/mine") }.login();
        assert!(login("").is_ok() && login("a_1").is_ok());
        for prefix in ["A", "a-b", "a`b", "ä", &"a".repeat(33)] {
            assert!(matches!(login(prefix), Err(OpenError::Url(_))), "{prefix}");
        }
    }
}
