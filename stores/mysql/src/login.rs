//! Where to go and as whom.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use mysql_async::{Opts, OptsBuilder};
use punctual_database::{Address, Config, Database, OpenError, decoded};

use crate::MysqlStore;
use crate::secrecy::Secrecy;

/// The server closes a connection that rests longer, also one whose client is gone with a transaction open.
pub(crate) const SERVER_WAITS: Duration = Duration::from_secs(60);
/// After this long without a word the system looks whether the other side is still there.
const KEPT_ALIVE: Duration = Duration::from_secs(15);
/// The protocol's own limit; the server's is looked at where texts are put together.
const LONGEST_PACKET: usize = 1 << 30;
const PORT: u16 = 3306;

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

impl Login {
    /// Checks what can be checked without a server. The URL is `mysql://user:password@host:3306/database`, with `?ssl-mode=`
    /// `disabled`, `preferred`, `required` or `verify-identity`, and `socket=` for a unix socket.
    pub(crate) fn of(config: &Config) -> Result<Login, OpenError> {
        config.check(&MysqlStore::KIND)?;
        let url = Url::from_str(&config.url)?;
        let secrecy = match url.secrecy {
            Some(secrecy) => secrecy,
            None if config.ca.is_some() => Secrecy::VerifyIdentity,
            None => Secrecy::Preferred,
        };
        let plain = url.options();
        if let Place::Local(path) = &url.place {
            // Nobody listens in on it, and no server speaks TLS there, also one that does so with everybody else.
            if !secrecy.may_be_plain() {
                return Err(bad(
                    "a unix socket is not encrypted: leave out ssl-mode and certificates, or name the host",
                ));
            }
            return Ok(Login { place: format!("{path}/{}", url.database), secret: None, plain: Some(plain.into()) });
        }
        let tls = secrecy.tls(config)?;
        Ok(Login {
            place: format!("{}/{}", url.place, url.database),
            secret: tls.map(|tls| plain.clone().ssl_opts(tls).into()),
            plain: secrecy.may_be_plain().then(|| plain.into()),
        })
    }
}

/// Where a server is.
#[derive(Clone, PartialEq, Eq)]
enum Place {
    Host(Address),
    Local(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Host(address) => address.fmt(f),
            Place::Local(path) => f.write_str(path),
        }
    }
}

struct Url {
    place: Place,
    user: String,
    password: String,
    database: String,
    secrecy: Option<Secrecy>,
}

impl Url {
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
        match &self.place {
            Place::Host(Address { host, port }) => options.ip_or_hostname(host.clone()).tcp_port(*port),
            Place::Local(path) => options.socket(Some(path.clone())),
        }
    }
}

impl FromStr for Url {
    type Err = OpenError;

    /// What is wrong is said without quoting the URL, in which the password stands.
    fn from_str(url: &str) -> Result<Url, OpenError> {
        let rest = url.strip_prefix("mysql://").or_else(|| url.strip_prefix("mariadb://"));
        let rest = rest.ok_or_else(|| bad("the URL should be like mysql://user:password@host:3306/database"))?;
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (who, host) = place.rsplit_once('@').unwrap_or(("", place));
        let (user, password) = who.split_once(':').unwrap_or((who, ""));
        let mut url = Url {
            place: Place::Host(Address::read(host, PORT)?),
            user: decoded(user)?,
            password: decoded(password)?,
            database: decoded(database)?,
            secrecy: None,
        };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match name {
                "ssl-mode" => url.secrecy = Some(value.parse().map_err(OpenError::Url)?),
                "socket" => url.place = Place::Local(decoded(value)?),
                _ => return Err(bad(&format!("the URL has the option {name:?}; there are ssl-mode and socket"))),
            }
        }
        for (part, what) in [(&url.user, "a user"), (&url.database, "a database")] {
            if part.is_empty() || part.contains('\0') {
                return Err(bad(&format!(
                    "the URL names {what} that is empty: it should be like mysql://user:password@host/database"
                )));
            }
        }
        Ok(url)
    }
}

fn bad(why: &str) -> OpenError {
    OpenError::Url(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Url, OpenError> {
        url.parse()
    }

    #[test]
    fn a_url_says_who_where_and_what() {
        let url = parse("mysql://me:p%40ss%2fword@db.example.com:3307/mine?ssl-mode=VERIFY_IDENTITY").unwrap();
        assert_eq!((url.user.as_str(), url.password.as_str(), url.database.as_str()), ("me", "p@ss/word", "mine"));
        assert_eq!(url.place.to_string(), "db.example.com:3307");
        assert_eq!(url.secrecy, Some(Secrecy::VerifyIdentity));
        assert_eq!(parse("mariadb://me@[::1]/mine").unwrap().place.to_string(), "[::1]:3306");
        assert_eq!(parse("mysql://me@/mine").unwrap().place.to_string(), "localhost:3306");
        let local = parse("mysql://me@localhost/mine?socket=%2Frun%2Fmysqld.sock").unwrap();
        assert_eq!(local.place.to_string(), "/run/mysqld.sock");
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
            let why = parse(url).err().unwrap().to_string();
            assert!(!why.contains("secret"), "{why}");
        }
    }
}
