//! When rows are to be woken, and how far the store has been read for that.
//!
//! **Invariant**: every live row before the horizon that has neither fired nor sleeps (broadcast) is in the wheel or,
//! once its time has come, among the late ones. `next_far` is not later than the first row behind the horizon.

use std::collections::BTreeSet;

use punctual_wheel::{Handle, Wheel};

use super::Shard;
use super::desk::Slot;
use super::directory::TopicIndex;
use super::late::Late;
use crate::state::Phase;
use crate::store::{Position, Table};
use crate::time::{Millis, Timestamp};

/// For how long "nothing there" is not said while what is overdue is read after the shard was opened.
const PATIENCE: Millis = Millis::from_secs(5);

/// A row to wake: its number, and its topic, with which it takes turns.
#[derive(Clone, Copy, Debug)]
struct Timer {
    seq: u64,
    topic: TopicIndex,
}

#[derive(Debug)]
pub(super) struct Timers {
    wheel: Wheel<Timer>,
    late: Late,
    horizon: Position,
    /// No row that is only in the store stands between the horizon and here.
    next_far: Timestamp,
    /// Ready deliveries that may become too old, by when.
    expiries: BTreeSet<(Timestamp, Position)>,
    opened_at: Timestamp,
    /// Something may be overdue since the shard was opened that was not read yet.
    is_catching_up: bool,
}

impl Timers {
    /// Those of a shard that is opened now: nothing has been read yet.
    pub fn new(now: Timestamp) -> Timers {
        Timers {
            wheel: Wheel::new(now.as_millis()),
            late: Late::default(),
            horizon: Position::START,
            next_far: Timestamp::ZERO,
            expiries: BTreeSet::new(),
            opened_at: now,
            is_catching_up: true,
        }
    }

    /// How many timers there are in memory.
    pub fn len(&self) -> usize {
        self.wheel.len() + self.late.len()
    }

    pub fn horizon(&self) -> Position {
        self.horizon
    }

    /// When the first row that is only in the store may be due.
    pub fn next_far(&self) -> Timestamp {
        self.next_far
    }

    /// Rows up to here are in memory now, and the next ones come due at `next_far` at the earliest.
    pub fn reach(&mut self, horizon: Position, next_far: Timestamp) {
        (self.horizon, self.next_far) = (horizon, next_far);
    }

    /// Sets a timer if it is near; a far one stays in the store until the horizon reaches it.
    fn set(&mut self, topic: TopicIndex, position: Position) -> Option<Handle> {
        if position >= self.horizon {
            self.next_far = self.next_far.min(position.at);
            return None;
        }
        Some(self.set_near(topic, position))
    }

    fn set_near(&mut self, topic: TopicIndex, position: Position) -> Handle {
        self.wheel.insert(position.at.as_millis(), Timer { seq: position.seq, topic })
    }

    /// When the next timer comes, those aside that have come.
    pub fn next_at(&mut self) -> Timestamp {
        self.wheel.next_at().map_or(Timestamp::NEVER, Timestamp::from_millis)
    }

    /// Whether timers have come that one step could not fire.
    pub fn has_late(&self) -> bool {
        !self.late.is_empty()
    }

    /// Takes out at most so many timers that have come.
    pub fn take_due(&mut self, now: Timestamp, most: usize, due: &mut Vec<Position>) {
        // Taking a timer out of the wheel is cheap, firing it is not: all come out, so that none hides behind others.
        while let Some((at, Timer { seq, topic })) = self.wheel.pop(now.as_millis()) {
            self.late.push(topic, Position { at: Timestamp::from_millis(at), seq });
        }
        for (topic, position) in self.late.take(most) {
            // Its time may have gone again, with a clock that was ahead.
            match position.at <= now {
                true => due.push(position),
                false => _ = self.set_near(topic, position),
            }
        }
    }

    /// Whether something may still fire whose time was before this one.
    pub fn may_fire_before(&mut self, at: Timestamp) -> bool {
        // Nothing that is only in the store stands before the horizon, or from there to the next that is far.
        (self.horizon < Position::start_of(at) && self.next_far < at) || self.next_at() < at || self.late.has_before(at)
    }

