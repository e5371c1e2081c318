//! What went wrong, as RFC 9457 problem details.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::standing::Standing;
use crate::time::Span;

/// Why a request was not carried out, and what to do about it (RFC 9457).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// `urn:punctual:problem:` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// The code in words.
    pub title: String,
    /// The HTTP status, also within a batch.
    pub status: u16,
    /// A code for programs, whose meaning never changes. `outcome-unknown` means that the request may have been carried
    /// out; after any other of Punctual's codes, nothing was done.
    pub code: String,
    /// What is wrong, and what to do about it.
    pub detail: String,
    /// Where the task or delivery stands, if that is why the request was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// How long to wait before trying again, if that helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Span>,
}

/// The codes of servers that could not carry a request out, and have not begun to. The one for what they may have
/// begun is `outcome-unknown`.
const NOTHING_DONE: [&str; 4] = ["overloaded", "stopping", "store-full", "unavailable"];

impl Problem {
    /// Whether the request may have been carried out all the same. Of what a server could not do (a status of 500 and
    /// more) only its code says that it was not: one that is not known here may mean anything.
    pub fn may_have_happened(&self) -> bool {
        self.status >= 500 && !NOTHING_DONE.contains(&self.code.as_str())
    }

    /// Whether the same request may be carried out later.
    pub fn is_passing(&self) -> bool {
        matches!(self.status, 429 | 503 | 507) || self.retry_after.is_some()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.detail, self.code)
    }
}

impl std::error::Error for Problem {}

/// The answer to one request of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum Answer<T> {
    /// It was not carried out.
    Refused {
        /// Why.
        problem: Problem,
    },
    /// It was carried out.
    Done(T),
}

impl<T> Answer<T> {
    /// The same as a result.
    #[allow(
        clippy::result_large_err,
        reason = "it is on its way into a list of results, where a box would only be unpacked again"
    )]
    pub fn into_result(self) -> Result<T, Problem> {
        match self {
            Answer::Done(answer) => Ok(answer),
            Answer::Refused { problem } => Err(problem),
        }
    }
}

impl<T> From<Result<T, Problem>> for Answer<T> {
    fn from(result: Result<T, Problem>) -> Answer<T> {
        match result {
            Ok(answer) => Answer::Done(answer),
            Err(problem) => Answer::Refused { problem },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_code_that_is_known_says_that_a_server_has_done_nothing() {
        let problem = |status, code: &str| Problem { status, code: code.into(), ..Problem::default() };
        for (status, code) in [(503, "overloaded"), (503, "stopping"), (503, "unavailable"), (507, "store-full")] {
            assert!(!problem(status, code).may_have_happened() && problem(status, code).is_passing(), "{code}");
        }
        assert!(problem(503, "outcome-unknown").may_have_happened());
        assert!(problem(500, "of another server").may_have_happened() && !problem(500, "").is_passing());
        assert!(!problem(429, "rate-limited").may_have_happened() && !problem(409, "too-late").may_have_happened());
    }
}
