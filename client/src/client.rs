//! The client: how it is made, and how its methods speak to the server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::address::{Address, Path};
use crate::error::Error;
use crate::transport::{Answered, Call, Repeat, Transport};

/// A client of one server. Cheap to clone: the clones share its connections.
///
/// # What is tried again
/// A request is repeated, with growing waits, when the server could not be reached, cannot carry it out now (503, or 507
/// for want of room) or wants the caller to slow down (429), as long as the [timeout](ClientBuilder::timeout) allows.
/// Unless the server says that nothing was done, it may have been carried out although its answer was lost, and is only
/// repeated if twice is the same as once:
/// - [`schedule`](Client::schedule): a task without an id gets one before it is sent, so the same task comes twice; but
///   not one that replaces another, which would run again if it has finished meanwhile;
/// - reading, [`cancel`](Client::cancel) (which then says *was cancelled*), settings, pausing and resuming;
/// - [`reschedule`](Client::reschedule) and [`shift_key`](Client::shift_key) to a time, but not *by* a length of time;
/// - [`acknowledge`](Client::acknowledge) and the like, because the lease tells the first from the second.
///
/// Everything else, [`reserve`](Client::reserve) above all, is repeated only if it was surely not carried out; otherwise
/// the error says that it may have happened.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) transport: Arc<Transport>,
}

/// A client in the making.
#[derive(Clone)]
pub struct ClientBuilder {
    url: String,
    token: Option<String>,
    certificates: Vec<Vec<u8>>,
    timeout: Duration,
    retries: u32,
}

impl std::fmt::Debug for ClientBuilder {
    /// Without the token, which should not get into logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ClientBuilder { url, timeout, retries, .. } = self;
        f.debug_struct("ClientBuilder").field("url", url).field("timeout", timeout).field("retries", retries).finish()
    }
}

impl ClientBuilder {
    /// The token that says who is asking.
    pub fn token(mut self, token: impl Into<String>) -> ClientBuilder {
        self.token = Some(token.into());
        self
    }

    /// Certificates to trust, as PEM, besides those that the machine trusts.
    pub fn ca_certificate_pem(mut self, pem: impl Into<Vec<u8>>) -> ClientBuilder {
        self.certificates.push(pem.into());
        self
    }

    /// How long a call takes at most, repetitions included; 30 seconds unless told otherwise. A call that waits
    /// on purpose, such as [`Client::reserve`], takes so much longer as it may wait.
    pub fn timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.timeout = timeout;
        self
    }

    /// How often a call that failed is repeated; 6 times unless told otherwise, which takes up to about three
    /// seconds.
    pub fn retries(mut self, retries: u32) -> ClientBuilder {
        self.retries = retries;
        self
    }

    /// The client. Nothing is sent yet: whether the server is there shows at the first call.
    pub fn build(self) -> Result<Client, Error> {
        let address = Address::parse(&self.url)?;
        let token = self.token.as_deref();
        let transport = Transport::new(address, token, &self.certificates, self.timeout, self.retries)?;
        Ok(Client { transport: Arc::new(transport) })
    }
}

impl Client {
    /// A client of the server at this address, such as `http://127.0.0.1:7400` or `unix:/run/punctual/http`.
    pub fn new(url: &str) -> Result<Client, Error> {
        Client::builder(url).build()
    }

    /// A client with a token, certificates or time limits of its own.
    pub fn builder(url: &str) -> ClientBuilder {
        ClientBuilder {
            url: url.into(),
            token: None,
            certificates: Vec::new(),
            timeout: Duration::from_secs(30),
            retries: 6,
        }
    }

    pub(crate) async fn read<T: DeserializeOwned>(&self, path: Path) -> Result<T, Error> {
        self.ask(Method::GET, path, Repeat::Safe).await
    }

    /// A request without a body.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, how: Method, path: Path, repeat: Repeat) -> Result<T, Error> {
        parse(&self.send(how, path, Bytes::new(), repeat).await?)
    }

    /// A request with a body.
    pub(crate) async fn tell<T: DeserializeOwned>(
        &self,
        how: Method,
        path: Path,
        body: &impl Serialize,
        repeat: Repeat,
    ) -> Result<T, Error> {
        parse(&self.send(how, path, write(body)?, repeat).await?)
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: Path,
        body: Bytes,
        repeat: Repeat,
    ) -> Result<Answered, Error> {
        self.transport.call(Call { method, path, body, repeat, wait: Duration::ZERO }).await
    }
}

/// What is sent, as JSON.
pub(crate) fn write(body: &impl Serialize) -> Result<Bytes, Error> {
    serde_json::to_vec(body).map(Bytes::from).map_err(|error| Error::BadBody { reason: error.to_string() })
}

/// What came back, from JSON.
pub(crate) fn parse<T: DeserializeOwned>(answer: &Answered) -> Result<T, Error> {
    serde_json::from_slice(&answer.bytes)
        .map_err(|error| Error::BadAnswer { status: answer.status.as_u16(), reason: error.to_string() })
}

/// An answer, or that there is no such thing as was asked for.
pub(crate) fn found<T>(answer: Result<T, Error>, unknown: &str) -> Result<Option<T>, Error> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_code(unknown) => Ok(None),
        Err(error) => Err(error),
    }
}
