//! One request and its answer: connections, time limits, and which failures are tried again.
//!
//! What was never sent, and what the server says it has not begun, is always safe to try again. What may have been
//! carried out is tried again only if the caller says that doing it twice is the same as doing it once.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use punctual_wire::{Problem, Span};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::Instant;

use crate::address::{Address, Path};
use crate::backoff::Waits;
use crate::error::Error;
use crate::pool::Pool;
use crate::trust::{self, Trust};

/// The wait before the first repetition, and the longest one.
const WAITS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// The way to one server, with its pool of connections.
#[derive(Debug)]
pub(crate) struct Transport {
    address: Address,
    token: Option<HeaderValue>,
    timeout: Duration,
    retries: u32,
    pool: Pool,
}

/// Whether a request may be sent again after it may have been carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Yes: twice is the same as once.
    Safe,
    /// Only if it was surely not carried out: it was not sent, or the server says that nothing was done.
    Undone,
    /// No: the caller sees to that.
    Never,
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub method: Method,
    pub path: Path,
    pub body: Bytes,
    pub repeat: Repeat,
    /// How long the server may take on purpose.
    pub wait: Duration,
}

/// An answer that says that the request was carried out.
#[derive(Debug)]
pub(crate) struct Answered {
    pub status: StatusCode,
    pub bytes: Bytes,
    /// Whether an attempt before this one may have been carried out, so that this answer may be about a repetition.
    pub lost_before: bool,
}

impl Transport {
    pub fn new(
        address: Address,
        token: Option<&str>,
        certificates: &[Vec<u8>],
        timeout: Duration,
        retries: u32,
    ) -> Result<Transport, Error> {
        let token = match token {
            Some(token) => {
                let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| Error::BadToken)?;
                value.set_sensitive(true);
                Some(value)
            }
            None => None,
        };
        let pool = match address.unix() {
            Some(socket) => Pool::unix(socket),
            None => Pool::net(trust(address.is_secure(), certificates)?, timeout),
        };
        Ok(Transport { address, token, timeout, retries, pool })
    }

    /// How often a request is repeated.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// The waits between repetitions.
    pub fn waits(&self) -> Waits {
        Waits::new(WAITS.0, WAITS.1)
    }

    /// Sends a request, again if it failed and that is safe, until the time is over.
    pub async fn call(&self, call: Call) -> Result<Answered, Error> {
        let after = self.timeout.saturating_add(call.wait);
        let deadline = Instant::now() + after;
        let mut waits = self.waits();
        let mut left = self.retries;
        let mut lost_before = false;
        loop {
            let error = match tokio::time::timeout_at(deadline, self.once(&call)).await {
                Ok(Ok((status, bytes))) => return Ok(Answered { status, bytes, lost_before }),
                Ok(Err(error)) => error,
                Err(_) => return Err(Error::Timeout { after }),
            };
            let again = match call.repeat {
                Repeat::Safe => error.is_retryable(),
                Repeat::Undone => error.is_retryable() && !error.may_have_happened(),
                Repeat::Never => false,
            };
            if !again || left == 0 {
                return Err(error);
            }
            left -= 1;
            lost_before |= error.may_have_happened();
            let wait = waits.next(error.retry_after());
            if Instant::now() + wait >= deadline {
                return Err(error);
            }
            tracing::debug!(%error, ?wait, "trying again");
            tokio::time::sleep(wait).await;
        }
    }

    /// Sends a request whose answer has no end, once, and gives it back when its first line is there.
    pub async fn open(&self, path: Path) -> Result<Response<Incoming>, Error> {
        let mut request = self.request(&Method::GET, &path, Bytes::new())?;
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        let answer = tokio::time::timeout(self.timeout, self.pool.request(request)).await;
        let answer =
            answer.map_err(|_| Error::Timeout { after: self.timeout })?.map_err(|error| self.broken(&error))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let (head, body) = answer.into_parts();
        let read = tokio::time::timeout(self.timeout, body.collect()).await;
        let bytes = read.map_err(|_| Error::Timeout { after: self.timeout })?.map_err(|error| self.cut(&error))?;
        Err(refusal(&head, &bytes.to_bytes()))
    }

    /// That the connection broke after the request was sent.
    pub fn cut(&self, error: &hyper::Error) -> Error {
        Error::Unreachable { url: self.address.to_string(), sent: true, reason: causes(error) }
    }

    async fn once(&self, call: &Call) -> Result<(StatusCode, Bytes), Error> {
        let request = self.request(&call.method, &call.path, call.body.clone())?;
        let answer = self.pool.request(request).await.map_err(|error| self.broken(&error))?;
        let (head, body) = answer.into_parts();
        let bytes = body.collect().await.map_err(|error| self.cut(&error))?.to_bytes();
        if head.status.is_success() { Ok((head.status, bytes)) } else { Err(refusal(&head, &bytes)) }
    }

    fn request(&self, method: &Method, path: &Path, body: Bytes) -> Result<Request<Full<Bytes>>, Error> {
        let has_body = !body.is_empty();
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method.clone();
        *request.uri_mut() = self.address.join(path)?;
        let headers = request.headers_mut();
        if has_body {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(token) = &self.token {
            headers.insert(header::AUTHORIZATION, token.clone());
        }
        headers
            .insert(header::USER_AGENT, HeaderValue::from_static(concat!("punctual-rust/", env!("CARGO_PKG_VERSION"))));
        Ok(request)
    }

    fn broken(&self, error: &hyper_util::client::legacy::Error) -> Error {
        // The outermost error only names the step; what lies beneath says what happened.
        let inner = std::error::Error::source(error).unwrap_or(error);
        // A cancelled request was handed back by the connection before anything of it was written.
        let cancelled = inner.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled);
        let unsent = error.is_connect() || cancelled;
        let url = self.address.to_string();
        match trust::refusal(inner) {
            Some(reason) => Error::Untrusted { url, reason },
            None => Error::Unreachable { url, sent: !unsent, reason: causes(inner) + self.other_scheme(inner) },
        }
    }

    /// What to try if one side speaks TLS and the other does not.
    fn other_scheme(&self, error: &(dyn std::error::Error + 'static)) -> &'static str {
        let is_noise = error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse);
        match self.address.is_secure() {
            true if trust::is_answer_in_plain(error) => " (does it speak TLS? if not, write http://)",
            false if is_noise => " (does it speak TLS? then write https://)",
            _ => "",
        }
    }
}

/// What the server says is wrong; or, if it does not say so in its own words, that this is not Punctual.
fn refusal(head: &http::response::Parts, bytes: &Bytes) -> Error {
    let Ok(mut problem) = serde_json::from_slice::<Problem>(bytes) else {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
        return Error::BadAnswer { status: head.status.as_u16(), reason: format!("{text:?}") };
    };
    let header = head.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    // The problem is finer; the header is there if something between the server and here added it.
    let seconds = header.and_then(|seconds| seconds.parse().ok());
    problem.retry_after = problem.retry_after.or(seconds.map(Span::from_secs));
    problem.into()
}

/// An error with all that lies beneath it, since the outermost says the least.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        next = cause.source();
    }
    text
}

/// The certificates to trust: those of the machine and the given ones. Without TLS none are read.
fn trust(secure: bool, certificates: &[Vec<u8>]) -> Result<ClientConfig, Error> {
    let bad = |reason: String| Error::BadCertificate { reason };
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
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| bad(error.to_string()))?;
    if given.is_empty() {
        return Ok(config.with_root_certificates(roots).with_no_client_auth());
    }
    let verifier = Trust::new(roots, given).map_err(|error| bad(error.to_string()))?;
    Ok(config.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}
