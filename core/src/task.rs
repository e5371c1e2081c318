//! A task as it is handed in, and the bytes its unchanging part is stored as.

use bytes::{BufMut, Bytes, BytesMut};

use crate::answer::Refused;
use crate::name::Name;
use crate::settings::Retry;
use crate::shard::HEADER_PREFIX;
use crate::time::{Millis, Timestamp};

/// Names and values that travel with a body.
pub type Headers = Vec<(String, String)>;

/// A task to schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Where it is scheduled.
    pub topic: Name,
    /// Its id within the topic; without, one is made up.
    pub id: Option<Name>,
    /// What is handed to the consumer.
    pub body: Bytes,
    /// What is handed over along with the body.
    pub headers: Headers,
    /// What bindings look at.
    pub routing_key: Option<Name>,
    /// When it is due.
    pub when: When,
    /// What it can be found by together with others.
    pub key: Option<Name>,
    /// Lower comes first; without, the topic's.
    pub priority: Option<u32>,
    /// How long after its due time it is worth handing over; without, the topic's.
    pub ttl: Option<Millis>,
    /// What happens when it fails; without, the queue's.
    pub retry: Option<Retry>,
    /// Whether a task of the same id that was not handed out yet gives way to this one.
    pub replace: bool,
}

impl Task {
    /// A task that is due at once.
    pub fn new(topic: Name, body: impl Into<Bytes>) -> Task {
        Task {
            topic,
            id: None,
            body: body.into(),
            headers: Headers::new(),
            routing_key: None,
            when: When::After(Millis::ZERO),
            key: None,
            priority: None,
            ttl: None,
            retry: None,
            replace: false,
        }
    }

    /// The same task under this id.
    #[must_use]
    pub fn id(mut self, id: Name) -> Task {
        self.id = Some(id);
        self
    }

    /// The same task, due so long from now.
    #[must_use]
    pub fn after(mut self, delay: impl Into<Millis>) -> Task {
        self.when = When::After(delay.into());
        self
    }

    /// The same task, due at this instant.
    #[must_use]
    pub fn at(mut self, due: Timestamp) -> Task {
        self.when = When::At(due);
        self
    }

    /// The same task with this key.
    #[must_use]
    pub fn key(mut self, key: Name) -> Task {
        self.key = Some(key);
        self
    }

    /// The same task with this priority.
    #[must_use]
    pub fn priority(mut self, priority: u32) -> Task {
        self.priority = Some(priority);
        self
    }
}

/// When something is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At this instant.
    At(Timestamp),
    /// So long from now.
    After(Millis),
}

impl When {
    /// The instant that is meant; what lies in the past is due now.
    pub fn due(self, now: Timestamp) -> Timestamp {
        match self {
            When::At(due) => due.max(now).min(Timestamp::LAST),
            When::After(delay) => now.plus(delay),
        }
    }
}

/// How large a task may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the body.
    pub body_bytes: usize,
}

impl Limits {
    /// Headers of one task.
    pub const HEADER_ENTRIES: usize = 64;
    /// Bytes of all header names and values of one task.
    pub const HEADER_BYTES: usize = 16 << 10;

    /// Whether a task keeps the limits.
    pub fn check(&self, body: &Bytes, headers: &Headers) -> Result<(), Refused> {
        if body.len() > self.body_bytes {
            return Err(Refused::BodyTooLarge { bytes: body.len(), limit: self.body_bytes });
        }
        // What Punctual itself says in headers must not push a task over the limit.
        let own = headers.iter().filter(|(name, _)| !name.starts_with(HEADER_PREFIX));
        let (entries, bytes) =
            own.fold((0, 0), |(entries, bytes), (name, value)| (entries + 1, bytes + name.len() + value.len()));
        if entries > Limits::HEADER_ENTRIES || bytes > Limits::HEADER_BYTES {
            return Err(Refused::HeadersTooLarge { entries, bytes });
        }
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { body_bytes: 1 << 20 }
    }
}

/// Lays headers and body into one piece: the headers' length in four bytes, the headers, the body.
/// The body comes last so that it can be handed out as a slice, without a copy.
pub(crate) fn pack(headers: &Headers, body: &Bytes) -> Bytes {
    let headers = if headers.is_empty() {
        Vec::new()
    } else {
        postcard::to_stdvec(headers).expect("text can be laid out as bytes")
    };
    let mut packed = BytesMut::with_capacity(4 + headers.len() + body.len());
    packed.put_u32_le(headers.len() as u32);
    packed.put_slice(&headers);
    packed.put_slice(body);
    packed.freeze()
}

/// Takes apart what [`pack`] laid together.
pub(crate) fn unpack(packed: &Bytes) -> (Headers, Bytes) {
    let (length, rest) = packed.split_first_chunk::<4>().expect("a stored body starts with its headers' length");
    let length = u32::from_le_bytes(*length) as usize;
    let headers = if length == 0 {
        Headers::new()
    } else {
        postcard::from_bytes(&rest[..length]).expect("stored headers can be read back")
    };
    (headers, packed.slice(4 + length..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_body_come_back_as_they_went_in() {
        for headers in [Headers::new(), vec![("a".into(), "b".into()), ("c".into(), String::new())]] {
            for body in [Bytes::new(), Bytes::from_static(b"\0\xff body")] {
                assert_eq!(unpack(&pack(&headers, &body)), (headers.clone(), body));
            }
        }
    }

    #[test]
    fn the_past_is_due_now_and_the_far_future_is_the_last_instant() {
        let now = Timestamp::from_millis(1_000);
        assert_eq!(When::At(Timestamp::from_millis(1)).due(now), now);
        assert_eq!(When::After(Millis(u64::MAX)).due(now), Timestamp::LAST);
        assert_eq!(When::At(Timestamp::NEVER).due(now), Timestamp::LAST);
    }

    #[test]
    fn limits_are_inclusive() {
        let limits = Limits { body_bytes: 3 };
        let headers = |entries: usize| vec![(String::new(), String::new()); entries];
        assert_eq!(limits.check(&Bytes::from_static(b"abc"), &headers(64)), Ok(()));
        assert!(limits.check(&Bytes::from_static(b"abcd"), &headers(0)).is_err());
        assert!(limits.check(&Bytes::new(), &headers(65)).is_err());
        assert!(limits.check(&Bytes::new(), &vec![("n".into(), "v".repeat(16 << 10))]).is_err());
    }
}
