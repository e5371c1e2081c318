//! Numbers as PostgreSQL keeps them: it has signs, and we have none.

use punctual_core::Timestamp;
use punctual_core::store::ShardId;

/// Numbers and times are below 2^63; what is more stands for the end of all.
pub(crate) fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A number that [`number`] has written.
pub(crate) fn stored_number(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// A time that [`number`] has written.
pub(crate) fn stored_time(millis: i64) -> Timestamp {
    match stored_number(millis) {
        never if never == Timestamp::NEVER.as_millis() => Timestamp::NEVER,
        millis => Timestamp::from_millis(millis),
    }
}

/// The bits of a number that uses all of them.
pub(crate) fn bits(value: u64) -> i64 {
    value.cast_signed()
}

/// A number that [`bits`] has written.
pub(crate) fn stored_bits(value: i64) -> u64 {
    value.cast_unsigned()
}

pub(crate) fn shard_number(shard: ShardId) -> i32 {
    i32::from(shard.0)
}

/// A shard that [`shard_number`] has written.
pub(crate) fn stored_shard(number: i32) -> Option<ShardId> {
    u16::try_from(number).ok().map(ShardId)
}
