//! Encryption of links: both ends show a certificate, and both ask for one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use punctual_link::Tls;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::config::LinksPart;
use crate::failure::Failure;

/// How links are encrypted, if files are named for it. All three are, or none.
pub fn from(links: &LinksPart) -> Result<Option<Tls>, Failure> {
    let (Some(certificate), Some(key), Some(ca)) = (&links.certificate, &links.key, &links.ca) else { return Ok(None) };
    let (chain, roots) = (certificates("certificate", certificate)?, roots(ca)?);
    let secret = || PrivateKeyDer::from_pem_file(key).map_err(|error| unusable("key", key, error));
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
    let verifier = verifier.build().map_err(|error| unusable("ca", ca, error))?;

    let answering = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let answering = answering.with_safe_default_protocol_versions().map_err(Failure::failed)?;
    let answering = answering.with_client_cert_verifier(verifier).with_single_cert(chain.clone(), secret()?);
    let dialling = ClientConfig::builder_with_provider(provider);
    let dialling = dialling.with_safe_default_protocol_versions().map_err(Failure::failed)?;
    let dialling = dialling.with_root_certificates(roots).with_client_auth_cert(chain, secret()?);
    Ok(Some(Tls {
        answering: Arc::new(answering.map_err(|error| unusable("key", key, error))?),
        dialling: Arc::new(dialling.map_err(|error| unusable("key", key, error))?),
    }))
}

fn certificates(setting: &str, file: &PathBuf) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let found = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match found {
        Ok(chain) if chain.is_empty() => Err(unusable(setting, file, "it has no certificate in PEM form")),
        found => found.map_err(|error| unusable(setting, file, error)),
    }
}

fn roots(ca: &PathBuf) -> Result<Arc<RootCertStore>, Failure> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("ca", ca)? {
        roots.add(certificate).map_err(|error| unusable("ca", ca, error))?;
    }
    Ok(Arc::new(roots))
}

fn unusable(setting: &str, file: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("`links.{setting}`: {} cannot be used: {why}", file.display()))
}
