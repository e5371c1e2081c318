//! Names, times, numbers and keys in fields.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use punctual_core::store::{Fence, Incarnation, Key, Position, ShardId};
use punctual_core::{Lease, Millis, Name, Timestamp};

use super::Unclear;
use super::field::Field;

/// What stands in a field as it is.
macro_rules! as_it_is {
    ($($type:ty),*) => {$(
        impl Field<$type> for $type {
            fn put(value: &$type) -> $type {
                value.clone()
            }
            fn take(self) -> Result<$type, Unclear> {
                Ok(self)
            }
        }
    )*};
}

as_it_is!(bool, u32, u64, i64, String, Bytes);

/// Numbers that have less room than their field, and are refused if they do not fit.
macro_rules! narrow {
    ($($type:ty as $field:ty, $put:expr, $take:expr;)*) => {$(
        impl Field<$type> for $field {
            fn put(value: &$type) -> $field {
                $put(value)
            }
            fn take(self) -> Result<$type, Unclear> {
                $take(self).ok_or_else(|| Unclear::because(format_args!("{self} is out of range")))
            }
        }
    )*};
}

narrow! {
    u8 as u32, |value: &u8| u32::from(*value), |field| u8::try_from(field).ok();
    usize as u64, |value: &usize| *value as u64, |field| usize::try_from(field).ok();
    ShardId as u32, |value: &ShardId| u32::from(value.0), |field| u16::try_from(field).ok().map(ShardId);
    Fence as u64, |value: &Fence| value.0, |field| Some(Fence(field));
    Millis as u64, |value: &Millis| value.0, |field| Some(Millis(field));
    Timestamp as u64, |value: &Timestamp| value.as_millis(), Timestamp::read_back;
}

impl Field<Name> for String {
    fn put(value: &Name) -> String {
        value.as_str().to_owned()
    }

    /// Names that only an old store has, such as `.`, are said between nodes too.
    fn take(self) -> Result<Name, Unclear> {
        Name::read_back(&self).map_err(Unclear::because)
    }
}

/// Nothing, which is there.
impl Field<()> for bool {
    fn put(_: &()) -> bool {
        true
    }
    fn take(self) -> Result<(), Unclear> {
        Ok(())
    }
}

/// The name of a field of a request. Callers expect a text of the program; those that come from elsewhere are kept for
/// ever, each once, and no more than there can be.
impl Field<&'static str> for String {
    fn put(value: &&'static str) -> String {
        (*value).to_owned()
    }

    fn take(self) -> Result<&'static str, Unclear> {
        const MOST: usize = 200;
        const LONGEST: usize = 64;
        static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(field) = kept.get(self.as_str()) {
            return Ok(field);
        }
        if kept.len() == MOST || self.len() > LONGEST {
            return Ok("request");
        }
        let field: &'static str = Box::leak(self.into_boxed_str());
        kept.insert(field);
        Ok(field)
    }
}

/// The key of a row that a task has: other rows are nobody else's business.
#[derive(prost::Message)]
pub(super) struct KeyForm {
    #[prost(string, tag = 1)]
    topic: String,
    #[prost(string, tag = 2)]
    id: String,
    /// Empty for the task itself.
    #[prost(string, tag = 3)]
    queue: String,
}

impl Field<Key> for KeyForm {
    fn put(value: &Key) -> KeyForm {
        KeyForm { topic: value.topic().to_owned(), id: value.id().to_owned(), queue: value.queue().to_owned() }
    }

    fn take(self) -> Result<Key, Unclear> {
        let part = |text: &str, part| Name::read_back(text).map_err(|bad| Unclear::because(bad).within(part));
        part(&self.topic, "topic")?;
        part(&self.id, "id")?;
        if !self.queue.is_empty() {
            part(&self.queue, "queue")?;
        }
        Ok(Key::new(&self.topic, &self.id, &self.queue))
    }
}
needed!(KeyForm, Key);

form! {
    LeaseForm of Lease {
        #[prost(message, optional, tag = 1)] key: Option<KeyForm>,
        #[prost(uint64, tag = 2)] token: u64,
    }
}

form! {
    PositionForm of Position {
        #[prost(uint64, tag = 1)] at: u64,
        #[prost(uint64, tag = 2)] seq: u64,
    }
}

form! {
    IncarnationForm of Incarnation {
        #[prost(string, tag = 1)] node: String,
        #[prost(fixed64, tag = 2)] number: u64,
    }
}
