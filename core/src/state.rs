//! The changing part of a row: what is stored of a task or delivery beside its body.
//!
//! The layout is stable. A new version gets a new leading number, and old ones stay readable.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::attempt::{Attempt, AttemptLog, Undone};
use crate::name::Name;
use crate::settings::Retry;
use crate::time::{Millis, Timestamp};

/// Why a stored state cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableState {
    /// It was not written by this program, nor by one before it.
    #[error("a newer version of Punctual wrote this row: do not go back to an older one")]
    Newer,
    /// It was not written by any.
    #[error("a stored state cannot be read back")]
    Damaged,
}

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
    /// How long a consumer may work on it if it does not say, if that differs from the queue's settings.
    #[serde(skip)]
    pub lease: Option<Millis>,
    /// What happened to the row before, once there is something to tell.
    #[serde(skip)]
    pub past: Option<Box<Past>>,
    /// How long a lease on it lasts at most, if that is less than the queue allows.
    #[serde(skip)]
    pub max_lease: Option<Millis>,
    /// The attempts that did not end in the work being done, once there is one.
    #[serde(skip)]
    pub log: Option<Box<AttemptLog>>,
    /// Which sweeps have come to it, if they are not through or it can be taken back what the last one did.
    #[serde(skip)]
    pub swept: Option<Box<SweepMark>>,
}

/// What a sweep leaves on a row that it came to: by it the change can be taken back, and is not made twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepMark {
    /// The sweep's number.
    pub by: u64,
    /// When the row was due and when it was to wake, if the sweep changed it and nobody else has since.
    pub before: Option<(Timestamp, Timestamp)>,
    /// Others that came to the row and were not through when this was written.
    pub others: Vec<u64>,
}

impl SweepMark {
    /// All sweeps that are known to have come to the row.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.by).chain(self.others.iter().copied())
    }
}

/// What happened to a row that its other fields do not tell any more. It changes nothing about what happens next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// How often it was handed out before its attempts were counted from zero again.
    pub attempts: u32,
    /// How many of those attempts failed.
    pub failures: u32,
    /// How often its consumer gave it back.
    pub releases: u32,
    /// How often its consumer said that the work cannot be done.
    pub rejections: u32,
    /// How often it was called back: as a dead letter, as finished, or before its time.
    pub replays: u32,
    /// The delay that it was last given, if its due time does not tell it.
    pub delay: Option<Millis>,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// Its task, and with that its body, is not there any more.
    Lost,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 6] =
        [Reason::Rejected, Reason::OutOfAttempts, Reason::Expired, Reason::PushedOut, Reason::Unrouted, Reason::Lost];

    /// The word for it in headers, metrics and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Rejected => "rejected",
            Reason::OutOfAttempts => "out-of-attempts",
            Reason::Expired => "expired",
            Reason::PushedOut => "pushed-out",
            Reason::Unrouted => "unrouted",
            Reason::Lost => "lost",
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

/// The version of the layout of almost all rows.
const PLAIN: u8 = 1;
/// The same, followed by a lease time and a past. It is written only if there is one of them.
const WITH_TAIL: u8 = 2;
/// The same, followed by a longest lease and a log of attempts. It is written only if there is one of them.
const WITH_LOG: u8 = 3;
/// The same, followed by the mark of a sweep. It is written only if there is one.
const WITH_MARK: u8 = 4;

impl State {
    /// The stored form.
    pub(crate) fn encode(&self) -> Bytes {
        let version = self.version();
        // Almost every state fits on the stack, and then takes one allocation of its exact size.
        let mut bytes = [version; 128];
        if let Some(length) = self.lay_into(version, &mut bytes[1..]) {
            return Bytes::copy_from_slice(&bytes[..=length]);
        }
        let mut bytes = postcard::to_extend(self, vec![version]).expect("a state can be laid out as bytes");
        if version >= WITH_TAIL {
            bytes = postcard::to_extend(&(self.lease, &self.past), bytes).expect("a tail can be laid out as bytes");
        }
        if version >= WITH_LOG {
            bytes = postcard::to_extend(&(self.max_lease, &self.log), bytes).expect("a log can be laid out as bytes");
        }
        if let Some(mark) = &self.swept {
            bytes = postcard::to_extend(mark, bytes).expect("a mark can be laid out as bytes");
        }
        bytes.into()
    }

