//! What has left the shard and is not durable yet: batches, and leases whose deliveries are on their way.
//!
//! A lease is written down before its delivery is handed over, so its end is reckoned from when that is thought to be.
//! If it takes longer, the lease ends so much later, which is told to its consumer and written down in the next step.
//!
//! **Invariant**: a lease does not end before its delivery has been handed over, however long that takes.

use std::collections::VecDeque;

use super::Shard;
use super::desk::Slot;
use crate::store::{Batch, Change, Fence, Position, ShardId, Tally, Tenure};
use crate::time::{Millis, Timestamp};

#[derive(Debug)]
pub(super) struct Flight {
    shard: ShardId,
    fence: Fence,
    /// The serial of the last batch that was sealed, and of the last one that is durable.
    sealed: u64,
    durable: u64,
    /// The number of the last step that has ended.
    step: u64,
    /// Steps whose batches are not durable yet.
    batches: VecDeque<Departed>,
    /// From when leases that are given in this step count.
    hand_over_at: Timestamp,
    /// In which step a lease was given, and where it ends.
    leases: VecDeque<(u64, Position)>,
    /// Those of them whose time has come already.
    overtaken: Vec<Position>,
}

#[derive(Debug)]
struct Departed {
    step: u64,
    serial: u64,
    at: Timestamp,
}

impl Flight {
    pub fn new(shard: ShardId, tenure: Tenure, now: Timestamp) -> Flight {
        Flight {
            shard,
            fence: tenure.fence,
            sealed: tenure.serial,
            durable: tenure.serial,
            step: 0,
            batches: VecDeque::new(),
            hand_over_at: now,
            leases: VecDeque::new(),
            overtaken: Vec::new(),
        }
    }

    pub fn shard(&self) -> ShardId {
        self.shard
    }

    /// Leases that are given from now on count from this time.
    pub fn expect_hand_over(&mut self, at: Timestamp) {
        self.hand_over_at = at;
    }

    pub fn hand_over_at(&self) -> Timestamp {
        self.hand_over_at
    }

    /// Ends a step; says its number.
    pub fn end_step(&mut self) -> u64 {
        self.step += 1;
        self.step
    }

    /// How the shard is held, and how far it is known to be durable.
    pub fn tenure(&self) -> Tenure {
        Tenure { fence: self.fence, serial: self.durable }
    }

    /// A batch that only the owner of the shard can commit. One that changes nothing has no serial of its own.
    pub fn seal(&mut self, changes: Vec<Change>, tallies: Vec<(Tally, i64)>) -> Batch {
        if !changes.is_empty() || !tallies.is_empty() {
            self.sealed += 1;
        }
        Batch { shard: self.shard, fence: self.fence, serial: self.sealed, changes, tallies }
    }

    /// The batch that was just sealed leaves with the step that has just ended.
    pub fn depart(&mut self, now: Timestamp) {
        self.batches.push_back(Departed { step: self.step, serial: self.sealed, at: now });
    }

    /// All that was sealed is durable.
    pub fn arrived(&mut self) {
        self.durable = self.sealed;
    }

    /// From when on there may be rows that the store does not show yet; [`Timestamp::NEVER`] if it shows all. The clock
    /// may have gone back between steps, so the oldest is not always the first.
    pub fn settled(&self) -> Timestamp {
        self.batches.iter().map(|batch| batch.at).min().unwrap_or(Timestamp::NEVER)
    }

    /// Takes out the leases that have been overtaken, to be looked at again.
    pub fn take_overtaken(&mut self) -> Vec<Position> {
        std::mem::take(&mut self.overtaken)
    }

    /// When to look again whether a lease that should be over has begun.
    pub fn wake(&self, now: Timestamp) -> Timestamp {
        if self.overtaken.is_empty() { Timestamp::NEVER } else { now.plus(Millis(1)) }
    }

    /// The step is durable, and so are all before it.
    pub fn committed(&mut self, step: u64) {
        while let Some(batch) = self.batches.pop_front_if(|batch| batch.step <= step) {
            self.durable = batch.serial;
        }
        while self.leases.front().is_some_and(|(first, _)| *first <= step) {
            self.leases.pop_front();
        }
    }
}

impl<R> Shard<R> {
    /// What a step has handed out reaches its consumers so much later than [`apply`](Shard::apply) was told: its leases
    /// end so much later. To be told before the step is said to be [`committed`](Shard::committed).
    pub fn handed_over(&mut self, step: u64, late: Millis) {
        let ends: Vec<Position> =
            self.flight.leases.iter().filter(|(of, _)| *of == step).map(|(_, position)| *position).collect();
        for position in ends {
            // Whoever has said something about it since has got another end for it, or none.
            if let Some(slot) = self.desk.at(position).filter(|slot| self.desk[*slot].is_leased()) {
                self.hold_until(slot, position.at.plus(late));
            }
        }
    }

    /// Lets a consumer hold a row until a time that counts from the hand-over in this step.
    pub(super) fn hand_over_until(&mut self, slot: Slot, until: Timestamp) {
        self.hold_until(slot, until);
        self.flight.leases.push_back((self.flight.step + 1, self.desk[slot].position()));
    }

    /// Whether a lease has not begun yet, as far as is known.
    pub(super) fn is_on_its_way(&self, slot: Slot) -> bool {
        let row = &self.desk[slot];
        // What is durable has been handed over, and almost everything is when its time comes.
        self.desk.is_dirty(row.key()) && self.flight.leases.iter().any(|(_, end)| *end == row.position())
    }

    /// Looks again shortly at a lease that should be over and has not begun.
    pub(super) fn overtake(&mut self, position: Position) {
        self.flight.overtaken.push(position);
    }
}
