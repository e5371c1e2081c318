//! What is written at once.

use super::{Change, Fence, ShardId, Tally};

/// The changes of one step of one shard: all of it becomes durable, or nothing.
///
/// A batch names each row and each tally at most once, so a store may apply it in any order.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The shard that changes.
    pub shard: ShardId,
    /// The fence under which the writer owns it.
    pub fence: Fence,
    /// The batch's place in the shard's chain of commits, which goes on from owner to owner: one more than the latest
    /// that is there, or it has happened already if it is not more than that, or those between are
    /// [lost](super::Refusal::Lost).
    ///
    /// A batch that changes nothing has the serial of the one before it: it only asks whether the fence is in force, and
    /// whether all before it is there.
    pub serial: u64,
    /// What happens to the rows.
    pub changes: Vec<Change>,
    /// What is added to the tallies.
    pub tallies: Vec<(Tally, i64)>,
}

impl Batch {
    /// Whether it changes nothing, and only asks.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.tallies.is_empty()
    }
}

/// How a store is best worked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How many bytes one batch should have at most. It may have more, since one task may, but not many times as many.
    pub batch_bytes: usize,
    /// How many changes one batch should have at most, more or less.
    pub batch_changes: usize,
    /// How many commits may be under way at once, each of other shards.
    pub lanes: usize,
    /// How many requests are worth a step while a commit of their shard is under way. Fewer wait for its end, and for
    /// more to come: where a commit costs much however little is in it, few large ones are sooner done.
    pub worthwhile: usize,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms { batch_bytes: 8 << 20, batch_changes: usize::MAX, lanes: 1, worthwhile: 0 }
    }
}
