//! Which servers are trusted: those that an authority vouches for, and those whose own certificate was given.
//!
//! `openssl req -x509` makes a certificate that says that it is an authority, and a server that shows such a one as its
//! own is refused by the rules of the web. Whoever hands over that very certificate to trust means this server, so
//! it is let pass, if it is in force and bears the server's name.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::error::Error as ClientError;

/// The certificates to trust: those of the machine and the given ones. Without TLS none are read.
pub(crate) fn config(secure: bool, certificates: &[Vec<u8>]) -> Result<ClientConfig, ClientError> {
    let bad = |reason: String| ClientError::BadCertificate { reason };
    let mut roots = RootCertStore::empty();
    let mut given = Vec::new();
    if secure {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        for pem in certificates {
            let before = roots.len();
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|error| bad(format!("the PEM cannot be read: {error}")))?;
                roots.add(certificate.clone()).map_err(|error| bad(error.to_string()))?;
                given.push(certificate);
            }
            if roots.len() == before {
                return Err(bad("the PEM contains no certificate".into()));
            }
        }
        if roots.is_empty() {
            return Err(bad("this machine trusts none; give that of the server's authority".into()));
        }
    }
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| bad(error.to_string()))?;
    if given.is_empty() {
        return Ok(config.with_root_certificates(roots).with_no_client_auth());
    }
    let verifier = Trust::new(roots, given).map_err(|error| bad(error.to_string()))?;
    Ok(config.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// Trusts authorities, and certificates that were given.
#[derive(Debug)]
pub(crate) struct Trust {
    authorities: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl Trust {
    pub fn new(
        roots: RootCertStore,
        given: Vec<CertificateDer<'static>>,
    ) -> Result<Trust, rustls::client::VerifierBuilderError> {
        let provider = Arc::new(ring::default_provider());
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
        Ok(Trust { authorities, given })
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.authorities.verify_server_cert(shown, between, name, stapled, now) {
            // This is found out after the certificate's time, so only the name is left to be looked at.
            Err(error) if is_authority_as_server(&error) && self.given.iter().any(|given| given == shown) => {
                verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

fn is_authority_as_server(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    matches!(other.0.downcast_ref::<webpki::Error>(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// Why the certificate of a server was refused and what to do, if that is what lies beneath an error.
pub(crate) fn refusal(error: &(dyn StdError + 'static)) -> Option<String> {
    let tls = beneath(error)?;
    let Error::InvalidCertificate(why) = tls else { return None };
    Some(match why {
        _ if is_authority_as_server(tls) => {
            "is self-signed; trust this certificate itself, or use one signed by an authority".into()
        }
        CertificateError::UnknownIssuer => {
            "is not signed by any authority this machine trusts; trust the certificate of \
            its authority, or the certificate itself if it is self-signed"
                .into()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => format!(
            "is for another name ({why}); use a name that is in it, or create one with this name as a subject alternative \
            name (the common name is ignored)"
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => format!("has expired ({why}); renew it"),
        why => format!("cannot be used ({why})"),
    })
}

/// Whether an error came of speaking TLS to somebody who does not.
pub(crate) fn is_answer_in_plain(error: &(dyn StdError + 'static)) -> bool {
    matches!(beneath(error), Some(Error::InvalidMessage(_)))
}

/// What TLS says, if that is what lies beneath an error.
fn beneath<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Error> {
    if let Some(tls) = error.downcast_ref::<Error>() {
        return Some(tls);
    }
    // What an I/O error wraps is not its source: that is the source of what it wraps.
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    match wrapped {
        Some(wrapped) => beneath(wrapped),
        None => error.source().and_then(beneath),
    }
}
