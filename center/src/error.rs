//! What can go wrong with a request, and what to do about it.

use punctual_core::{Answer, Certainty, Refused};

/// What a caller hears.
pub type Outcome = Result<Answer, Error>;

/// Why a request was not carried out, by what the caller should do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request cannot be carried out as it is. Nothing was changed.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Too much is waiting. Nothing was changed: try again later, and more slowly.
    #[error("the node is overloaded: nothing was done, try again later")]
    Overloaded,
    /// The store has no room for more tasks, topics or queues. Nothing was changed: make room as the
    /// text says. Everything else goes on: firing, consuming, cancelling.
    #[error("no room: {0}; nothing was done")]
    Full(String),
    /// The store did not answer, or the shard is not here for now.
    #[error("{why}; {certainty}")]
    Unavailable {
        /// What stands in the way.
        why: String,
        /// Whether it may have been done all the same.
        certainty: Certainty,
    },
    /// The node is about to stop. Nothing was changed: go to another one, or wait until it is back.
    #[error("the node is stopping: nothing was done")]
    Stopping,
}

impl Error {
    /// The word for it in metrics and on the wire. It never changes.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Refused(refused) => refused.code(),
            Error::Overloaded => "overloaded",
            Error::Full(_) => "store-full",
            Error::Unavailable { certainty: Certainty::NothingDone, .. } => "unavailable",
            Error::Unavailable { certainty: Certainty::Unknown, .. } => "outcome-unknown",
            Error::Stopping => "stopping",
        }
    }

    /// Whether the request may have been carried out all the same.
    pub fn certainty(&self) -> Certainty {
        match self {
            Error::Refused(_) | Error::Overloaded | Error::Full(_) | Error::Stopping => Certainty::NothingDone,
            Error::Unavailable { certainty, .. } => *certainty,
        }
    }

    /// The request was under way when what carried it out was lost.
    pub fn unknown_outcome(why: impl Into<String>) -> Error {
        Error::Unavailable { why: why.into(), certainty: Certainty::Unknown }
    }

    /// The request was not looked at, or would not have changed anything.
    pub fn nothing_done(why: impl Into<String>) -> Error {
        Error::Unavailable { why: why.into(), certainty: Certainty::NothingDone }
    }

    /// The same about a request that only looks: whatever was lost with it, nothing has changed.
    pub fn of_a_look(self) -> Error {
        match self {
            Error::Unavailable { why, .. } => Error::nothing_done(why),
            other => other,
        }
    }

    /// The same about a request to several shards, of which others have done it, or may have. A refusal stays one: it says
    /// what to mend, and then all of them are told again.
    pub fn of_a_part(self) -> Error {
        match self {
            Error::Refused(_) => self,
            Error::Unavailable { why, .. } => Error::unknown_outcome(why),
            Error::Overloaded | Error::Full(_) | Error::Stopping => {
                Error::unknown_outcome(format!("a part was refused as {}", self.code()))
            }
        }
    }
}
