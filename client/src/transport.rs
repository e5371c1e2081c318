//! A request and its answer: which server is asked, for how long, and which failures are tried again.
//!
//! What was never sent, and what the server says it has not begun, is always safe to try again, at this server or
//! another. What may have been carried out is tried again only if the caller says that doing it twice is the same as
//! doing it once: that holds over all nodes, since it is one center that they ask.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use hyper::body::Incoming;
use rustls::ClientConfig;
use tokio::time::Instant;

use crate::address::{Address, Path};
use crate::backoff::Waits;
use crate::error::{Error, Tried};
use crate::looking::{self, Learning};
use crate::server::Server;
use crate::servers::Servers;
use crate::trust;

/// The wait before the first repetition, and the longest one.
const WAITS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// The way to all servers of one center.
#[derive(Debug)]
pub(crate) struct Transport {
    servers: Mutex<Servers<Arc<Server>>>,
    pub learning: Learning,
    who: HeaderMap,
    tls: ClientConfig,
    timeout: Duration,
    retries: u32,
}

/// How a center is spoken to.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    /// The headers that say who is asking.
    pub who: HeaderMap,
    /// Certificates to trust, as PEM.
    pub certificates: Vec<Vec<u8>>,
    pub timeout: Duration,
    pub retries: u32,
    /// Whether servers that were not given are learned of.
    pub learns: bool,
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
    /// The version that what is changed must have.
    pub if_match: Option<HeaderValue>,
    pub repeat: Repeat,
    /// How long the server may take on purpose.
    pub wait: Duration,
    /// How long it may take in all, if that is not for the client to say.
    pub limit: Option<Duration>,
}

/// An answer that says that the request was carried out.
#[derive(Debug)]
pub(crate) struct Answered {
    pub status: StatusCode,
    pub bytes: Bytes,
    /// Whether an attempt before this one may have been carried out, so that this answer may be about a repetition.
    pub lost_before: bool,
}

impl Call {
    /// Whether a server that has fallen silent is left. What cannot be repeated waits for its answer, because it would not
    /// be known otherwise whether it was carried out; except what only waits for something to take, which comes back
    /// if it was taken.
    fn leaves_the_silent(&self) -> bool {
        self.repeat != Repeat::Undone || !self.wait.is_zero()
    }
}

impl Transport {
    pub fn new(addresses: Vec<Address>, manner: Manner) -> Result<Transport, Error> {
        let Manner { who, certificates, timeout, retries, learns } = manner;
        let secure = addresses.iter().any(Address::is_secure);
        let tls = trust::config(secure, &certificates)?;
        let learning = Learning::new(learns, &addresses);
        let mut servers = Servers::new();
        for address in addresses {
            let url = address.to_string();
            servers.add(url, Arc::new(Server::new(address, who.clone(), &tls, timeout)));
        }
        Ok(Transport { servers: Mutex::new(servers), learning, who, tls, timeout, retries })
    }

    /// How often a request is repeated.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// The waits between repetitions.
    pub fn waits(&self) -> Waits {
        Waits::new(WAITS.0, WAITS.1)
    }

    /// All servers that are known.
    pub fn servers(&self) -> MutexGuard<'_, Servers<Arc<Server>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way to one more server.
    pub fn reach(&self, address: Address) -> Arc<Server> {
        Arc::new(Server::new(address, self.who.clone(), &self.tls, self.timeout))
    }

