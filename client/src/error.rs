//! What can go wrong on the way to the server and back: few kinds, each saying what to do.

use std::fmt;
use std::time::Duration;

use punctual_wire::Problem;

/// Why a request has no answer, or not the one that was hoped for.
///
/// It can be cloned, because a request of many callers fails for all of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server refused, and says why and what to do.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// There was no connection, or it broke.
    #[error("{url} cannot be reached: {reason}; {}", advice(*.sent))]
    Unreachable {
        /// The server.
        url: String,
        /// Whether the request may have reached the server. If not, nothing has happened.
        sent: bool,
        /// What the network says.
        reason: String,
    },
    /// The server's certificate is not one to trust. Nothing was sent.
    #[error("{url} is not trusted: its certificate {reason}")]
    Untrusted {
        /// The server.
        url: String,
        /// What is wrong with its certificate, and what to do.
        reason: String,
    },
    /// There was no answer in time. The request may have been carried out.
    #[error("no answer after {after:?}: the request may have been carried out; look up the task, or try again")]
    Timeout {
        /// How long it was waited for.
        after: Duration,
    },
    /// Several servers were tried, and each failed in a way that another might not have.
    #[error("{}", Listed(.tried))]
    NoServer {
        /// What became of the request at each of them, in the order in which they were tried.
        tried: Vec<Tried>,
    },
    /// The address of the server cannot be used.
    #[error("{url:?} is not the address of a server: {reason}; write http://host:port or https://host:port")]
    BadUrl {
        /// As it was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The answer was not one of a Punctual server: the address may be that of something else, such as a proxy.
    #[error("the answer (status {status}) does not come from Punctual: {reason}; is this the right address?")]
    BadAnswer {
        /// The HTTP status.
        status: u16,
        /// What is wrong with it.
        reason: String,
    },
    /// A certificate, or all of the machine's, cannot be used.
    #[error("no certificate to trust: {reason}")]
    BadCertificate {
        /// What is wrong.
        reason: String,
    },
    /// The token holds what a header cannot.
    #[error("the token cannot be sent: it may contain only visible ASCII characters")]
    BadToken,
    /// A body cannot be written as JSON, or not be read as what was asked for.
    #[error("the body has an unexpected form: {reason}")]
    BadBody {
        /// What is wrong with it.
        reason: String,
    },
    /// What was asked for makes no sense, so it was not sent.
    #[error("{reason}")]
    BadUse {
        /// What is wrong and what to do.
        reason: String,
    },
}

/// A server that was tried, and why it did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The server.
    pub url: String,
    /// What went wrong there.
    pub error: Error,
}

struct Listed<'a>(&'a [Tried]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no server could do it: ")?;
        list(self.0, f)?;
        match self.0.iter().any(|tried| tried.error.may_have_happened()) {
            false => f.write_str("; nothing was done: check the addresses, and that a server is running"),
            true => f.write_str("; the request may have been carried out; look up the task, or try again"),
        }
    }
}

/// What went wrong at each server, in one line.
pub(crate) fn list(tried: &[Tried], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (index, Tried { url, error }) in tried.iter().enumerate() {
        let between = if index == 0 { "" } else { "; " };
        match error {
            Error::Unreachable { reason, .. } => write!(f, "{between}{url} cannot be reached: {reason}")?,
            Error::Untrusted { reason, .. } => write!(f, "{between}{url} is not trusted: its certificate {reason}")?,
            Error::Timeout { after } => write!(f, "{between}{url} did not answer for {after:.1?}")?,
            error => write!(f, "{between}{url}: {error}")?,
        }
    }
    Ok(())
}

fn advice(sent: bool) -> &'static str {
    match sent {
        false => "nothing was sent, so nothing has happened: check the address, and that the server is running",
        true => "the request may have been carried out; look up the task, or try again",
    }
}

impl Error {
    /// Whether the same request may succeed later: the server could not be reached, had too much to do, or no room.
    ///
    /// Whether it may be repeated is another question: see [`Error::may_have_happened`].
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Problem(problem) => problem.is_passing(),
            Error::Unreachable { .. } | Error::Timeout { .. } => true,
            Error::NoServer { tried } => tried.iter().any(|tried| tried.error.is_retryable()),
            Error::BadAnswer { status, .. } => matches!(status, 429 | 502 | 503 | 504),
            _ => false,
        }
    }

    /// Whether the request may have been carried out although there is no answer that says so.
    pub fn may_have_happened(&self) -> bool {
        match self {
            Error::Problem(problem) => problem.may_have_happened(),
            Error::Unreachable { sent, .. } => *sent,
            Error::Timeout { .. } => true,
            Error::NoServer { tried } => tried.iter().any(|tried| tried.error.may_have_happened()),
            Error::BadAnswer { status, .. } => *status < 400 || *status >= 500,
            _ => false,
        }
    }

    /// What the server says, if it is the server that refused.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Error::Problem(problem) => Some(problem),
            _ => None,
        }
    }

    /// How long the server asks to wait before trying again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Problem(problem) => problem.retry_after.map(|after| after.as_duration()),
            Error::NoServer { tried } => tried.iter().map(|tried| tried.error.retry_after()).min().flatten(),
            _ => None,
        }
    }

    /// Whether it says that its server is not to be asked at present, whatever about.
    pub(crate) fn is_of_server(&self) -> bool {
        match self {
            Error::Problem(problem) => matches!(problem.code.as_str(), "stopping" | "unavailable"),
            Error::Unreachable { .. } | Error::Timeout { .. } | Error::Untrusted { .. } => true,
            Error::BadAnswer { status, .. } => matches!(status, 502..=504),
            _ => false,
        }
    }

    /// Whether another server may do what this one could not. That a rate is used up, or the store full, holds for all.
    pub(crate) fn may_differ_elsewhere(&self) -> bool {
        match self {
            Error::Problem(problem) => problem.status == 503,
            error => error.is_of_server(),
        }
    }

    /// The server's word for what is wrong, if it is the server that refused.
    pub(crate) fn is_code(&self, code: &str) -> bool {
        self.problem().is_some_and(|problem| problem.code == code)
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Error {
        Error::Problem(Box::new(problem))
    }
}
