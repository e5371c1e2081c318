//! One number for each row of all shards.

/// The number of a row, told from all others of the node: stable for as long as the row is there, also if the store gets more
/// shards; never given to another one, and rising with the time of arrival within a shard. What it is made of:
/// [`Eras`](punctual_core::division::Eras).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(pub u64);