    /// Sends a request, again if it failed and that is safe, until the time is over.
    ///
    /// A round asks one server after the other, without waits. After a round in which none could, it is waited.
    pub async fn call(self: &Arc<Self>, call: Call) -> Result<Answered, Error> {
        looking::around(self);
        let after = call.limit.unwrap_or(self.timeout.saturating_add(call.wait));
        let deadline = Instant::now() + after;
        let mut waits = self.waits();
        let mut left = self.retries;
        let mut lost_before = false;
        let mut failures = Failures::default();
        while let Some((number, server)) = self.choose(&failures.asked) {
            let attempt = tokio::time::timeout_at(deadline, self.attempt(&server, &call)).await;
            let error = match attempt.unwrap_or(Err(Error::Timeout { after })) {
                Ok((status, bytes)) => {
                    self.servers().answered(number, Instant::now());
                    return Ok(Answered { status, bytes, lost_before });
                }
                Err(error) => error,
            };
            self.note(number, &error);
            if !error.is_retryable() && !error.may_differ_elsewhere() {
                return Err(error);
            }
            let again = match call.repeat {
                Repeat::Safe => true,
                Repeat::Undone => !error.may_have_happened(),
                Repeat::Never => false,
            };
            lost_before |= error.may_have_happened();
            let elsewhere = error.may_differ_elsewhere();
            failures.push(number, &server, error);
            if !again || Instant::now() >= deadline {
                break;
            }
            if elsewhere && self.choose(&failures.asked).is_some() {
                continue;
            }
            let wait = waits.next(failures.retry_after());
            if !failures.are_retryable() || left == 0 || Instant::now() + wait >= deadline {
                break;
            }
            left -= 1;
            tracing::debug!(error = %failures, ?wait, "trying again");
            failures.end_round();
            tokio::time::sleep(wait).await;
        }
        Err(failures.into_error())
    }

    /// Sends a request whose answer has no end, once to each server until one takes it, and gives it back when its first
    /// line is there.
    pub async fn open(self: &Arc<Self>, path: Path) -> Result<(Arc<Server>, Response<Incoming>), Error> {
        looking::around(self);
        let several = self.servers().are_several();
        let after = if several { self.timeout.min(looking::SILENCE) } else { self.timeout };
        let mut failures = Failures::default();
        while let Some((number, server)) = self.choose(&failures.asked) {
            let answer = tokio::time::timeout(after, server.open(&path)).await;
            let error = match answer.unwrap_or(Err(Error::Timeout { after })) {
                Ok(answer) => return Ok((server, answer)),
                Err(error) => error,
            };
            self.note(number, &error);
            if !error.may_differ_elsewhere() {
                return Err(error);
            }
            failures.push(number, &server, error);
        }
        Err(failures.into_error())
    }

    /// Asks one server. If there are others, it is left when it has fallen silent.
    async fn attempt(&self, server: &Server, call: &Call) -> Result<(StatusCode, Bytes), Error> {
        let answer = server.ask(&call.method, &call.path, call.body.clone(), call.if_match.as_ref());
        if !call.leaves_the_silent() || !self.servers().are_several() {
            return answer.await;
        }
        tokio::select! {
            biased;
            answer = answer => answer,
            after = looking::until_silent(server) => Err(Error::Timeout { after }),
        }
    }

    /// Whom to ask, besides these.
    pub fn choose(&self, tried: &[u64]) -> Option<(u64, Arc<Server>)> {
        self.servers().choose(tried)
    }

    /// Takes a failure as a sign of how its server is.
    fn note(&self, number: u64, error: &Error) {
        if error.is_of_server() {
            self.servers().failed(number, Instant::now());
            self.learning.soon();
        } else {
            self.servers().answered(number, Instant::now());
        }
    }
}

/// What went wrong with a request, by server.
#[derive(Debug, Default)]
struct Failures {
    /// Who was asked in this round.
    asked: Vec<u64>,
    /// The latest failure of each server, those of this round last.
    tried: Vec<Tried>,
}

impl Failures {
    fn push(&mut self, number: u64, server: &Server, error: Error) {
        let url = server.url();
        self.tried.retain(|tried| tried.url != url);
        self.tried.push(Tried { url, error });
        self.asked.push(number);
    }

    fn end_round(&mut self) {
        self.asked.clear();
    }

    fn of_this_round(&self) -> impl Iterator<Item = &Error> {
        self.tried.iter().rev().take(self.asked.len()).map(|tried| &tried.error)
    }

    fn are_retryable(&self) -> bool {
        self.of_this_round().any(Error::is_retryable)
    }

    /// How long to wait for the first of them that may be asked again.
    fn retry_after(&self) -> Option<Duration> {
        self.of_this_round().map(Error::retry_after).min().flatten()
    }

    fn into_error(mut self) -> Error {
        match self.tried.len() {
            1 => self.tried.remove(0).error,
            _ => Error::NoServer { tried: self.tried },
        }
    }
}

impl std::fmt::Display for Failures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        crate::error::list(&self.tried, f)
    }
}
