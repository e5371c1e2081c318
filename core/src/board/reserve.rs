//! What a consumer asks for.

use crate::answer::Refused;
use crate::name::Name;
use crate::task::NO_LEASE;
use crate::time::{Millis, Timestamp};

/// A consumer's request for deliveries.
#[derive(Clone, Debug)]
pub struct Reserve {
    /// From any of these queues.
    pub queues: Vec<Name>,
    /// At most so many at once; at least one.
    pub max: usize,
    /// To work on each for so long; `None` means as long as its task or its queue gives.
    pub lease: Option<Millis>,
    /// Waiting until then for the first one.
    pub until: Timestamp,
    /// Under this name.
    pub consumer: Name,
    /// From which of its queues, if several have something.
    pub choice: Choice,
}

impl Reserve {
    /// Whether it can be meant.
    pub fn check(&self) -> Result<(), Refused> {
        let invalid = |field, why: &str| Err(Refused::Invalid { field, why: why.into() });
        if self.queues.is_empty() {
            return invalid("queues", "name at least one queue");
        }
        if self.max == 0 {
            return invalid("max", "ask for at least one delivery");
        }
        if self.lease == Some(Millis::ZERO) {
            return invalid("lease", NO_LEASE);
        }
        Ok(())
    }
}

/// From which of several queues a consumer gets its next delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// From the one that was served longest ago, so that none starves.
    #[default]
    InTurn,
    /// From the one whose next delivery comes before those of the others, as if all were one queue.
    Foremost,
}
