//! The desk: rows that are in memory.
//!
//! A row is on the desk while it is with a consumer, while a change to it is not durable yet (the
//! store does not show it), and for as long as there is room. Everything else is in the store.

use std::collections::{HashMap, VecDeque};
use std::ops::{Index, IndexMut};

use bytes::Bytes;
use foldhash::fast::FixedState;
use punctual_wheel::Handle;

use super::directory::{QueueIndex, TopicIndex};
use crate::name::Name;
use crate::state::{Phase, State};
use crate::store::{Change, Key, Place, Position, Row, Table};
use crate::time::Timestamp;

/// A row's place on the desk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot(u32);

/// A row in memory.
#[derive(Debug)]
pub(super) struct Resident {
    pub key: Key,
    pub seq: u64,
    pub group: Option<Name>,
    pub topic: TopicIndex,
    pub table: Table,
    pub at: Timestamp,
    pub state: State,
    /// `None` until it is needed.
    pub body: Option<Bytes>,
    /// The queue in whose ready set it stands.
    pub ready_in: Option<QueueIndex>,
    /// Since when it has stood there. Who was not in memory all the while does not know.
    pub offered_at: Option<Timestamp>,
    /// Its timer, if it has one that is known. A timer whose handle was forgotten finds nothing when it fires.
    pub timer: Option<Handle>,
    /// It is removed, but the store does not know yet.
    pub gone: bool,
    /// Where it stands in the store, once all batches so far are durable.
    stored: Option<(Table, Timestamp)>,
    /// The row of the same key whose place it takes in this step.
    replaces: Option<Place>,
    body_is_new: bool,
    touched: bool,
    /// The batch that has to become durable before the store can be asked for it.
    pinned_by: u64,
    cost: usize,
}

/// How long bodies are taken to be before any was seen.
const UNKNOWN_BODY: usize = 256 << 10;

/// A body that is longer is not kept for what is with a consumer.
const LONG_BODY: usize = 4 << 10;

/// What a row costs in memory beside its body, roughly.
const ROW_COST: usize = 400;

impl Resident {
    /// A row that the store does not have.
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

    pub fn position(&self) -> Position {
        Position { at: self.at, seq: self.seq }
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

    pub fn replace_body(&mut self, body: Bytes) {
        self.body = Some(body);
        self.body_is_new = true;
    }

    /// What it costs in memory. What it remembers of its attempts may grow to several times the rest.
    fn weight(&self) -> usize {
        let log = self.state.log.as_ref().map_or(0, |log| log.weight());
        ROW_COST + log + self.body.as_ref().map_or(0, Bytes::len)
    }

    fn is_dirty(&self) -> bool {
        self.touched || self.pinned_by != 0
    }

    /// What the store has to do so that it stands there as it stands here.
    fn change(&mut self) -> Option<Change> {
        let stored = self.stored.take();
        let place = |(table, at)| Place {
            table,
            key: self.key.clone(),
            position: Position { at, seq: self.seq },
            group: self.group.clone(),
        };
        let replaced = self.replaces.take();
        if self.gone {
            return stored.map(place).or(replaced).map(|place| Change::Remove { place });
        }
        self.stored = Some((self.table, self.at));
        if let (Some(stored), false) = (stored, self.body_is_new) {
            return Some(Change::Update {
                place: place(stored),
                table: self.table,
                at: self.at,
                state: self.state.encode(),
            });
        }
        let replaces = stored.map(place).or(replaced);
        self.body_is_new = false;
        let row = Row {
            table: self.table,
            key: self.key.clone(),
            seq: self.seq,
            at: self.at,
            group: self.group.clone(),
            state: self.state.encode(),
            body: if self.is_part() { Bytes::new() } else { self.body.clone().expect("a new row has its body") },
        };
        Some(Change::Insert { row, replaces })
    }
}

#[derive(Debug)]
pub(super) struct Desk {
    slots: Vec<Option<Resident>>,
    free: Vec<Slot>,
    by_key: HashMap<Key, Slot, FixedState>,
    by_seq: HashMap<u64, Slot, FixedState>,
    touched: Vec<Slot>,
    /// Batches on their way, oldest first, with the rows they change.
    pinned: VecDeque<(u64, Vec<Slot>)>,
    /// Rows that could go, longest unused first; those that became needed since are passed over.
    cached: VecDeque<(Slot, u64)>,
    cost: usize,
    room: usize,
    /// How long bodies have been lately.
    usual_body: usize,
}

impl Index<Slot> for Desk {
    type Output = Resident;
    fn index(&self, slot: Slot) -> &Resident {
        self.slots[slot.0 as usize].as_ref().expect("a slot is used while its row is on the desk")
    }
}

impl IndexMut<Slot> for Desk {
    fn index_mut(&mut self, slot: Slot) -> &mut Resident {
        self.slots[slot.0 as usize].as_mut().expect("a slot is used while its row is on the desk")
    }
}

impl Desk {
    /// `room` is how many bytes rows may take that need not be in memory; `seed` makes hashing unpredictable.
    pub fn new(room: usize, seed: u64) -> Desk {
        Desk {
            slots: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::with_hasher(FixedState::with_seed(seed)),
            by_seq: HashMap::with_hasher(FixedState::with_seed(seed)),
            touched: Vec::new(),
            pinned: VecDeque::new(),
            cached: VecDeque::new(),
            cost: 0,
            room,
            usual_body: UNKNOWN_BODY,
        }
    }

