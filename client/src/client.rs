//! The client: how it is made, and how its methods speak to the server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::address::{Address, Path};
use crate::error::Error;
use crate::transport::{Answered, Call, Manner, Repeat, Transport};

/// The header that names the person for whom a client works.
const PERSON: &str = "punctual-by";

/// What does not stand for itself in it, beside all that is not ASCII.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

/// A client of a server, or of the nodes of one center. Cheap to clone: the clones share its connections.
///
/// # Several nodes
/// Of several addresses the first is asked. If it cannot be reached, is stopping or has fallen silent, the request goes on
/// to the next without a wait, by the rules below; so do those that follow, until the first is seen to be ready again. The
/// servers are asked who else is there, and further nodes are tried after those that were given: see
/// [`ClientBuilder::learn`].
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
    urls: Vec<String>,
    token: Option<String>,
    person: Option<String>,
    certificates: Vec<Vec<u8>>,
    timeout: Duration,
    retries: u32,
    learns: bool,
}

impl std::fmt::Debug for ClientBuilder {
    /// Without the token, which should not get into logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ClientBuilder { urls, timeout, retries, .. } = self;
        f.debug_struct("ClientBuilder").field("urls", urls).field("timeout", timeout).field("retries", retries).finish()
    }
}

impl ClientBuilder {
    /// One more address, or several with commas between them, of nodes of the same center.
    pub fn or(mut self, url: &str) -> ClientBuilder {
        self.urls.extend(url.split(',').map(str::to_owned));
        self
    }

    /// Whether nodes that were not given are learned of from those that were, as they are unless told otherwise. Only
    /// addresses under TLS are learned if only such were given.
    pub fn learn(mut self, learn: bool) -> ClientBuilder {
        self.learns = learn;
        self
    }

    /// The token that says who is asking.
    pub fn token(mut self, token: impl Into<String>) -> ClientBuilder {
        self.token = Some(token.into());
        self
    }

    /// The person for whom the client works. What they do is noted under their name, beside that of the token
    /// ([`Client::audit`]); also cancelling and moving tasks, which is not noted of programs.
    pub fn person(mut self, name: impl Into<String>) -> ClientBuilder {
        self.person = Some(name.into());
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
        let ClientBuilder { urls, token, person, certificates, timeout, retries, learns } = self;
        let addresses = urls.iter().map(|url| Address::parse(url)).collect::<Result<Vec<Address>, Error>>()?;
        let mut who = HeaderMap::new();
        if let Some(token) = token {
            who.insert(AUTHORIZATION, bearer(&token)?);
        }
        if let Some(person) = person {
            who.insert(PERSON, named(&person)?);
        }
        let manner = Manner { who, certificates, timeout, retries, learns };
        Ok(Client { transport: Arc::new(Transport::new(addresses, manner)?) })
    }
}

impl Client {
    /// A client of the server at this address, such as `http://127.0.0.1:7400` or `unix:/run/punctual/http`, or of several
    /// nodes with commas between their addresses.
    pub fn new(url: &str) -> Result<Client, Error> {
        Client::builder(url).build()
    }

    /// A client with a token, certificates or time limits of its own.
    pub fn builder(url: &str) -> ClientBuilder {
        let builder = ClientBuilder {
            urls: Vec::new(),
            token: None,
            person: None,
            certificates: Vec::new(),
            timeout: Duration::from_secs(30),
            retries: 6,
            learns: true,
        };
        builder.or(url)
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

    /// A request with a body that is carried out only if what it changes has this version. It is not repeated once it may
    /// have been: it would not meet this version any more.
    pub(crate) async fn tell_if<T: DeserializeOwned>(
        &self,
        method: Method,
        path: Path,
        body: &impl Serialize,
        version: &str,
    ) -> Result<T, Error> {
        let tag = HeaderValue::from_str(&format!("\"{version}\""));
        let tag = tag.map_err(|_| Error::BadUse { reason: format!("{version:?} is not a version of settings") })?;
        let (body, if_match) = (write(body)?, Some(tag));
        let call = Call { method, path, body, if_match, repeat: Repeat::Undone, wait: Duration::ZERO, limit: None };
        parse(&self.transport.call(call).await?)
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: Path,
        body: Bytes,
        repeat: Repeat,
    ) -> Result<Answered, Error> {
        let call = Call { method, path, body, if_match: None, repeat, wait: Duration::ZERO, limit: None };
        self.transport.call(call).await
    }
}

/// The header that bears a token.
fn bearer(token: &str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| Error::BadToken)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The header that names a person. What is not plain ASCII is percent-encoded.
fn named(person: &str) -> Result<HeaderValue, Error> {
    let bad = || Error::BadUse { reason: format!("{person:?} is no name of a person: use 1 to 128 bytes of text") };
    if person.is_empty() || person.len() > 128 || person.chars().any(char::is_control) {
        return Err(bad());
    }
    HeaderValue::from_str(&utf8_percent_encode(person, ESCAPED).to_string()).map_err(|_| bad())
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
