//! Whom encrypted connections trust, and who we are to them, from files.

use punctual_database::{Config, OpenError, content};
use redis::{ClientTlsConfig, TlsCertificates};

pub(crate) fn certificates(config: &Config) -> Result<TlsCertificates, OpenError> {
    // The crate encrypts by whatever the process has chosen: by ring, like all else here, if nobody has.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client_tls = match config.identity() {
        None => None,
        Some((certificate, key)) => {
            Some(ClientTlsConfig { client_cert: content(certificate)?, client_key: content(key)? })
        }
    };
    Ok(TlsCertificates { client_tls, root_cert: config.ca.as_deref().map(content).transpose()? })
}