    /// How many rows to read with their bodies so that these are about so long together.
    pub fn rows_within(&self, bytes: usize) -> usize {
        (bytes / self.usual_body.max(1)).max(1)
    }

    /// Whether the store need not be asked for this key.
    pub fn knows(&self, key: &Key) -> bool {
        self.by_key.contains_key(key)
    }

    /// The row under this key, unless it is removed.
    pub fn by_key(&self, key: &Key) -> Option<Slot> {
        self.by_key.get(key).copied().filter(|slot| !self[*slot].gone)
    }

    /// The row with this number, unless it is removed.
    pub fn by_seq(&self, seq: u64) -> Option<Slot> {
        self.by_seq.get(&seq).copied().filter(|slot| !self[*slot].gone)
    }

    /// The live row that stands at this position now.
    pub fn at(&self, position: Position) -> Option<Slot> {
        self.by_seq(position.seq).filter(|slot| self[*slot].is_awake_at(position))
    }

    /// Puts a new row on the desk. A row of the same key must be gone.
    pub fn insert(&mut self, mut resident: Resident) -> Slot {
        if let Some(old) = self.by_key.get(&resident.key).copied() {
            let old = &mut self[old];
            assert!(old.gone, "{:?} is there already", old.key);
            if old.touched {
                let stored = old.stored.take();
                let position = |at| Position { at, seq: old.seq };
                resident.replaces = old.replaces.take().or(stored.map(|(table, at)| Place {
                    table,
                    key: old.key.clone(),
                    position: position(at),
                    group: old.group.clone(),
                }));
            }
        }
        let slot = self.place(resident);
        self.touch(slot);
        slot
    }

    /// Puts a row from the store on the desk, or only its body if the rest is there.
    pub fn supply(&mut self, row: Row, topic: TopicIndex, with_body: bool) -> Option<Slot> {
        let is_part = !row.key.queue().is_empty();
        let body = (with_body && !is_part).then_some(row.body);
        if let Some(slot) = self.by_key.get(&row.key).copied() {
            let known = &mut self[slot];
            // What is on the desk is newer than what the store has.
            if known.seq == row.seq && known.body.is_none() {
                let length = body.as_ref().map_or(0, Bytes::len);
                known.body = body;
                known.cost += length;
                self.cost += length;
            }
            return None;
        }
        let mut resident = Resident::new(row.key, row.seq, row.group, topic, State::decode(&row.state), body);
        resident.table = row.table;
        resident.at = row.at;
        resident.stored = Some((row.table, row.at));
        resident.body_is_new = false;
        let slot = self.place(resident);
        self.cached.push_back((slot, row.seq));
        Some(slot)
    }

