//! One number for each row of all shards.

use punctual_core::store::ShardId;

/// The number of a row, told from all others of the node: stable for as long as the row is there, never given to
/// another one, and rising with the time of arrival within a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(pub u64);

impl Number {
    /// The number of a row that bears this one in its shard, one of so many.
    pub(crate) fn of(shard: ShardId, seq: u64, shards: u16) -> Number {
        Number(seq * u64::from(shards) + u64::from(shard.0))
    }

    /// The shard, and the row's number there.
    pub(crate) fn parts(self, shards: u16) -> (ShardId, u64) {
        let shards = u64::from(shards);
        (ShardId((self.0 % shards) as u16), self.0 / shards)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_says_shard_and_row() {
        for shards in [1, 3, 64] {
            for (shard, seq) in [(0, 0), (shards - 1, 7), (shards / 2, 1 << 40)] {
                assert_eq!(Number::of(ShardId(shard), seq, shards).parts(shards), (ShardId(shard), seq));
            }
        }
        assert_eq!(Number::of(ShardId(0), 7, 1), Number(7), "with one shard it is the row's own");
    }
}