    /// Whether everything that was due when the shard was opened was read and has fired: until then "nothing
    /// there" would be a guess. If that takes long, those who wait hear the guess.
    pub fn have_caught_up(&mut self, now: Timestamp) -> bool {
        if self.is_catching_up {
            let overdue = self.next_at() <= self.opened_at;
            let is_through = !overdue && self.late.is_empty() && self.horizon.at > self.opened_at;
            self.is_catching_up = !is_through && now < self.opened_at.plus(PATIENCE);
        }
        !self.is_catching_up
    }

    /// Since when something should have been available whose time this was: nobody was served before the shard was
    /// opened.
    pub fn since(&self, at: Timestamp) -> Timestamp {
        at.max(self.opened_at)
    }

    /// A ready delivery becomes too old at a time, if ever.
    pub fn set_expiry(&mut self, expires_at: Timestamp, position: Position) {
        if expires_at < Timestamp::NEVER {
            self.expiries.insert((expires_at, position));
        }
    }

    /// A delivery is not ready any more, or not at this position.
    pub fn clear_expiry(&mut self, expires_at: Timestamp, position: Position) {
        if expires_at < Timestamp::NEVER {
            self.expiries.remove(&(expires_at, position));
        }
    }

    /// When the first ready delivery becomes too old.
    pub fn next_expiry(&self) -> Timestamp {
        self.expiries.first().map_or(Timestamp::NEVER, |(at, _)| *at)
    }

    /// Takes out the ready delivery that became too old first.
    pub fn take_expired(&mut self, now: Timestamp) -> Option<Position> {
        self.expiries.first().filter(|(at, _)| *at <= now)?;
        self.expiries.pop_first().map(|(_, position)| position)
    }

    /// The clock went back: only what is due stays. Says where timers stood, since no handle of them is good any more.
    pub fn go_back(&mut self, now: Timestamp) -> Vec<Position> {
        self.opened_at = self.opened_at.min(now);
        // What is still to come is read ahead anew. If the horizon stayed where the wrong time has led it, memory would
        // grow until that time has come.
        self.horizon = self.horizon.min(Position::start_of(now.plus(Millis(1))));
        self.next_far = self.next_far.min(self.horizon.at);
        self.expiries.retain(|(_, position)| position.at <= now);
        let mut wheel = std::mem::replace(&mut self.wheel, Wheel::new(now.as_millis()));
        let mut timers = self.late.take(usize::MAX);
        while let Some((at, timer)) = wheel.pop(u64::MAX) {
            timers.push((timer.topic, Position { at: Timestamp::from_millis(at), seq: timer.seq }));
        }
        for (topic, position) in timers.iter().filter(|(_, position)| position.at <= now) {
            self.late.push(*topic, *position);
        }
        timers.into_iter().map(|(_, position)| position).collect()
    }
}

impl<R> Shard<R> {
    /// Starts a row's timer, unless nothing is to happen to it by itself.
    pub(super) fn set_timer(&mut self, slot: Slot) {
        let row = &self.desk[slot];
        let sleeps = matches!(row.state.phase, Phase::Spread(_)) || row.ready_in().is_some();
        if row.is_gone() || row.table() != Table::Live || sleeps {
            return;
        }
        if let Some(handle) = self.timers.set(row.topic(), row.position()) {
            self.desk.set_timer(slot, handle);
        }
    }

    pub(super) fn clear_timer(&mut self, slot: Slot) {
        if let Some(handle) = self.desk.take_timer(slot) {
            self.timers.wheel.cancel(handle);
        }
    }

    /// What waited for room, or for the end of a deletion, fires.
    pub(super) fn set_free(&mut self, detained: Vec<(TopicIndex, Position)>) {
        for (topic, position) in detained {
            match self.desk.at(position) {
                Some(slot) if !self.desk[slot].has_timer() => self.set_timer(slot),
                Some(_) => {}
                None => _ = self.timers.set_near(topic, position),
            }
        }
    }
}
