//! What a shard's queues have to give, and what of that the board has yet to hear.
//!
//! **Invariant**: a queue is stocked if and only if a delivery is ready in it, paused or not. The board hears of every
//! change before anybody is served.

use std::collections::{BTreeMap, BTreeSet};

use crate::board::Board;
use crate::name::Name;
use crate::settings::Rate;
use crate::store::ShardId;
use crate::time::Timestamp;

#[derive(Debug)]
pub(super) struct Stock {
    stocked: BTreeSet<Name>,
    /// What of that the board has yet to be told.
    restocked: BTreeSet<Name>,
    /// Queues whose rate the board has yet to be told.
    limited: BTreeMap<Name, Option<Rate>>,
    /// Queues that were deleted, which the board has yet to be told.
    forgotten: BTreeSet<Name>,
    /// Queues that have more for those who wait than the last step could give: it was not in memory, or it would have
    /// been too much for one step. The next step follows at once.
    giving: BTreeSet<Name>,
    /// When a queue's rate lets the next delivery out.
    rate_wake: Timestamp,
}

impl Stock {
    pub fn new() -> Stock {
        Stock {
            stocked: BTreeSet::new(),
            restocked: BTreeSet::new(),
            limited: BTreeMap::new(),
            forgotten: BTreeSet::new(),
            giving: BTreeSet::new(),
            rate_wake: Timestamp::NEVER,
        }
    }

    /// A queue that had nothing has something.
    pub fn fill(&mut self, queue: &Name) {
        self.stocked.insert(queue.clone());
        self.restocked.insert(queue.clone());
    }

    /// A queue has nothing any more.
    pub fn run_out(&mut self, queue: &Name) {
        if self.stocked.remove(queue) {
            self.restocked.insert(queue.clone());
        }
    }

    /// The queues that have something.
    pub fn stocked(&self) -> impl Iterator<Item = &Name> {
        self.stocked.iter()
    }

    /// A queue hands out no more than this from now on.
    pub fn limit(&mut self, queue: &Name, rate: Option<Rate>) {
        self.limited.insert(queue.clone(), rate);
    }

    /// A queue is gone, and its rate with it.
    pub fn forget(&mut self, queue: Name) {
        self.limited.remove(&queue);
        self.forgotten.insert(queue);
    }

    /// Tells the board what has changed, and forgets how the last serving went.
    pub fn begin_serving<R>(&mut self, board: &mut Board<R>, shard: ShardId) {
        // A queue that was deleted may have come to be again since: what is said of the new one comes after.
        for queue in std::mem::take(&mut self.forgotten) {
            board.forget_queue(shard, &queue);
        }
        for (queue, rate) in std::mem::take(&mut self.limited) {
            board.limit(shard, &queue, rate);
        }
        self.tell(board, shard);
        self.giving.clear();
        self.rate_wake = Timestamp::NEVER;
    }

    /// Tells the board which queues have something, as far as that has changed.
    pub fn tell<R>(&mut self, board: &mut Board<R>, shard: ShardId) {
        for queue in std::mem::take(&mut self.restocked) {
            board.stock(shard, &queue, self.stocked.contains(&queue));
        }
    }

    /// A queue gives more in the step that follows at once.
    pub fn keep_giving(&mut self, queue: &Name) {
        self.giving.insert(queue.clone());
    }

    /// A queue's rate holds it back until a time.
    pub fn hold_back(&mut self, until: Timestamp) {
        self.rate_wake = self.rate_wake.min(until);
    }

    /// The queues that give more in the step that follows at once.
    pub fn giving(&self) -> &BTreeSet<Name> {
        &self.giving
    }

    /// When a queue that was held back gives again.
    pub fn wake(&self) -> Timestamp {
        self.rate_wake
    }
}
