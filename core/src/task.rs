//! A task as it is handed in, and the bytes its unchanging part is stored as.

use bytes::{BufMut, Bytes, BytesMut};

use crate::answer::Refused;
use crate::name::Name;
use crate::settings::Retry;
use crate::shard::HEADER_PREFIX;
use crate::time::{Millis, Timestamp};

/// Why a lease has some length.
pub(crate) const NO_LEASE: &str = "0 ms is over before work can begin: use a longer time, or leave it out";

/// Why a time to live has some length.
pub(crate) const NO_TTL: &str = "0 ms is over before a consumer can get the task: use a longer time, or leave it out";

/// Names and values that travel with a body.
pub type Headers = Vec<(String, String)>;

/// How a body was handed in, so that a door that speaks text gives it back as it came. It changes
/// nothing about the body: whoever handed it in vouches for what it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As any bytes.
    #[default]
    Bytes,
    /// As a text, in UTF-8.
    Text,
    /// As a JSON value, in UTF-8.
    Json,
}

/// A task to schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Where it is scheduled.
    pub topic: Name,
    /// Its id within the topic; without, one is made up.
    pub id: Option<Name>,
    /// What is handed to the consumer.
    pub body: Bytes,
    /// How the body was handed in.
    pub form: Form,
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
    /// How long a consumer may work on it if it does not say; without, the queue's.
    pub lease: Option<Millis>,
    /// How long a lease on it lasts at most; without, or if that is less, the queue's.
    pub max_lease: Option<Millis>,
    /// Whether a task of the same id that was not handed out yet, or is finished, gives way to this one.
    pub replace: bool,
}

impl Task {
    /// A task that is due at once.
    pub fn new(topic: Name, body: impl Into<Bytes>) -> Task {
        Task {
            topic,
            id: None,
            body: body.into(),
            form: Form::default(),
            headers: Headers::new(),
            routing_key: None,
            when: When::After(Millis::ZERO),
            key: None,
            priority: None,
            ttl: None,
            retry: None,
            lease: None,
            max_lease: None,
            replace: false,
        }
    }

    /// Whether what it says of itself can be meant. How large it may be is for the [`Limits`] to say.
    pub fn check(&self) -> Result<(), Refused> {
        let invalid = |field, why: &str| Err(Refused::Invalid { field, why: why.into() });
        if self.lease == Some(Millis::ZERO) {
            return invalid("lease", NO_LEASE);
        }
        if self.max_lease == Some(Millis::ZERO) {
            return invalid("max_lease", NO_LEASE);
        }
        if self.ttl == Some(Millis::ZERO) {
            return invalid("ttl", NO_TTL);
        }
        if let (Some(lease), Some(max)) = (self.lease, self.max_lease)
            && lease > max
        {
            return invalid("lease", "it is longer than `max_lease`: leave one of the two out");
        }
        match self.retry.map_or(Ok(()), |retry| retry.check()) {
            Ok(()) => Ok(()),
            Err(why) => Err(Refused::Invalid { field: "retry", why }),
        }
    }

    /// The same task under this id.
    #[must_use]
    pub fn id(mut self, id: Name) -> Task {
        self.id = Some(id);
        self
    }

