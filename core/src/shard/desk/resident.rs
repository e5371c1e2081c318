//! A row in memory.
//!
//! **Invariant**: what the store shows of it changes only through [`Desk::edit`](super::Desk::edit), in a step that has
//! touched it; its table is that of its phase.

use bytes::Bytes;
use punctual_wheel::Handle;

use crate::name::Name;
use crate::shard::directory::{QueueIndex, TopicIndex};
use crate::state::{Phase, State};
use crate::store::{Change, Key, Place, Position, Row, Table};
use crate::time::Timestamp;

/// What a row costs in memory beside its body, roughly.
const ROW_COST: usize = 400;

#[derive(Debug)]
pub(in crate::shard) struct Resident {
    key: Key,
    seq: u64,
    group: Option<Name>,
    topic: TopicIndex,
    table: Table,
    at: Timestamp,
    pub state: State,
    /// `None` until it is needed.
    pub(super) body: Option<Bytes>,
    /// The queue in whose ready set it stands.
    pub(super) ready_in: Option<QueueIndex>,
    /// Since when it has stood there. Who was not in memory all the while does not know.
    pub(super) offered_at: Option<Timestamp>,
    /// Since when it has been with its consumer. Who was not in memory all the while does not know.
    pub(super) leased_at: Option<Timestamp>,
    /// Its timer, if it waits in the wheel.
    pub(super) timer: Option<Handle>,
    /// It is removed, but the store does not know yet.
    pub(super) gone: bool,
    /// Where it stands in the store, once all batches so far are durable.
    stored: Option<(Table, Timestamp)>,
    /// The row of the same key whose place it takes in this step.
    replaces: Option<Place>,
    body_is_new: bool,
    pub(super) touched: bool,
    /// The batch that has to become durable before the store can be asked for it.
    pub(super) pinned_by: u64,
    pub(super) cost: usize,
}

impl Resident {
    /// A row that the store does not have, and that waits for nothing yet.
    pub fn new(
        key: Key,
        seq: u64,
        group: Option<Name>,
        topic: TopicIndex,
        state: State,
        body: Option<Bytes>,
    ) -> Resident {
        Resident {
            key,
            seq,
            group,
            topic,
            table: Table::Live,
            at: Timestamp::NEVER,
            state,
            body,
            ready_in: None,
            offered_at: None,
            leased_at: None,
            timer: None,
            gone: false,
            stored: None,
            replaces: None,
            body_is_new: true,
            touched: false,
            pinned_by: 0,
            cost: 0,
        }
    }

    /// A row as the store has it.
    pub(super) fn stored(row: Row, topic: TopicIndex, body: Option<Bytes>) -> Resident {
        let Row { key, seq, group, table, at, state, .. } = row;
        Resident {
            table,
            at,
            stored: Some((table, at)),
            body_is_new: false,
            ..Resident::new(key, seq, group, topic, State::decode(&state), body)
        }
    }

    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Its number.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The key that it shares with others.
    pub fn group(&self) -> Option<&Name> {
        self.group.as_ref()
    }

    pub fn topic(&self) -> TopicIndex {
        self.topic
    }

    pub fn table(&self) -> Table {
        self.table
    }

    pub fn at(&self) -> Timestamp {
        self.at
    }

    pub fn position(&self) -> Position {
        Position { at: self.at, seq: self.seq }
    }

    pub fn body(&self) -> Option<&Bytes> {
        self.body.as_ref()
    }

    pub fn ready_in(&self) -> Option<QueueIndex> {
        self.ready_in
    }

    pub fn leased_at(&self) -> Option<Timestamp> {
        self.leased_at
    }

    pub fn has_timer(&self) -> bool {
        self.timer.is_some()
    }

    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Whether it is one of several deliveries of a task.
    pub fn is_part(&self) -> bool {
        !self.key.queue().is_empty()
    }

    /// Whether it waits for its time or for a consumer.
    pub fn is_waiting(&self) -> bool {
        !self.gone && self.table == Table::Live && self.state.phase == Phase::Waiting
    }

    /// Whether it is with a consumer.
    pub fn is_leased(&self) -> bool {
        matches!(self.state.phase, Phase::Leased { .. })
    }

    /// Whether it waits to be changed by this timer.
    pub fn is_awake_at(&self, position: Position) -> bool {
        !self.gone && self.table == Table::Live && self.at == position.at
    }

    /// Lets it stand in this phase, at this time, in the table where such rows are.
    pub fn enter(&mut self, phase: Phase, at: Timestamp) {
        self.table = match phase {
            Phase::Waiting | Phase::Leased { .. } | Phase::Spread(_) | Phase::Forwarding { .. } => Table::Live,
            Phase::Dead(_) => Table::Dead,
            Phase::Finished(_) => Table::History,
        };
        (self.state.phase, self.at) = (phase, at);
    }

    /// Lets it stand at another time.
    pub fn move_to(&mut self, at: Timestamp) {
        self.at = at;
    }

    pub fn replace_body(&mut self, body: Bytes) {
        self.body = Some(body);
        self.body_is_new = true;
    }

    /// What it costs in memory. What it remembers of its attempts may grow to several times the rest.
    pub(super) fn weight(&self) -> usize {
        let log = self.state.log.as_ref().map_or(0, |log| log.weight());
        ROW_COST + log + self.body.as_ref().map_or(0, Bytes::len)
    }

    /// Whether the store does not show it as it is.
    pub(super) fn is_dirty(&self) -> bool {
        self.touched || self.pinned_by != 0
    }

    /// Takes the place of a row of the same key that is removed in this step: a batch names each row once, so both
    /// changes are one.
    pub(super) fn replace(&mut self, old: &mut Resident) {
        if old.touched {
            let stored = old.stored.take().map(|stored| old.place(stored));
            self.replaces = old.replaces.take().or(stored);
        }
    }

    fn place(&self, (table, at): (Table, Timestamp)) -> Place {
        let position = Position { at, seq: self.seq };
        Place { table, key: self.key.clone(), position, group: self.group.clone() }
    }

    /// Ends the step: says what the store has to do so that it stands there as it stands here.
    pub(super) fn take_change(&mut self, step: u64) -> Option<Change> {
        self.touched = false;
        self.pinned_by = step;
        let stored = self.stored.take().map(|stored| self.place(stored));
        let replaced = self.replaces.take();
        if self.gone {
            return stored.or(replaced).map(|place| Change::Remove { place });
        }
        self.stored = Some((self.table, self.at));
        let (table, at, state) = (self.table, self.at, self.state.encode());
        let body_is_new = std::mem::take(&mut self.body_is_new);
        let replaces = match stored {
            // The body is written once: what the store has of it stays.
            Some(place) if !body_is_new => return Some(Change::Update { place, table, at, state }),
            stored => stored.or(replaced),
        };
        // A delivery's body is its task's.
        let body = if self.is_part() { Bytes::new() } else { self.body.clone().expect("a new row has its body") };
        let row = Row { table, key: self.key.clone(), seq: self.seq, at, group: self.group.clone(), state, body };
        Some(Change::Insert { row, replaces })
    }
}
