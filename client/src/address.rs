//! Where the server is, and how names become parts of its paths.

use std::fmt;
use std::path::PathBuf;

use http::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use crate::error::Error;

/// Everything that has a meaning in a path or could get one on the way; `/` above all, which names may hold.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What requests over a unix socket are addressed to.
const LOCAL: &str = "http://localhost";

/// The address of a server, without a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    text: String,
    secure: bool,
    /// The socket by which it is reached, if that is a file.
    unix: Option<PathBuf>,
}

impl Address {
    pub fn parse(url: &str) -> Result<Address, Error> {
        let bad = |reason: &str| Error::BadUrl { url: url.into(), reason: reason.into() };
        if let Some(path) = url.trim().strip_prefix("unix:") {
            if path.is_empty() {
                return Err(bad("it has no path: write unix:PATH"));
            }
            return Ok(Address { text: LOCAL.into(), secure: false, unix: Some(path.into()) });
        }
        let uri: Uri = url.trim().parse().map_err(|error: http::uri::InvalidUri| bad(&error.to_string()))?;
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) => return Err(bad("its scheme is neither http, https nor unix")),
            None => return Err(bad("it has no scheme")),
        };
        let Some(authority) = uri.authority() else { return Err(bad("it has no host")) };
        if authority.as_str().contains('@') {
            return Err(bad("it contains a user or password: use a token instead"));
        }
        if uri.query().is_some() {
            return Err(bad("it has a query"));
        }
        let scheme = if secure { "https" } else { "http" };
        Ok(Address { text: format!("{scheme}://{authority}{}", uri.path().trim_end_matches('/')), secure, unix: None })
    }

    /// Whether it is spoken to under TLS.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// The socket by which it is reached, if that is a file.
    pub fn unix(&self) -> Option<&std::path::Path> {
        self.unix.as_deref()
    }

    /// The full address of a path.
    pub fn join(&self, path: &Path) -> Result<Uri, Error> {
        // Whoever passes the request on would take it for a step to another place, and so do something else.
        if let Some(step) = path.parts().find(|part| matches!(*part, "." | "..")) {
            return Err(Error::BadUse { reason: format!("{step:?} cannot be a name") });
        }
        let full = format!("{}{}", self.text, path.0);
        full.parse().map_err(|error: http::uri::InvalidUri| Error::BadUrl { url: full, reason: error.to_string() })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.unix {
            Some(socket) => write!(f, "unix:{}", socket.display()),
            None => f.write_str(&self.text),
        }
    }
}

/// A path of the interface, with its query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path(String);

impl Path {
    pub fn new(fixed: &str) -> Path {
        Path(format!("/v1/{fixed}"))
    }

    /// A path of the server itself, beside the interface.
    pub fn of_server(fixed: &str) -> Path {
        Path(format!("/{fixed}"))
    }

    /// One part more, which may hold anything.
    pub fn name(mut self, name: &str) -> Path {
        self.0.push('/');
        self.0.extend(utf8_percent_encode(name, RESERVED));
        self
    }

    /// One part more, as it is.
    pub fn verb(mut self, verb: &str) -> Path {
        self.0.push('/');
        self.0.push_str(verb);
        self
    }

    fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.split('?').next().unwrap_or_default().split('/')
    }

    /// The query, if there is anything in it.
    pub fn query(mut self, query: &impl Serialize) -> Result<Path, Error> {
        let query = serde_urlencoded::to_string(query).map_err(|error| Error::BadUse { reason: error.to_string() })?;
        if !query.is_empty() {
            self.0.push('?');
            self.0.push_str(&query);
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use punctual_wire::{List, ListState, Time};

    use super::*;

    #[test]
    fn names_with_slashes_stay_one_part_of_the_path() {
        let path = Path::new("tasks").name("a/b").name("c?d#e%2F é").verb("replay");
        assert_eq!(path.0, "/v1/tasks/a%2Fb/c%3Fd%23e%252F%20%C3%A9/replay");
    }

    #[test]
    fn a_query_holds_what_is_set() {
        let list = List {
            topic: Some("a&b=c".into()),
            state: Some(ListState::Ready),
            from: Some(Time(1_500)),
            bodies: Some(true),
            ..List::default()
        };
        let path = Path::new("tasks").query(&list).unwrap();
        assert_eq!(path.0, "/v1/tasks?topic=a%26b%3Dc&state=ready&from=1970-01-01T00%3A00%3A01.500Z&bodies=true");
        assert_eq!(Path::new("tasks").query(&List::default()).unwrap().0, "/v1/tasks");
    }

    #[test]
    fn a_name_that_would_lead_elsewhere_is_not_sent() {
        let address = Address::parse("http://localhost:7400").unwrap();
        for path in [Path::new("tasks").name("..").name("dead").verb("purge"), Path::new("topics").name(".")] {
            assert!(matches!(address.join(&path), Err(Error::BadUse { .. })), "{path:?}");
        }
        let list = List { topic: Some("..".into()), ..List::default() };
        assert!(address.join(&Path::new("tasks").name("...").query(&list).unwrap()).is_ok());
    }

    #[test]
    fn an_address_may_have_a_path_of_its_own() {
        let address = Address::parse("https://example.com:8443/delays/").unwrap();
        assert!(address.is_secure());
        let full = address.join(&Path::new("stats")).unwrap();
        assert_eq!(full.to_string(), "https://example.com:8443/delays/v1/stats");
        assert_eq!(Address::parse("http://[::1]:7400").unwrap().to_string(), "http://[::1]:7400");
    }

    #[test]
    fn a_unix_socket_is_an_address_too() {
        let address = Address::parse("unix:/run/punctual.sock").unwrap();
        assert_eq!(address.unix(), Some(std::path::Path::new("/run/punctual.sock")));
        assert_eq!(address.to_string(), "unix:/run/punctual.sock");
        assert_eq!(address.join(&Path::new("stats")).unwrap().to_string(), "http://localhost/v1/stats");
    }

    #[test]
    fn what_is_no_address_of_a_server_is_refused() {
        for bad in [
            "",
            "unix:",
            "localhost:7400",
            "/tmp",
            "ftp://host",
            "http://user:secret@host",
            "http://host/?a=b",
            "ht tp://",
        ] {
            assert!(matches!(Address::parse(bad), Err(Error::BadUrl { .. })), "{bad}");
        }
    }
}
