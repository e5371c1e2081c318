//! Which shard a task belongs to.
//!
//! **Invariant**: this is part of the stored format. A task is looked for where this function says,
//! so for a given number of shards its results never change; a test pins them. With `m` times as many shards, what was in
//! shard `p` is in one of the `m` from `m·p` on: so a store can grow shard by shard.

use crate::store::{Key, ShardId};

/// The shard of a task: FNV-1a (64 bits) over the topic, a zero byte and the id, spread by the
/// finisher of MurmurHash3, scaled to the number of shards. A name cannot contain a zero byte, so
/// ("ab", "c") and ("a", "bc") differ.
pub fn shard_of(topic: &str, id: &str, shards: u16) -> ShardId {
    if shards == 1 {
        return ShardId(0);
    }
    let hash = spread(fnv1a(fnv1a(fnv1a(0xcbf2_9ce4_8422_2325, topic.as_bytes()), &[0]), id.as_bytes()));
    // The upper bits, scaled: without the bias and the division of a remainder.
    ShardId(((u128::from(hash) * u128::from(shards)) >> 64) as u16)
}

/// The shard of a task or of one of its deliveries.
pub fn shard_of_key(key: &Key, shards: u16) -> ShardId {
    shard_of(key.topic(), key.id(), shards)
}

fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// FNV leaves the upper bits of short texts alike.
fn spread(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by another program, so that this one is not its own witness.
    #[test]
    fn the_shards_of_stored_tasks_never_change() {
        let pinned = [
            (("orders", "1"), [1, 4, 38, 608]),
            (("orders", "3"), [1, 6, 56, 902]),
            (("mail", "7"), [0, 2, 24, 388]),
            (("注文", "日本"), [1, 5, 49, 795]),
            (("a", "bc"), [1, 6, 55, 893]),
            (("ab", "c"), [1, 5, 50, 801]),
            (("x", "y"), [1, 3, 35, 564]),
        ];
        for ((topic, id), expected) in pinned {
            assert_eq!([2, 7, 64, 1_024].map(|shards| shard_of(topic, id, shards).0), expected, "{topic}/{id}");
        }
        assert_eq!(shard_of("orders", "1", 1), ShardId(0));
    }

    #[test]
    fn the_hash_is_the_published_one() {
        let hash = |text: &str| fnv1a(0xcbf2_9ce4_8422_2325, text.as_bytes());
        assert_eq!((hash("a"), hash("foobar")), (0xaf63_dc4c_8601_ec8c, 0x8594_4171_f739_67e8));
    }

    #[test]
    fn tasks_are_spread_evenly() {
        let mut counts = [0u32; 16];
        for id in 0..16_000 {
            counts[usize::from(shard_of("orders", &id.to_string(), 16).0)] += 1;
        }
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
    }

    #[test]
    fn what_is_in_a_shard_goes_to_its_own_children_only() {
        for (shards, times) in [(1, 2), (1, 7), (3, 2), (16, 4), (64, 64)] {
            for id in 0..2_000 {
                let of = |shards| shard_of("orders", &id.to_string(), shards).0;
                assert_eq!(of(shards * times) / times, of(shards), "{shards} shards, {times} times as many");
            }
        }
    }

    #[test]
    fn a_delivery_is_where_its_task_is() {
        for id in ["a", "b", "c", "d"] {
            let key = Key::new("topic", id, "queue");
            assert_eq!(shard_of_key(&key, 7), shard_of_key(&key.of_task(), 7));
        }
    }
}
