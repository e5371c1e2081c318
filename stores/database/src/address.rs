//! Where a server is, as URLs say it. No message quotes a URL: it may hold a password.

use std::fmt;

use percent_encoding::percent_decode_str;

use crate::OpenError;

/// A server's host and port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// A name or a number; of IPv6 without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Address {
    /// Reads `host`, `host:port` or `[host]:port`. Nothing is this machine.
    pub fn read(text: &str, usual: u16) -> Result<Address, OpenError> {
        let (host, port) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
            Some((host, rest)) => (host, rest.strip_prefix(':')),
            None => text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
        };
        let port = port.map_or(Ok(usual), |port| port.parse().map_err(|_| OpenError::Url(NO_PORT.to_owned())))?;
        Ok(Address { host: if host.is_empty() { "localhost" } else { host }.to_owned(), port })
    }
}

const NO_PORT: &str = "what stands behind the host in the URL is not a port";

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Address { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// A part of a URL without its escapes.
pub fn decoded(text: &str) -> Result<String, OpenError> {
    let decoded = percent_decode_str(text).decode_utf8();
    Ok(decoded.map_err(|_| OpenError::Url("an escaped part of the URL is not UTF-8".to_owned()))?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_shown() {
        let shown = |text: &str| Address::read(text, 9).map(|address| address.to_string());
        assert_eq!(shown("db.example:7000"), Ok("db.example:7000".to_owned()));
        assert_eq!(shown("[::1]:7"), Ok("[::1]:7".to_owned()));
        assert_eq!(shown("[::1]"), Ok("[::1]:9".to_owned()));
        assert_eq!(shown(""), Ok("localhost:9".to_owned()));
        assert_eq!(shown("db:secret"), Err(OpenError::Url(NO_PORT.to_owned())));
    }
}
