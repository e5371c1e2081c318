//! When rows are to be woken.

use super::Shard;
use super::desk::Slot;
use super::directory::TopicIndex;
use crate::state::Phase;
use crate::store::{Position, Table};

/// A row to wake: its number, and its topic, with which it takes turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    pub seq: u64,
    pub topic: TopicIndex,
}

impl<R> Shard<R> {
    /// Starts a row's timer if it is near; a far one stays in the store until the horizon reaches it.
    pub(super) fn set_timer(&mut self, slot: Slot) {
        let row = &self.desk[slot];
        let sleeps = matches!(row.state.phase, Phase::Spread(_)) || row.ready_in.is_some();
        if row.gone || row.table != Table::Live || sleeps {
            return;
        }
        let position = row.position();
        if position < self.horizon {
            let handle = self.wheel.insert(position.at.as_millis(), Timer { seq: position.seq, topic: row.topic });
            self.desk[slot].timer = Some(handle);
        } else {
            self.next_far = self.next_far.min(position.at);
        }
    }

    pub(super) fn clear_timer(&mut self, slot: Slot) {
        if let Some(handle) = self.desk[slot].timer.take() {
            self.wheel.cancel(handle);
        }
    }

    /// A deletion is over: what waited for that fires.
    pub(super) fn set_free(&mut self, detained: Vec<(TopicIndex, Position)>) {
        for (topic, position) in detained {
            match self.desk.at(position) {
                Some(slot) if self.desk[slot].timer.is_none() => self.set_timer(slot),
                Some(_) => {}
                None => _ = self.wheel.insert(position.at.as_millis(), Timer { seq: position.seq, topic }),
            }
        }
    }
}
