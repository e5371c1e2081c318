//! What a shard does without while the store is short of room.
//!
//! With little room what finishes is not kept, and the history gives way. Without room for rows to grow
//! ([`Room::None`]) more waits: next to nothing is handed out, since a lease makes a row longer, and what
//! comes due waits if it would have to be written for that. Acknowledging, cancelling and removing go on, and so do
//! leases that end.

use super::Shard;
use super::desk::Slot;
use super::directory::{QueueIndex, Route, TopicIndex};
use crate::store::{Position, Room};
use crate::time::{Millis, Timestamp};

/// How many deliveries may be out for more to be handed out all the same. Without any, consumers that died with what
/// they held would leave nothing that anybody could finish, and there would never be room again.
const FEW: u64 = 4;

/// How often it is looked whether what waits can go on, and something too old is given up.
const AGAIN: Millis = Millis::from_secs(1);

/// How much room there is, and what waits for more.
#[derive(Debug)]
pub(super) struct Shortage {
    room: Room,
    /// Rows whose time has come and that wait for room.
    held_up: Vec<(TopicIndex, Position)>,
    /// When the next delivery that is too old is given up, while there is no room.
    next_expiry: Timestamp,
}

impl Shortage {
    /// There is enough, as far as is known.
    pub fn new() -> Shortage {
        Shortage { room: Room::Enough, held_up: Vec::new(), next_expiry: Timestamp::ZERO }
    }
}

impl<R> Shard<R> {
    /// How much room the store has, to be told before a step.
    pub fn make_room(&mut self, room: Room) {
        self.retained.history.give_way(room != Room::Enough, self.now);
        self.shortage.room = room;
        if room != Room::None {
            let held_up = std::mem::take(&mut self.shortage.held_up);
            self.set_free(held_up);
        }
    }

    /// Whether rows may become longer.
    pub(super) fn may_grow(&self) -> bool {
        self.shortage.room != Room::None
    }

    /// How many deliveries may be handed out in a step.
    pub(super) fn hand_outs(&self) -> usize {
        if self.may_grow() {
            return self.config.hand_outs;
        }
        FEW.saturating_sub(self.total().leased) as usize
    }

    /// What is kept of what somebody said about an attempt.
    pub(super) fn kept_note(&self, note: Option<String>) -> Option<String> {
        note.filter(|_| self.may_grow())
    }

    /// How many ready deliveries that are too old may be given up in this step: each becomes a dead letter.
    pub(super) fn expiries_allowed(&mut self) -> usize {
        if self.may_grow() {
            return self.config.fires;
        }
        if self.now < self.shortage.next_expiry {
            return 0;
        }
        self.shortage.next_expiry = self.now.plus(AGAIN);
        1
    }

    /// When the next of them is to be looked at.
    pub(super) fn expiry_wake(&self) -> Timestamp {
        let first = self.timers.next_expiry();
        if self.may_grow() || first == Timestamp::NEVER { first } else { first.max(self.shortage.next_expiry) }
    }

    /// When to look whether what waits for room can go on.
    pub(super) fn held_up_wake(&self) -> Timestamp {
        if self.shortage.held_up.is_empty() { Timestamp::NEVER } else { self.now.plus(AGAIN) }
    }

    /// Lets a row whose time has come wait for room.
    pub(super) fn hold_up(&mut self, slot: Slot) {
        self.shortage.held_up.push((self.desk[slot].topic(), self.desk[slot].position()));
    }

    /// Whether a waiting row whose time has come can become ready without anything being written.
    pub(super) fn arrives_unwritten(&self, slot: Slot) -> bool {
        let row = &self.desk[slot];
        if row.state.expires_at() <= self.now {
            return false;
        }
        let takes = |queue: QueueIndex| !self.directory.queue(queue).is_full_with(0);
        match row.state.queue.as_ref().map(|own| self.directory.queue_index(own)) {
            Some(Some(own)) => return takes(own),
            // Its queue was deleted, which it has to note.
            Some(None) => return false,
            None => {}
        }
        match self.directory.route(row.topic(), row.state.routing()) {
            (Route::To(queue), missing) => missing.is_empty() && takes(queue),
            (Route::Nowhere, missing) => missing.len() == 1 && self.config.create_on_use,
            (Route::Detained { .. }, _) => true,
            (Route::ToSeveral(_), _) => false,
        }
    }
}
