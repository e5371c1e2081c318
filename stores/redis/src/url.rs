//! From a URL to where Redis is. No message quotes the URL: it may hold a password.
//!
//! ```text
//! redis://[user[:password]@]host[:port][/database]            one server
//! redis+sentinel://[…@]host[:port],…/master[/database]        the master that these sentinels name
//! redis+cluster://[…@]host[:port],…                           a cluster of which these servers are some
//! ```
//! With `rediss` instead of `redis` connections are encrypted. In the query may stand `wait_ms`, `sentinel_username` and
//! `sentinel_password`.

use std::time::Duration;

use punctual_database::{Address, OpenError, decoded};

use crate::target::{Secret, Target, Topology, User};

const REDIS: u16 = 6_379;
const SENTINEL: u16 = 26_379;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Single,
    Sentinel,
    Cluster,
}

pub(crate) fn parse(url: &str) -> Result<Target, OpenError> {
    let (scheme, rest) = url.split_once("://").ok_or_else(|| bad("it is no URL: there is no ://"))?;
    let (scheme, is_secure) = match scheme {
        "redis" | "valkey" => (Scheme::Single, false),
        "rediss" | "valkeys" => (Scheme::Single, true),
        "redis+sentinel" => (Scheme::Sentinel, false),
        "rediss+sentinel" => (Scheme::Sentinel, true),
        "redis+cluster" => (Scheme::Cluster, false),
        "rediss+cluster" => (Scheme::Cluster, true),
        _ => {
            return Err(bad(
                "the URL has to begin with redis://, redis+sentinel:// or redis+cluster://, or rediss for TLS",
            ));
        }
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    // A password may hold an @ that nobody has escaped; a host cannot.
    let (who, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));

    let port = if scheme == Scheme::Sentinel { SENTINEL } else { REDIS };
    let servers = hosts.split(',').map(|host| Address::read(host, port)).collect::<Result<Vec<_>, _>>()?;
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let topology = match scheme {
        Scheme::Single => Topology::Single,
        Scheme::Cluster => Topology::Cluster,
        Scheme::Sentinel => Topology::Sentinel(decoded(
            parts.next().ok_or_else(|| bad("the name of the master is missing: redis+sentinel://host/NAME"))?,
        )?),
    };
    if scheme == Scheme::Single && servers.len() > 1 {
        return Err(bad("several servers are redis+sentinel:// or redis+cluster://"));
    }
    let database = parts.next().map_or(Ok(0), |database| number(database, "the database"))?;
    if parts.next().is_some() {
        return Err(bad("there is something after the number of the database"));
    }
    if topology == Topology::Cluster && database != 0 {
        return Err(bad("a Redis Cluster has only database 0"));
    }
    let (user, sentinel_user, wait) = (credentials(who)?, User::default(), Duration::from_secs(1));
    let mut target = Target { servers, topology, is_secure, user, sentinel_user, database, wait };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        set(&mut target, name, decoded(value)?)?;
    }
    Ok(target)
}

fn set(target: &mut Target, name: &str, value: String) -> Result<(), OpenError> {
    match name {
        "wait_ms" => target.wait = Duration::from_millis(number(&value, name)?),
        "sentinel_username" => target.sentinel_user.name = Some(value),
        "sentinel_password" => target.sentinel_user.password = Some(Secret(value)),
        // The name is not quoted: what comes after a ? in a password would end up here.
        _ => {
            return Err(bad("in the query of the URL there can be wait_ms, sentinel_username and sentinel_password; \
                            a ? in a password is written %3F"));
        }
    }
    Ok(())
}

/// `user:password`, `:password` or `user`.
fn credentials(who: &str) -> Result<User, OpenError> {
    let (name, password) = who.split_once(':').map_or((who, None), |(name, password)| (name, Some(password)));
    let given = |text: &str| Ok(Some(decoded(text)?).filter(|text| !text.is_empty()));
    Ok(User { name: given(name)?, password: password.map_or(Ok(None), given)?.map(Secret) })
}

fn number<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, OpenError> {
    text.parse().map_err(|_| OpenError::Url(format!("{what} has to be a number in its range")))
}

fn bad(why: &str) -> OpenError {
    OpenError::Url(why.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

    use super::*;

    fn at(host: &str, port: u16) -> Address {
        Address { host: host.to_owned(), port }
    }

    fn user(name: Option<&str>, password: &str) -> User {
        User { name: name.map(str::to_owned), password: Some(Secret(password.to_owned())) }
    }

    #[test]
    fn each_form_of_url_is_read() {
        let one = parse("rediss://ann:p%40s@s@db.example:7000/3?wait_ms=20").unwrap();
        assert_eq!((one.servers, one.topology, one.database), (vec![at("db.example", 7000)], Topology::Single, 3));
        assert_eq!((one.user, one.is_secure, one.wait), (user(Some("ann"), "p@s@s"), true, Duration::from_millis(20)));

        let sentinel = parse("redis+sentinel://:secret@a,b:27000,[::1]/main/2?sentinel_password=x").unwrap();
        assert_eq!(sentinel.servers, [at("a", SENTINEL), at("b", 27000), at("::1", SENTINEL)]);
        assert_eq!((sentinel.topology, sentinel.database), (Topology::Sentinel("main".to_owned()), 2));
        assert_eq!((sentinel.user, sentinel.sentinel_user), (user(None, "secret"), user(None, "x")));

        let cluster = parse("redis+cluster://a:1,b:2").unwrap();
        assert_eq!((cluster.servers, cluster.topology), (vec![at("a", 1), at("b", 2)], Topology::Cluster));
        assert_eq!(parse("redis://localhost").unwrap().servers, [at("localhost", REDIS)]);
    }

    #[test]
    fn what_cannot_be_is_refused_without_a_word_of_the_password() {
        let urls = [
            "redis:secret",
            "http://:secret@a",
            "redis://:secret@a,b",
            "redis://:secret@a/x",
            "redis://:secret@a:port",
            "redis://:secret@a/0/1",
            "redis://a?secret",
            "redis+sentinel://:secret@a",
            "redis+cluster://:secret@a/1",
        ];
        for url in urls {
            let why = parse(url).unwrap_err().to_string();
            assert!(!why.contains("secret"), "{url}: {why}");
        }
    }

    #[test]
    fn nothing_shows_a_password() {
        let target = parse("redis+sentinel://ann:secret@a/main?sentinel_password=secret").unwrap();
        assert_eq!(target.to_string(), "redis+sentinel://a:26379/main/0");
        assert!(!format!("{target:?}").contains("secret"), "{target:?}");
    }
}
