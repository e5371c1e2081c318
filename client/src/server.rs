//! The way to one server: its address, its connections, and what became of a request on this way.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use punctual_wire::{Problem, Span};
use rustls::ClientConfig;

use crate::address::{Address, Path};
use crate::error::Error;
use crate::pool::Pool;
use crate::trust;

/// A server and the connections to it.
#[derive(Debug)]
pub(crate) struct Server {
    address: Address,
    /// The headers that say who is asking.
    who: HeaderMap,
    pool: Pool,
}

impl Server {
    pub fn new(address: Address, who: HeaderMap, tls: &ClientConfig, timeout: Duration) -> Server {
        let pool = match address.unix() {
            Some(socket) => Pool::unix(socket),
            None => Pool::net(tls.clone(), timeout),
        };
        Server { address, who, pool }
    }

    /// Its address, as people write it.
    pub fn url(&self) -> String {
        self.address.to_string()
    }

    /// Sends a request and takes the whole answer.
    pub async fn ask(
        &self,
        method: &Method,
        path: &Path,
        body: Bytes,
        if_match: Option<&HeaderValue>,
    ) -> Result<(StatusCode, Bytes), Error> {
        let mut request = self.request(method, path, body)?;
        if let Some(version) = if_match {
            request.headers_mut().insert(header::IF_MATCH, version.clone());
        }
        let answer = self.pool.request(request).await.map_err(|error| self.broken(&error))?;
        let (head, body) = answer.into_parts();
        let bytes = body.collect().await.map_err(|error| self.cut(&error))?.to_bytes();
        if head.status.is_success() { Ok((head.status, bytes)) } else { Err(refusal(&head, &bytes)) }
    }

    /// Sends a request whose answer has no end, and gives it back when its first line is there.
    pub async fn open(&self, path: &Path) -> Result<Response<Incoming>, Error> {
        let mut request = self.request(&Method::GET, path, Bytes::new())?;
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        let answer = self.pool.request(request).await.map_err(|error| self.broken(&error))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let (head, body) = answer.into_parts();
        let bytes = body.collect().await.map_err(|error| self.cut(&error))?;
        Err(refusal(&head, &bytes.to_bytes()))
    }

    /// That the connection broke after the request was sent.
    pub fn cut(&self, error: &hyper::Error) -> Error {
        Error::Unreachable { url: self.url(), sent: true, reason: causes(error) }
    }

    fn request(&self, method: &Method, path: &Path, body: Bytes) -> Result<Request<Full<Bytes>>, Error> {
        let has_body = !body.is_empty();
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method.clone();
        *request.uri_mut() = self.address.join(path)?;
        *request.headers_mut() = self.who.clone();
        let headers = request.headers_mut();
        if has_body {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
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
        let url = self.url();
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
