//! Whom encrypted connections trust, and who we are to them, from files.

use std::fs;
use std::path::Path;

use redis::{ClientTlsConfig, TlsCertificates};

use crate::config::{Config, OpenError};

pub(crate) fn certificates(config: &Config) -> Result<TlsCertificates, OpenError> {
    // The crate encrypts by whatever the process has chosen: by ring, like all else here, if nobody has.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client_tls = match (&config.certificate, &config.key) {
        (None, None) => None,
        (Some(certificate), Some(key)) => {
            Some(ClientTlsConfig { client_cert: content(certificate)?, client_key: content(key)? })
        }
        _ => return Err(OpenError::Url("a certificate and its key belong together: name both files".to_owned())),
    };
    Ok(TlsCertificates { client_tls, root_cert: config.ca.as_deref().map(content).transpose()? })
}

fn content(path: &Path) -> Result<Vec<u8>, OpenError> {
    fs::read(path).map_err(|error| OpenError::Url(format!("{}: {error}", path.display())))
}
