//! Encryption of connections: certificate and key from PEM files, read again on request.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::config::Config;
use crate::failure::Failure;

/// The certificate that new connections are shown. It can be replaced while doors are open.
#[derive(Debug)]
pub struct Certificate {
    certificate: PathBuf,
    key: PathBuf,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificate {
    /// Reads what the configuration names, if it names something.
    pub fn from(config: &Config) -> Result<Option<Arc<Certificate>>, Failure> {
        let (Some(certificate), Some(key)) = (&config.tls.certificate, &config.tls.key) else { return Ok(None) };
        let current = read(certificate, key).map_err(Failure::Usage)?;
        let (certificate, key) = (certificate.clone(), key.clone());
        Ok(Some(Arc::new(Certificate { certificate, key, current: RwLock::new(Arc::new(current)) })))
    }

    /// Reads the files again. If they are no good, the present certificate stays.
    pub fn reload(&self) -> Result<(), String> {
        let renewed = Arc::new(read(&self.certificate, &self.key)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = renewed;
        Ok(())
    }

    /// How a door speaks TLS with it; the protocols are those that it speaks inside.
    pub fn server_config(self: &Arc<Certificate>, protocols: &[&str]) -> Result<Arc<ServerConfig>, Failure> {
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(Failure::failed)?;
        let mut config =
            builder.with_no_client_auth().with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn read(certificate: &Path, key: &Path) -> Result<CertifiedKey, String> {
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| unreadable("tls.certificate", certificate, &error, "CERTIFICATE"))?;
    if chain.is_empty() {
        return Err(unreadable("tls.certificate", certificate, &pem::Error::NoItemsFound, "CERTIFICATE"));
    }
    let secret = PrivateKeyDer::from_pem_file(key);
    let secret = secret.map_err(|error| unreadable("tls.key", key, &error, "PRIVATE KEY"))?;
    CertifiedKey::from_der(chain, secret, &ring::default_provider()).map_err(|error| {
        let (certificate, key) = (certificate.display(), key.display());
        let fix = "give the key that the certificate was made with";
        format!("`tls.key`: {key} does not match the certificate in {certificate} ({error}): {fix}")
    })
}

fn unreadable(setting: &str, file: &Path, error: &pem::Error, label: &str) -> String {
    let file = file.display();
    match error {
        pem::Error::Io(error) => {
            format!("`{setting}`: {file} cannot be read: {error}; give a file that this user can read")
        }
        pem::Error::NoItemsFound => {
            format!(
                "`{setting}`: {file} has no section that begins with -----BEGIN {label}-----: give a PEM file that has one"
            )
        }
        error => format!("`{setting}`: {file} is not valid PEM: {error}; give a PEM file"),
    }
}
