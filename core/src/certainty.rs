//! What is known of a request that was not answered as it was asked: the caller decides by it whether to ask again.

use std::fmt;

/// Whether a request that failed may have been carried out all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// Nothing was done, and nothing will be: the same request again is the first one.
    NothingDone,
    /// It may have been done, all of it or a part.
    Unknown,
}

impl fmt::Display for Certainty {
    /// What to tell the caller.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Certainty::NothingDone => "nothing was done: try again later",
            Certainty::Unknown => "the outcome is unknown: look it up, or try again with the same id",
        })
    }
}
