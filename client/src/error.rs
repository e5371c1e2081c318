//! What can go wrong on the way to the server and back: few kinds, each saying what to do.

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
        self.problem().and_then(|problem| problem.retry_after).map(|after| after.as_duration())
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
