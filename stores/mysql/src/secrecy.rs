//! How secret the connection is, in the words of MySQL's own clients.

use std::fs;
use std::path::Path;
use std::str::FromStr;

use mysql_async::{ClientIdentity, SslOpts};

use crate::{Config, OpenError};

/// How secret the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Secrecy {
    /// Not at all.
    Disabled,
    /// Encrypted if the server can, with whoever answers.
    Preferred,
    /// Encrypted, with whoever answers.
    Required,
    /// Encrypted, with the host whose name is in the URL.
    VerifyIdentity,
}

impl FromStr for Secrecy {
    type Err = String;

    fn from_str(text: &str) -> Result<Secrecy, String> {
        match text.to_ascii_lowercase().replace('_', "-").as_str() {
            "disabled" => Ok(Secrecy::Disabled),
            "preferred" => Ok(Secrecy::Preferred),
            "required" => Ok(Secrecy::Required),
            "verify-identity" => Ok(Secrecy::VerifyIdentity),
            _ => Err("ssl-mode is disabled, preferred, required or verify-identity".to_owned()),
        }
    }
}

impl Secrecy {
    /// Whether to go on unencrypted with a server that does not speak TLS.
    pub(crate) fn may_be_plain(self) -> bool {
        matches!(self, Secrecy::Disabled | Secrecy::Preferred)
    }

    /// How TLS is spoken, if it is.
    pub(crate) fn tls(self, config: &Config) -> Result<Option<SslOpts>, OpenError> {
        let tls = match self {
            Secrecy::Disabled => return Ok(None),
            Secrecy::Preferred | Secrecy::Required => SslOpts::default().with_danger_accept_invalid_certs(true),
            Secrecy::VerifyIdentity => trusting(config)?,
        };
        match (&config.certificate, &config.key) {
            (Some(certificate), Some(key)) => {
                let identity = ClientIdentity::new(read(certificate)?.into(), read(key)?.into());
                Ok(Some(tls.with_client_identity(Some(identity))))
            }
            (None, None) => Ok(Some(tls)),
            _ => Err(OpenError::Url("a certificate and its key are given together, or neither".to_owned())),
        }
    }
}

/// Believes the given authorities, or else those that browsers believe.
fn trusting(config: &Config) -> Result<SslOpts, OpenError> {
    match &config.ca {
        Some(ca) => Ok(SslOpts::default().with_root_certs(vec![read(ca)?.into()]).with_disable_built_in_roots(true)),
        None => Ok(SslOpts::default()),
    }
}

/// Reads a file now, so that it is missed now and not by each connection.
fn read(path: &Path) -> Result<Vec<u8>, OpenError> {
    fs::read(path).map_err(|error| OpenError::Refused(format!("{} cannot be read: {error}", path.display())))
}