    fn place(&mut self, mut resident: Resident) -> Slot {
        if let Some(body) = &resident.body {
            self.usual_body = (self.usual_body * 15 + body.len()) / 16;
        }
        resident.cost = resident.weight();
        self.cost += resident.cost;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            Slot(u32::try_from(self.slots.len() - 1).expect("fewer rows fit into memory"))
        });
        self.by_key.insert(resident.key.clone(), slot);
        self.by_seq.insert(resident.seq, slot);
        self.slots[slot.0 as usize] = Some(resident);
        slot
    }

    /// Notes that a row changes in this step; says whether it is the first time.
    pub fn touch(&mut self, slot: Slot) -> bool {
        let first = !std::mem::replace(&mut self[slot].touched, true);
        if first {
            self.touched.push(slot);
        }
        first
    }

    /// The rows that changed in this step.
    pub fn touched(&self) -> &[Slot] {
        &self.touched
    }

    /// The rows that the store does not show as they are.
    pub fn dirty(&self) -> impl Iterator<Item = Slot> {
        let pinned = self.pinned.iter().flat_map(|(step, slots)| slots.iter().map(move |slot| (*step, *slot)));
        let pinned = pinned.filter(|(step, slot)| {
            self.slots[slot.0 as usize].as_ref().is_some_and(|row| row.pinned_by == *step && !row.touched)
        });
        self.touched.iter().copied().chain(pinned.map(|(_, slot)| slot))
    }

    /// Whether the store does not show this row as it is.
    pub fn is_dirty(&self, key: &Key) -> bool {
        self.by_key.get(key).is_some_and(|slot| self[*slot].is_dirty())
    }

    /// Ends the step: what the store has to do, and the rows stay until it is durable.
    pub fn take_changes(&mut self, step: u64) -> Vec<Change> {
        let touched = std::mem::take(&mut self.touched);
        let mut changes = Vec::with_capacity(touched.len());
        for slot in &touched {
            let row = self[*slot].touched_in(step);
            changes.extend(row.change());
        }
        if !touched.is_empty() {
            self.pinned.push_back((step, touched));
        }
        changes
    }

    /// The batches up to this one are durable. Rows that wait for a position from `horizon` on are
    /// not needed for a while.
    pub fn committed(&mut self, step: u64, horizon: Position) {
        while self.pinned.front().is_some_and(|(pinned, _)| *pinned <= step) {
            let (pinned, slots) = self.pinned.pop_front().expect("there is a first one");
            for slot in slots {
                let row = &mut self[slot];
                if row.pinned_by != pinned {
                    continue;
                }
                row.pinned_by = 0;
                if row.touched {
                    continue;
                }
                let far = row.position() >= horizon && !row.is_leased() && row.ready_in.is_none();
                if row.is_leased() {
                    // It is with its consumer. A long one would fill the memory for as long as that works on it.
                    row.body.take_if(|body| body.len() > LONG_BODY);
                }
                if row.gone || row.table != Table::Live || far {
                    self.remove(slot);
                } else {
                    let (seq, before, now) = (row.seq, row.cost, row.weight());
                    row.cost = now;
                    self.cost = self.cost - before + now;
                    self.cached.push_back((slot, seq));
                }
            }
        }
        self.make_room();
    }

    /// Whether there is room for rows that need not be in memory.
    pub fn has_room(&self) -> bool {
        self.cost < self.room / 2
    }

    /// Lets go of rows that need not be in memory, as far as there is too little room.
    pub fn make_room(&mut self) {
        while self.cost > self.room {
            let Some((slot, seq)) = self.cached.pop_front() else { return };
            let row = self.slots[slot.0 as usize].as_ref();
            let idle = row.is_some_and(|row| row.seq == seq && !row.is_dirty() && !row.is_leased());
            if idle {
                self.remove(slot);
            }
        }
        // Entries of rows that left by themselves would otherwise pile up while there is room.
        if self.cached.len() > 64 + 4 * self.slots.len() {
            self.cached.clear();
            let idle = |row: &Resident| !row.is_dirty();
            let slots = self.slots.iter().enumerate();
            let rows = slots.filter_map(|(index, row)| Some((index, row.as_ref().filter(|row| idle(row))?.seq)));
            self.cached.extend(rows.map(|(index, seq)| (Slot(index as u32), seq)));
        }
    }

    fn remove(&mut self, slot: Slot) {
        let row = self.slots[slot.0 as usize].take().expect("the row is on the desk");
        self.cost -= row.cost;
        self.free.push(slot);
        self.by_seq.remove(&row.seq);
        if self.by_key.get(&row.key) == Some(&slot) {
            self.by_key.remove(&row.key);
        }
    }
}

impl Resident {
    fn touched_in(&mut self, step: u64) -> &mut Resident {
        self.touched = false;
        self.pinned_by = step;
        self
    }
}
