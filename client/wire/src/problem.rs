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
    /// The HTTP status, also inside of a batch.
    pub status: u16,
    /// A word for programs: it never changes its meaning.
    pub code: String,
    /// What is wrong here, and what to do.
    pub detail: String,
    /// Where the task or delivery stands, if that is what the request ran against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// How long to wait before trying again, if that helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Span>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.detail, self.code)
    }
}

impl std::error::Error for Problem {}

/// The answer to one of several requests that came together.
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
