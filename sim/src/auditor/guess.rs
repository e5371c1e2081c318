//! What a row may look like after so much of a step.
//!
//! Timers, retention and the pushing out of full queues happen when the shard gets to them, so
//! from one state several are possible. The auditor follows all of them, as few as they are.

use bytes::Bytes;
use punctual_core::store::{Row, Table};
use punctual_core::{Name, Phase, State, Timestamp};

/// A row as the store has it, by what was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shadow {
    /// The table it stands in.
    pub table: Table,
    /// Its number.
    pub seq: u64,
    /// Its time.
    pub at: Timestamp,
    /// Its group.
    pub group: Option<Name>,
    /// Its state.
    pub state: State,
    /// Its body with headers.
    pub body: Bytes,
}

impl Shadow {
    /// The shadow of a row.
    pub fn of(row: &Row) -> Shadow {
        Shadow {
            table: row.table,
            seq: row.seq,
            at: row.at,
            group: row.group.clone(),
            state: State::decode(&row.state),
            body: row.body.clone(),
        }
    }

    /// Whether it waits for its time or for a consumer.
    pub fn is_waiting(&self) -> bool {
        self.table == Table::Live && self.state.phase == Phase::Waiting
    }

    /// Whether it still has to come to an end.
    pub fn is_open(&self) -> bool {
        self.table == Table::Live && !matches!(self.state.phase, Phase::Spread(_))
    }
}

/// One of the possibilities.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Guess {
    /// There is no such row.
    Gone,
    /// There is one.
    Row(Box<Candidate>),
}

/// A row whose number, time and body may be known only roughly.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Candidate {
    pub table: Table,
    pub seq: Option<u64>,
    pub at: Timestamp,
    /// The wait before a retry has jitter: its end lies between `at` and here.
    pub latest: Timestamp,
    pub group: Option<Name>,
    pub state: State,
    pub body: Body,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Body {
    Exactly(Bytes),
    /// Headers come before it.
    EndsWith(Bytes),
}

impl Guess {
    pub fn of(shadow: Option<&Shadow>) -> Guess {
        shadow.map_or(Guess::Gone, |shadow| Guess::row(Candidate::of(shadow)))
    }

    /// Whether there is a row whose number is not known: it came to be in this step.
    pub fn is_unnumbered(&self) -> bool {
        matches!(self, Guess::Row(row) if row.seq.is_none())
    }

    /// The row, if there is one and it may have this number.
    pub fn numbered(&self, number: u64) -> Option<&Candidate> {
        match self {
            Guess::Row(row) if row.may_have(number) => Some(row),
            Guess::Row(_) | Guess::Gone => None,
        }
    }

    pub fn row(candidate: Candidate) -> Guess {
        Guess::Row(Box::new(candidate))
    }

    /// Whether this is what the store has.
    pub fn fits(&self, actual: Option<&Shadow>) -> bool {
        match (self, actual) {
            (Guess::Gone, None) => true,
            (Guess::Row(candidate), Some(actual)) => candidate.fits(actual),
            _ => false,
        }
    }
}

impl Candidate {
    pub fn of(shadow: &Shadow) -> Candidate {
        Candidate {
            table: shadow.table,
            seq: Some(shadow.seq),
            at: shadow.at,
            latest: shadow.at,
            group: shadow.group.clone(),
            state: shadow.state.clone(),
            body: Body::Exactly(shadow.body.clone()),
        }
    }

    pub fn is_waiting(&self) -> bool {
        self.table == Table::Live && self.state.phase == Phase::Waiting
    }

    /// Whether this may be its number.
    pub fn may_have(&self, number: u64) -> bool {
        self.seq.is_none_or(|seq| seq == number)
    }

    /// Whether another task of its id may take its place.
    pub fn may_be_replaced(&self) -> bool {
        self.table == Table::History || (self.is_waiting() && self.state.attempts == 0)
    }

    /// Whether it is with a consumer under this token.
    pub fn is_held(&self, token: Option<u64>) -> bool {
        matches!(self.state.phase, Phase::Leased { token: held, .. } if Some(held) == token)
    }

    /// Whether it is a dead letter on this journey, as far as its number is known.
    pub fn is_on_journey(&self, journey: u64) -> bool {
        matches!(self.state.phase, Phase::Forwarding { number, .. } if number == journey || number == 0)
    }

    /// The same of one whose number is known: one that died in this very step has another one.
    pub fn is_surely_on_journey(&self, journey: u64) -> bool {
        matches!(self.state.phase, Phase::Forwarding { number, .. } if number == journey)
    }

    /// Its attempts count from zero; what was before is its past.
    pub fn begin_anew(&mut self) {
        let (attempts, failures) = (self.state.attempts, self.state.failures);
        (self.state.attempts, self.state.failures) = (0, 0);
        let past = self.state.past_mut();
        (past.attempts, past.failures) = (past.attempts + attempts, past.failures + failures);
    }

    /// Its due time is to change, and its delay is kept.
    pub fn keep_delay(&mut self) {
        let delay = self.state.delay();
        self.state.past_mut().delay = Some(delay);
    }

    /// Sets the time exactly.
    pub fn set_at(&mut self, at: Timestamp) {
        self.at = at;
        self.latest = at;
    }

    fn fits(&self, actual: &Shadow) -> bool {
        self.table == actual.table
            && self.seq.is_none_or(|seq| seq == actual.seq)
            && (self.at..=self.latest).contains(&actual.at)
            && self.group == actual.group
            && self.body_fits(&actual.body)
            && self.state_fits(&actual.state)
    }

    fn body_fits(&self, actual: &Bytes) -> bool {
        match &self.body {
            Body::Exactly(body) => body == actual,
            Body::EndsWith(body) => actual.ends_with(body),
        }
    }

    /// The queue is not compared: it is noted when a row is handed out or dies, and then checked there.
    fn state_fits(&self, actual: &State) -> bool {
        let phase_fits = match (&self.state.phase, &actual.phase) {
            (Phase::Spread(_), Phase::Spread(_)) => true,
            (Phase::Forwarding { to, death, .. }, Phase::Forwarding { to: actual_to, death: actual, .. }) => {
                to == actual_to && death.reason == actual.reason && death.at == actual.at
            }
            (Phase::Dead(death), Phase::Dead(actual)) => death.reason == actual.reason && death.at == actual.at,
            (phase, actual) => phase == actual,
        };
        let rest = |state: &State| State { phase: Phase::Waiting, queue: None, ..state.clone() };
        phase_fits && rest(&self.state) == rest(actual)
    }
}
