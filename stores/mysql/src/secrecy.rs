//! How secret the connection is, in the words of MySQL's own clients.

use std::str::FromStr;

use mysql_async::{ClientIdentity, SslOpts};
use punctual_database::{Config, OpenError, content};

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
        let identity = match config.identity() {
            Some((certificate, key)) => Some(ClientIdentity::new(content(certificate)?.into(), content(key)?.into())),
            None => None,
        };
        Ok(Some(tls.with_client_identity(identity)))
    }
}

/// Believes the given authorities, or else those that browsers believe.
fn trusting(config: &Config) -> Result<SslOpts, OpenError> {
    match &config.ca {
        Some(ca) => Ok(SslOpts::default().with_root_certs(vec![content(ca)?.into()]).with_disable_built_in_roots(true)),
        None => Ok(SslOpts::default()),
    }
}
