//! TLS for the driver: whom to trust, by the modes that PostgreSQL's own clients know.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::{BoxFuture, FutureExt};
use punctual_database::{Config, OpenError};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

/// Whose word is taken for being the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Who answers: nobody who only listens can read along, but who is in between can.
    Anybody,
    /// Who has a certificate from a trusted authority, whatever its name.
    Certificate,
    /// Who has a certificate from a trusted authority for the name in the address.
    CertificateAndName,
}

/// Makes TLS out of a connection.
#[derive(Clone)]
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    pub(crate) fn new(trust: Trust, config: &Config) -> Result<Tls, OpenError> {
        let provider = Arc::new(ring::default_provider());
        let ca = config.ca.as_deref();
        let verifier: Arc<dyn ServerCertVerifier> = match trust {
            Trust::Anybody => Arc::new(Gullible { provider: Arc::clone(&provider) }),
            Trust::Certificate => Arc::new(Nameless { verifier: verifier(ca, &provider)? }),
            Trust::CertificateAndName => verifier(ca, &provider)?,
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| OpenError::Refused(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match config.identity() {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate)?;
                let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, &error))?;
                builder.with_client_auth_cert(chain, secret).map_err(|error| unreadable(key, &error))?
            }
        };
        Ok(Tls { config: Arc::new(config) })
    }
}

fn verifier(ca: Option<&Path>, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, OpenError> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| unreadable(path, &error))?;
            }
        }
        None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| OpenError::Url(format!("there is no certificate to trust the server by: {error}")))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, OpenError> {
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    all.map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &dyn std::error::Error) -> OpenError {
    OpenError::Url(format!("{} cannot be used: {error}", path.display()))
}

/// Believes everybody. That they have the key of what they show is still looked at.
#[derive(Debug)]
struct Gullible {
    provider: Arc<CryptoProvider>,
}

/// Believes who has a certificate, for whatever name.
#[derive(Debug)]
struct Nameless {
    verifier: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for Gullible {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl ServerCertVerifier for Nameless {
    fn verify_server_cert(
        &self,
        cert: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.verifier.verify_server_cert(cert, chain, name, stapled, now) {
            // The name is what is looked at last.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Handshake, Self::Error> {
        let name = ServerName::try_from(domain.to_owned())?;
        Ok(Handshake { connector: TlsConnector::from(Arc::clone(&self.config)), name })
    }
}

/// A handshake to come, with the server of a name.
pub(crate) struct Handshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Encrypted>>;

    fn connect(self, socket: Socket) -> Self::Future {
        async move { Ok(Encrypted(self.connector.connect(self.name, socket).await?)) }.boxed()
    }
}

/// A connection under TLS. It binds no password exchange to itself: the driver's `channel_binding=require` does not work.
pub(crate) struct Encrypted(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