    /// The same task with a body that was handed in like this.
    #[must_use]
    pub fn form(mut self, form: Form) -> Task {
        self.form = form;
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
    /// The instant that is meant, asked for at `from`; an instant that has passed is now, and so is no delay at all.
    pub fn due(self, now: Timestamp, from: Timestamp) -> Timestamp {
        match self {
            When::At(due) => due.max(now).min(Timestamp::LAST),
            When::After(Millis::ZERO) => now,
            When::After(delay) => from.plus(delay),
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

    /// Refuses headers that only Punctual sets: what they say of a dead letter's way would not be true.
    pub fn check_names(headers: &Headers) -> Result<(), Refused> {
        match headers.iter().find(|(name, _)| name.starts_with(HEADER_PREFIX)) {
            None => Ok(()),
            Some((name, _)) => Err(Refused::Invalid {
                field: "headers",
                why: format!("{name:?} is reserved for Punctual: leave out headers that begin with {HEADER_PREFIX}"),
            }),
        }
    }

    /// Whether a task keeps the limits.
    pub fn check(&self, body: &Bytes, headers: &Headers) -> Result<(), Refused> {
        if body.len() > self.body_bytes {
            return Err(Refused::BodyTooLarge { bytes: body.len(), limit: self.body_bytes });
        }
        // What Punctual itself says in headers must not push a task over the limit. It has one of its own.
        for is_ours in [false, true] {
            let some = headers.iter().filter(|(name, _)| name.starts_with(HEADER_PREFIX) == is_ours);
            let (entries, bytes) =
                some.fold((0, 0), |(entries, bytes), (name, value)| (entries + 1, bytes + name.len() + value.len()));
            if entries > Limits::HEADER_ENTRIES || bytes > Limits::HEADER_BYTES {
                return Err(Refused::HeadersTooLarge { entries, bytes });
            }
        }
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { body_bytes: 1 << 20 }
    }
}

/// What a row's unchanging part holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub form: Form,
    pub headers: Headers,
    pub body: Bytes,
}

/// Where the form stands in the four bytes of the headers' length: in its top two bits, which no
/// length reaches.
const FORM_SHIFT: u32 = 30;

/// Lays form, headers and body into one piece: the form and the headers' length in four bytes, the
/// headers, the body. The body comes last so that it can be handed out as a slice, without a copy.
pub(crate) fn pack(form: Form, headers: &Headers, body: &Bytes) -> Bytes {
    let headers = if headers.is_empty() {
        Vec::new()
    } else {
        postcard::to_stdvec(headers).expect("text can be laid out as bytes")
    };
    let mut packed = BytesMut::with_capacity(4 + headers.len() + body.len());
    let length = headers.len() as u32;
    assert!(length < 1 << FORM_SHIFT, "headers are limited, those that Punctual adds too");
    packed.put_u32_le(length | form.number() << FORM_SHIFT);
    packed.put_slice(&headers);
    packed.put_slice(body);
    packed.freeze()
}

/// Takes apart what [`pack`] laid together.
pub(crate) fn unpack(packed: &Bytes) -> Content {
    let (form, headers, body) = parts(packed);
    let body = packed.slice_ref(body);
    let headers = if headers.is_empty() {
        Headers::new()
    } else {
        postcard::from_bytes(headers).expect("stored headers can be read back")
    };
    Content { form, headers, body }
}

/// The same without reading the headers: the form, and the bytes of the headers and the body.
pub(crate) fn parts(packed: &Bytes) -> (Form, &[u8], &[u8]) {
    let (start, rest) = packed.split_first_chunk::<4>().expect("a stored body starts with its headers' length");
    let start = u32::from_le_bytes(*start);
    let (headers, body) = rest.split_at((start & ((1 << FORM_SHIFT) - 1)) as usize);
    (Form::of_number(start >> FORM_SHIFT), headers, body)
}

impl Form {
    /// The number it is stored as. Rows that were written before there were forms have a zero.
    fn number(self) -> u32 {
        match self {
            Form::Bytes => 0,
            Form::Text => 1,
            Form::Json => 2,
        }
    }

    fn of_number(number: u32) -> Form {
        match number {
            0 => Form::Bytes,
            1 => Form::Text,
            2 => Form::Json,
            _ => panic!("a newer version of Punctual wrote this row: do not go back to an older one"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_headers_and_body_come_back_as_they_went_in() {
        for headers in [Headers::new(), vec![("a".into(), "b".into()), ("c".into(), String::new())]] {
            for body in [Bytes::new(), Bytes::from_static(b"\0\xff body")] {
                for form in [Form::Bytes, Form::Text, Form::Json] {
                    let content = Content { form, headers: headers.clone(), body: body.clone() };
                    assert_eq!(unpack(&pack(form, &headers, &body)), content);
                }
            }
        }
    }

    /// The bytes of rows that stand in stores that exist.
    #[test]
    fn bodies_from_before_there_were_forms_stay_readable() {
        let headers = vec![("a".to_owned(), "b".to_owned())];
        let body = Bytes::from_static(b"body");
        let stored = Bytes::from_static(&[5, 0, 0, 0, 1, 1, b'a', 1, b'b', b'b', b'o', b'd', b'y']);
        assert_eq!(unpack(&stored), Content { form: Form::Bytes, headers: headers.clone(), body: body.clone() });
        assert_eq!(pack(Form::Bytes, &headers, &body), stored);
    }

    #[test]
    fn the_past_is_due_now_and_the_far_future_is_the_last_instant() {
        let now = Timestamp::from_millis(1_000);
        assert_eq!(When::At(Timestamp::from_millis(1)).due(now, now), now);
        assert_eq!(When::After(Millis(u64::MAX)).due(now, now), Timestamp::LAST);
        assert_eq!(When::At(Timestamp::NEVER).due(now, now), Timestamp::LAST);
    }

    #[test]
    fn limits_are_inclusive() {
        let limits = Limits { body_bytes: 3 };
        let headers = |entries: usize| vec![(String::new(), String::new()); entries];
        assert_eq!(limits.check(&Bytes::from_static(b"abc"), &headers(64)), Ok(()));
        assert!(limits.check(&Bytes::from_static(b"abcd"), &headers(0)).is_err());
        assert!(limits.check(&Bytes::new(), &headers(65)).is_err());
        for name in ["n", "punctual-n"] {
            assert!(limits.check(&Bytes::new(), &vec![(name.into(), "v".repeat(16 << 10))]).is_err());
        }
    }
}
