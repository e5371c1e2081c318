//! The changing part of a row: what is stored of a task or delivery beside its body.
//!
//! The layout is stable. A new version gets a new leading number, and old ones stay readable.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::name::Name;
use crate::settings::Retry;
use crate::time::{Millis, Timestamp};

/// What is known of a task or delivery beside its key, its time and its body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// What it is waiting for, or what became of it.
    pub phase: Phase,
    /// When it was scheduled.
    pub scheduled_at: Timestamp,
    /// When it is (or was) due. Waiting for a retry does not change it.
    pub due: Timestamp,
    /// Lower comes first.
    pub priority: u32,
    /// How long after its due time it is worth handing over.
    pub ttl: Option<Millis>,
    /// What happens when it fails, if that differs from the queue's settings.
    pub retry: Option<Retry>,
    /// What bindings look at.
    pub routing_key: Option<Name>,
    /// The queue it belongs to, once it was handed out there.
    pub queue: Option<Name>,
    /// How often it was handed out.
    pub attempts: u32,
    /// How many of the attempts failed.
    pub failures: u32,
}

/// What a row is waiting for, or what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// For its time, and then for a consumer: once `at` has come it is ready, without a write.
    Waiting,
    /// For its consumer; `at` is the end of the lease.
    Leased {
        /// Tells this lease from all others.
        token: u64,
        /// The consumer.
        holder: Name,
    },
    /// For its deliveries, which have rows of their own; its own `at` is the last instant.
    Spread(Vec<Part>),
    /// For the topic that takes its queue's dead letters; `at` is when to try again.
    Forwarding {
        /// The topic.
        to: Name,
        /// Tells this journey from all others, so that a second try is not a second task.
        number: u64,
        /// What it died of.
        death: Death,
    },
    /// For a person, or a retention rule; `at` is when it died.
    Dead(Death),
    /// For nothing; `at` is when it finished.
    Finished(Ending),
}

/// One of several deliveries of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The queue it went to.
    pub queue: Name,
    /// How and when it finished.
    pub finished: Option<(Ending, Timestamp)>,
}

/// What a dead letter died of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Death {
    /// Why it was given up.
    pub reason: Reason,
    /// When.
    pub at: Timestamp,
    /// What the consumer, or the topic it should go on to, said.
    pub note: Option<String>,
}

/// Why a delivery was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// Its consumer said so.
    Rejected,
    /// Too many attempts failed.
    OutOfAttempts,
    /// Its time to live was over.
    Expired,
    /// Its queue was full.
    PushedOut,
    /// No queue takes it.
    Unrouted,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 5] =
        [Reason::Rejected, Reason::OutOfAttempts, Reason::Expired, Reason::PushedOut, Reason::Unrouted];

    /// The word for it in headers, metrics and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Rejected => "rejected",
            Reason::OutOfAttempts => "out-of-attempts",
            Reason::Expired => "expired",
            Reason::PushedOut => "pushed-out",
            Reason::Unrouted => "unrouted",
        }
    }
}

/// How a task or delivery finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// A consumer acknowledged it.
    Done,
    /// It was cancelled.
    Cancelled,
    /// As a dead letter it went on to another topic.
    Forwarded,
    /// As a dead letter it was removed.
    Purged,
}

/// The version of the layout.
const VERSION: u8 = 1;

impl State {
    /// The stored form.
    pub(crate) fn encode(&self) -> Bytes {
        // Almost every state fits on the stack, and then takes one allocation of its exact size.
        let mut bytes = [VERSION; 128];
        if let Ok(state) = postcard::to_slice(self, &mut bytes[1..]) {
            let length = 1 + state.len();
            return Bytes::copy_from_slice(&bytes[..length]);
        }
        postcard::to_extend(self, vec![VERSION]).expect("a state can be laid out as bytes").into()
    }

    /// Reads the stored form.
    ///
    /// # Panics
    /// If a newer version wrote it, or it is damaged beyond what the store's checksums caught.
    pub fn decode(bytes: &[u8]) -> State {
        let (version, rest) = bytes.split_first().expect("a stored state starts with its version");
        assert_eq!(*version, VERSION, "a newer version of Punctual wrote this row: do not go back to an older one");
        postcard::from_bytes(rest).expect("a stored state can be read back")
    }

    /// The first instant at which it is not worth handing over any more.
    pub fn expires_at(&self) -> Timestamp {
        self.ttl.map_or(Timestamp::NEVER, |ttl| self.due.plus(ttl).plus(Millis(1)))
    }

    /// The routing key that bindings look at.
    pub fn routing(&self) -> &str {
        self.routing_key.as_deref().unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(phase: Phase) -> State {
        State {
            phase,
            scheduled_at: Timestamp::from_millis(1),
            due: Timestamp::from_millis(2),
            priority: 3,
            ttl: Some(Millis(4)),
            retry: Some(Retry::default()),
            routing_key: Some(Name::new("a.b").unwrap()),
            queue: Some(Name::new("q").unwrap()),
            attempts: 5,
            failures: 6,
        }
    }

    #[test]
    fn every_phase_comes_back_as_it_was_stored() {
        let queue = Name::new("q").unwrap();
        let death = Death { reason: Reason::Rejected, at: Timestamp::LAST, note: Some("no".into()) };
        let phases = [
            Phase::Waiting,
            Phase::Leased { token: u64::MAX, holder: queue.clone() },
            Phase::Spread(vec![Part { queue: queue.clone(), finished: Some((Ending::Done, Timestamp::ZERO)) }]),
            Phase::Forwarding { to: queue, number: 7, death: death.clone() },
            Phase::Dead(death),
            Phase::Finished(Ending::Cancelled),
        ];
        for phase in phases {
            let state = state(phase);
            assert_eq!(State::decode(&state.encode()), state);
        }
    }

    #[test]
    fn a_long_state_comes_back_too() {
        let part = |number: usize| Part { queue: Name::new(format!("queue-{number}")).unwrap(), finished: None };
        let state = state(Phase::Spread((0..100).map(part).collect()));
        assert_eq!(State::decode(&state.encode()), state);
    }

    /// The bytes of version 1, as they stand in stores that exist.
    #[test]
    fn version_1_stays_readable() {
        let stored = [1, 0, 1, 2, 3, 1, 4, 1, 5, 1, 232, 7, 128, 221, 219, 1, 10, 1, 3, 97, 46, 98, 1, 1, 113, 5, 6];
        assert_eq!(State::decode(&stored), state(Phase::Waiting));
        assert_eq!(state(Phase::Waiting).encode(), stored.as_slice());
    }
}