    /// The first version that has room for all there is to tell.
    fn version(&self) -> u8 {
        if self.swept.is_some() {
            WITH_MARK
        } else if self.max_lease.is_some() || self.log.is_some() {
            WITH_LOG
        } else if self.lease.is_some() || self.past.is_some() {
            WITH_TAIL
        } else {
            PLAIN
        }
    }

    /// Lays it out without its version, if there is room, and says how many bytes that takes.
    fn lay_into(&self, version: u8, room: &mut [u8]) -> Option<usize> {
        let mut length = postcard::to_slice(self, room).ok()?.len();
        if version >= WITH_TAIL {
            length += postcard::to_slice(&(self.lease, &self.past), &mut room[length..]).ok()?.len();
        }
        if version >= WITH_LOG {
            length += postcard::to_slice(&(self.max_lease, &self.log), &mut room[length..]).ok()?.len();
        }
        if let Some(mark) = &self.swept {
            length += postcard::to_slice(mark, &mut room[length..]).ok()?.len();
        }
        Some(length)
    }

    /// Reads the stored form.
    ///
    /// # Panics
    /// If it cannot be [read back](State::read_back): then nothing that a shard does would be right.
    pub fn decode(bytes: &[u8]) -> State {
        State::read_back(bytes).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same for bytes that somebody else may have written.
    pub fn read_back(bytes: &[u8]) -> Result<State, UnreadableState> {
        let damaged = |_| UnreadableState::Damaged;
        let (version, rest) = bytes.split_first().ok_or(UnreadableState::Damaged)?;
        match *version {
            PLAIN | WITH_TAIL | WITH_LOG | WITH_MARK => {}
            0 => return Err(UnreadableState::Damaged),
            _ => return Err(UnreadableState::Newer),
        }
        let (mut state, tail): (State, &[u8]) = postcard::take_from_bytes(rest).map_err(damaged)?;
        match *version {
            WITH_TAIL => (state.lease, state.past) = postcard::from_bytes(tail).map_err(damaged)?,
            WITH_LOG => {
                let (tail, log): (_, &[u8]) = postcard::take_from_bytes(tail).map_err(damaged)?;
                (state.lease, state.past) = tail;
                (state.max_lease, state.log) = postcard::from_bytes(log).map_err(damaged)?;
            }
            WITH_MARK => {
                let (tail, rest): (_, &[u8]) = postcard::take_from_bytes(tail).map_err(damaged)?;
                let (log, mark): (_, &[u8]) = postcard::take_from_bytes(rest).map_err(damaged)?;
                ((state.lease, state.past), (state.max_lease, state.log)) = (tail, log);
                state.swept = Some(Box::new(postcard::from_bytes(mark).map_err(damaged)?));
            }
            _ => {}
        }
        Ok(state)
    }

    /// The past, to be added to.
    pub fn past_mut(&mut self) -> &mut Past {
        self.past.get_or_insert_default()
    }

    /// Notes how the attempt that is under way ended without the work being done. A row that is not with a consumer
    /// has none.
    pub fn log_attempt(&mut self, at: Timestamp, undone: Undone, note: Option<&str>) {
        let Phase::Leased { holder, .. } = &self.phase else { return };
        let (number, holder, note) = (self.attempts, holder.clone(), note.map(str::to_owned));
        self.log.get_or_insert_default().push(Attempt { number, at, holder, undone, note });
    }

    /// The delay that it was last given: how long after it was handed in, or given back, it was to be available.
    pub fn delay(&self) -> Millis {
        let given = self.past.as_ref().and_then(|past| past.delay);
        given.unwrap_or_else(|| self.due.since(self.scheduled_at))
    }

    /// Its due time is about to become another one that no delay led to: the delay is kept.
    pub(crate) fn keep_delay(&mut self) {
        let delay = self.delay();
        self.past_mut().delay = Some(delay);
    }

    /// Attempts and failures count from zero again.
    pub(crate) fn begin_anew(&mut self) {
        let (attempts, failures) = (std::mem::take(&mut self.attempts), std::mem::take(&mut self.failures));
        let past = self.past_mut();
        past.attempts = past.attempts.saturating_add(attempts);
        past.failures = past.failures.saturating_add(failures);
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
            lease: None,
            past: None,
            max_lease: None,
            log: None,
            swept: None,
        }
    }

