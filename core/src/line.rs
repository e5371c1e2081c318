//! What stands in a queue, in its order, and who holds what: the words of those who look.

use crate::name::Name;
use crate::settings::Order;
use crate::store::Position;
use crate::sweep::TimeRange;
use crate::time::Timestamp;

/// A part of what stands in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The queue.
    pub queue: Name,
    /// Which of its deliveries.
    pub stage: Stage,
    /// From here on, in their order.
    pub from: InLine,
    /// At most so many.
    pub limit: usize,
}

/// How far deliveries are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// They wait for a consumer, in the order in which they are handed out.
    Ready,
    /// They are with a consumer, by the ends of their leases.
    Leased,
}

/// Where a delivery stands in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InLine {
    /// Its priority, if that counts: among those that are with a consumer it is zero.
    pub priority: u32,
    /// Where its row stands among the live ones.
    pub position: Position,
}

impl InLine {
    /// Before all others.
    pub const START: InLine = InLine { priority: 0, position: Position::START };

    /// What tells who comes first, in this order.
    pub fn rank(&self, order: Order) -> (u32, Timestamp, u64) {
        let Position { at, seq } = self.position;
        let at = match order {
            Order::Due => at,
            Order::Arrival => Timestamp::ZERO,
        };
        (self.priority, at, seq)
    }
}

/// A part of what is with consumers in a shard, whichever queue it is of, by the ends of the leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leases {
    /// From here on; if the latest come first, before it.
    pub from: Position,
    /// Only those that end in this time.
    pub ends: TimeRange,
    /// Whether those that end last come first.
    pub latest_first: bool,
    /// At most so many.
    pub limit: usize,
}

/// What stands in a queue of one shard, or is with consumers there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lined {
    /// What is ready: what decides who comes first, beside the priority.
    pub order: Order,
    /// What was asked for.
    pub entries: Vec<InLine>,
    /// How many more are with a consumer whose rows are not in memory: they were handed out before the shard was opened, and
    /// their leases end much later.
    pub unknown: u64,
}

/// Who holds deliveries of one shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// By queue and name.
    pub holders: Vec<Holder>,
    /// How many more deliveries are with a consumer. Their rows are not in memory, or they are too many to look at.
    pub unknown: u64,
}

/// A consumer that holds deliveries of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its name.
    pub name: Name,
    /// The queue.
    pub queue: Name,
    /// How many it holds.
    pub leases: u64,
    /// Since when it has held the first of them, as far as is known.
    pub oldest: Option<Timestamp>,
    /// When the first of its leases ends.
    pub next_end: Timestamp,
}

impl Holder {
    /// Adds what it holds elsewhere, of the same queue.
    pub fn add(&mut self, other: &Holder) {
        self.leases += other.leases;
        self.oldest = [self.oldest, other.oldest].into_iter().flatten().min();
        self.next_end = self.next_end.min(other.next_end);
    }
}
