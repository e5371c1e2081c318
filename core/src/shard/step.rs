//! The course of a step, and what comes out of it.

use bytes::Bytes;

use super::meta::Meta;
use super::{Closed, Output, Request, Shard};
use crate::answer::{Answer, Reply};
use crate::board::Board;
use crate::store::{Batch, Change, Key, Place, Position, Row, Store, StoreError, Table};
use crate::time::Timestamp;

fn setting_place(key: Key, seq: u64) -> Place {
    Place { table: Table::Settings, key, position: Position { at: Timestamp::ZERO, seq }, group: None }
}

impl<R> Shard<R> {
    /// A whole step, for callers that hold store and board.
    pub fn step(
        &mut self,
        now: Timestamp,
        requests: Vec<Request<R>>,
        store: &dyn Store,
        board: &mut Board<R>,
    ) -> Result<Output<R>, StoreError> {
        let mut needs = self.prepare(now, requests, board);
        while !needs.is_empty() {
            needs = self.supply(needs.read(store, self.id)?);
        }
        self.apply(now);
        self.serve(board, now);
        Ok(self.finish())
    }

    /// Everything happens: timers first, then requests in their order. Leases count from `hand_over_at`, when
    /// deliveries are thought to reach their consumers, rounded up to whole milliseconds.
    pub fn apply(&mut self, hand_over_at: Timestamp) {
        self.hand_over_at = hand_over_at.max(self.now);
        self.drop_absent();
        let mut pending = std::mem::take(&mut self.pending);
        if let Some(page) = pending.minutes.take() {
            self.count_minutes(page);
        }
        self.pass_kept(std::mem::take(&mut pending.kept));
        for position in pending.due.drain(..) {
            self.fire(position);
        }
        for doomed in pending.doomed.drain(..) {
            self.give_up(doomed);
        }
        if let Some(page) = pending.slice.take() {
            self.take_slice(page);
        }
        self.answers.reserve(pending.requests.len());
        for request in pending.requests.drain(..) {
            self.handle(request);
        }
        self.go_on_with_jobs(std::mem::take(&mut pending.jobs));
        while self.pauses.first().is_some_and(|(until, _)| *until <= self.now) {
            self.pauses.pop_first();
        }
    }

    /// Ends the step.
    pub fn finish(&mut self) -> Output<R> {
        self.count_touched(1);
        let mut tallies = Vec::new();
        self.directory.take_tallies(&mut tallies);
        self.forecast.take_tallies(&mut tallies);
        for closed in std::mem::take(&mut self.closed) {
            match closed {
                Closed::Topic(index) => self.directory.remove_topic(index),
                Closed::Queue(index) => {
                    let detained = self.directory.remove_queue(index);
                    self.set_free(detained);
                }
            }
        }
        self.step += 1;
        let mut changes = self.desk.take_changes(self.step);
        let changed = !changes.is_empty() || !tallies.is_empty() || !self.settings.is_empty();
        if changed {
            self.put_settings(&mut changes);
        }
        // What is said from memory is true only as long as the shard is ours: the store looks at the
        // fence of a batch that changes nothing, too.
        let batch =
            (changed || self.says_something()).then(|| Batch { shard: self.id, fence: self.fence, changes, tallies });
        if changed {
            self.in_flight.push_back((self.step, self.now));
        }
        self.desk.make_room();
        // The next step will have about as much to tell, and then need not move it while it grows.
        let room = Vec::with_capacity(self.events.len());
        Output {
            step: self.step,
            batch,
            answers: std::mem::take(&mut self.answers),
            forwards: std::mem::take(&mut self.forwards),
            rates: std::mem::take(&mut self.rates),
            events: std::mem::replace(&mut self.events, room),
            gone: std::mem::take(&mut self.gone),
            gone_queues: std::mem::take(&mut self.gone_queues),
            offers: std::mem::take(&mut self.offers),
            takes: std::mem::take(&mut self.takes),
            mended: self.tell_mended(),
            wake: self.wake(),
        }
    }

    /// Whether there is an answer that is more than "nothing there".
    fn says_something(&self) -> bool {
        let nothing = |reply: &Reply| matches!(reply, Ok(Answer::Reserved(deliveries)) if deliveries.is_empty());
        self.answers.iter().any(|(_, reply)| !nothing(reply))
    }

    /// Stores the settings that changed, and with them what the shard notes for itself.
    fn put_settings(&mut self, changes: &mut Vec<Change>) {
        for (key, state) in std::mem::take(&mut self.settings) {
            match state {
                Some(state) => changes.push(self.put_setting(key, state)),
                None => {
                    let stored = self.stored_settings.remove(&key);
                    changes.extend(stored.map(|seq| Change::Remove { place: setting_place(key, seq) }));
                }
            }
        }
        let horizon = self.forecast.horizon();
        let moved = std::mem::replace(&mut self.noted_horizon, horizon) != horizon;
        if self.numbers.set_aside() || moved {
            changes.push(self.put_setting(Meta::key(), Meta::new(self.config.shards, &self.numbers, horizon).encode()));
        }
    }

    pub(super) fn put_setting(&mut self, key: Key, state: Bytes) -> Change {
        let at = Timestamp::ZERO;
        if let Some(seq) = self.stored_settings.get(&key) {
            let place = setting_place(key, *seq);
            return Change::Update { place, table: Table::Settings, at, state };
        }
        // The note on numbers has a number of its own, which is never given out.
        let seq = if key == Meta::key() { 0 } else { self.numbers.setting() };
        self.stored_settings.insert(key.clone(), seq);
        let row = Row { table: Table::Settings, key, seq, at, group: None, state, body: Bytes::new() };
        Change::Insert { row, replaces: None }
    }

    /// When the next step is due.
    fn wake(&mut self) -> Timestamp {
        let more = !self.late.is_empty()
            || !self.giving.is_empty()
            || !self.doomed.is_empty()
            || !self.jobs.is_empty()
            || !self.postponed.is_empty();
        if more {
            return self.now;
        }
        let timer = self.wheel.next_at().map_or(Timestamp::NEVER, Timestamp::from_millis);
        let (expiry, held_up) = (self.expiry_wake(), self.held_up_wake());
        let pause = self.pauses.first().map_or(Timestamp::NEVER, |(until, _)| *until);
        [
            timer,
            expiry,
            held_up,
            pause,
            self.handed.wake(self.now),
            self.slice_wake(),
            self.history.wake(),
            self.dead.wake(),
            self.rate_wake,
        ]
        .into_iter()
        .min()
        .expect("there are several")
    }
}