    fn log(notes: &[&str]) -> Option<Box<AttemptLog>> {
        let mut log = AttemptLog::default();
        for (note, number) in notes.iter().zip(1..) {
            let (at, holder) = (Timestamp::from_millis(9), Name::new("c").unwrap());
            log.push(Attempt { number, at, holder, undone: Undone::Released, note: Some((*note).into()) });
        }
        Some(Box::new(log))
    }

    fn past() -> Past {
        Past { attempts: 1, failures: 2, releases: 3, rejections: 4, replays: 300, delay: Some(Millis(5_000)) }
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
            for (lease, past) in
                [(None, None), (Some(Millis(7)), None), (None, Some(past())), (Some(Millis(7)), Some(past()))]
            {
                for (max_lease, log) in
                    [(None, None), (Some(Millis(8)), None), (None, log(&["a", "b"])), (Some(Millis(8)), log(&["c"]))]
                {
                    let mut state = State { lease, past: past.map(Box::new), max_lease, log, ..state(phase.clone()) };
                    assert_eq!(State::decode(&state.encode()), state);
                    state.swept = Some(Box::new(SweepMark { by: u64::MAX, before: None, others: vec![7, u64::MAX] }));
                    assert_eq!(State::decode(&state.encode()), state);
                }
            }
        }
    }

    #[test]
    fn a_long_state_comes_back_too() {
        let part = |number: usize| Part { queue: Name::new(format!("queue-{number}")).unwrap(), finished: None };
        let mut state = state(Phase::Spread((0..100).map(part).collect()));
        assert_eq!(State::decode(&state.encode()), state);
        state.past = Some(Box::new(past()));
        assert_eq!(State::decode(&state.encode()), state);
        state.log = log(&["no"; 9]);
        assert_eq!(State::decode(&state.encode()), state);
    }

    /// The tail may be what does not fit.
    #[test]
    fn a_state_of_any_length_comes_back() {
        for length in 1..=Name::MAX_BYTES {
            let routing_key = Some(Name::new("r".repeat(length)).unwrap());
            let mut state = State { routing_key, lease: Some(Millis(u64::MAX)), ..state(Phase::Waiting) };
            assert_eq!(State::decode(&state.encode()), state, "{length}");
            state.log = log(&["no"]);
            assert_eq!(State::decode(&state.encode()), state, "{length}");
            let before = Some((Timestamp::ZERO, Timestamp::LAST));
            state.swept = Some(Box::new(SweepMark { by: 1 << 50, before, others: Vec::new() }));
            assert_eq!(State::decode(&state.encode()), state, "{length}");
        }
    }

    /// The bytes of version 1, as they stand in stores that exist.
    #[test]
    fn version_1_stays_readable() {
        let stored = [1, 0, 1, 2, 3, 1, 4, 1, 5, 1, 232, 7, 128, 221, 219, 1, 10, 1, 3, 97, 46, 98, 1, 1, 113, 5, 6];
        assert_eq!(State::decode(&stored), state(Phase::Waiting));
        assert_eq!(state(Phase::Waiting).encode(), stored.as_slice(), "what has no tail is written as before");
    }

    /// The bytes of version 2: those of version 1, then the lease time and the past.
    #[test]
    fn version_2_stays_readable() {
        let plain = [0, 1, 2, 3, 1, 4, 1, 5, 1, 232, 7, 128, 221, 219, 1, 10, 1, 3, 97, 46, 98, 1, 1, 113, 5, 6];
        let with = |tail: &[u8]| [&[2], &plain[..], tail].concat();
        let (lease, past) = (Some(Millis(60_000)), Some(Box::new(past())));
        let states = [
            (with(&[1, 224, 212, 3, 0]), State { lease, ..state(Phase::Waiting) }),
            (with(&[0, 1, 1, 2, 3, 4, 172, 2, 1, 136, 39]), State { past: past.clone(), ..state(Phase::Waiting) }),
            (
                with(&[1, 224, 212, 3, 1, 1, 2, 3, 4, 172, 2, 1, 136, 39]),
                State { lease, past, ..state(Phase::Waiting) },
            ),
        ];
        for (stored, state) in states {
            assert_eq!(State::decode(&stored), state);
            assert_eq!(state.encode(), stored);
        }
    }

    /// The bytes of version 3: those of version 2, then the longest lease and the log.
    #[test]
    fn version_3_stays_readable() {
        let plain = [0, 1, 2, 3, 1, 4, 1, 5, 1, 232, 7, 128, 221, 219, 1, 10, 1, 3, 97, 46, 98, 1, 1, 113, 5, 6];
        let with = |tail: &[u8]| [&[3], &plain[..], tail].concat();
        let states = [
            (with(&[0, 0, 1, 8, 0]), State { max_lease: Some(Millis(8)), ..state(Phase::Waiting) }),
            (
                with(&[1, 7, 0, 0, 1, 1, 1, 9, 1, 99, 2, 1, 2, 110, 111]),
                State { lease: Some(Millis(7)), log: log(&["no"]), ..state(Phase::Waiting) },
            ),
        ];
        for (stored, state) in states {
            assert_eq!(State::decode(&stored), state);
            assert_eq!(state.encode(), stored);
        }
    }

    /// The bytes of version 4: those of version 3, then the mark of a sweep.
    #[test]
    fn version_4_stays_readable() {
        let plain = [0, 1, 2, 3, 1, 4, 1, 5, 1, 232, 7, 128, 221, 219, 1, 10, 1, 3, 97, 46, 98, 1, 1, 113, 5, 6];
        let with = |tail: &[u8]| [&[4], &plain[..], tail].concat();
        let moved = (Timestamp::from_millis(2), Timestamp::from_millis(300));
        let mark = |before, others| Some(Box::new(SweepMark { by: 9, before, others }));
        let marked = |before, others| State { swept: mark(before, others), ..state(Phase::Waiting) };
        let states = [
            (with(&[0, 0, 0, 0, 9, 0, 2, 7, 8]), marked(None, vec![7, 8])),
            (with(&[1, 7, 0, 1, 8, 0, 9, 1, 2, 172, 2, 0]), {
                State { lease: Some(Millis(7)), max_lease: Some(Millis(8)), ..marked(Some(moved), Vec::new()) }
            }),
        ];
        for (stored, state) in states {
            assert_eq!(State::decode(&stored), state);
            assert_eq!(state.encode(), stored);
        }
    }

    #[test]
    #[should_panic(expected = "a newer version of Punctual")]
    fn a_newer_version_is_not_guessed_at() {
        State::decode(&[5, 0, 1, 2, 3, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn damaged_bytes_are_refused_and_never_panic() {
        let whole = State { log: log(&["no"]), ..state(Phase::Waiting) }.encode();
        for bytes in [&[][..], &[0], &[0, 1, 2], &whole[..1], &whole[..whole.len() - 1]] {
            assert_eq!(State::read_back(bytes), Err(UnreadableState::Damaged), "{bytes:?}");
        }
        for (at, bit) in (0..whole.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut damaged = whole.to_vec();
            damaged[at] ^= 1 << bit;
            let _ = State::read_back(&damaged);
        }
    }

    #[test]
    fn the_delay_is_the_one_last_given() {
        let mut state = state(Phase::Waiting);
        assert_eq!(state.delay(), Millis(1));
        state.keep_delay();
        state.due = Timestamp::from_millis(100);
        assert_eq!(state.delay(), Millis(1), "it was called back before its time");
        state.past_mut().delay = Some(Millis(7));
        state.keep_delay();
        assert_eq!(state.delay(), Millis(7));
    }
}
