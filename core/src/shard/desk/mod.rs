//! The desk: rows that are in memory.
//!
//! A row is on the desk while it is with a consumer, while a change to it is not durable yet (the
//! store does not show it), and for as long as there is room. Everything else is in the store.

mod resident;

use std::collections::{HashMap, VecDeque};
use std::ops::Index;

use bytes::Bytes;
use foldhash::fast::FixedState;
use punctual_wheel::Handle;

pub(super) use resident::Resident;

use super::directory::{QueueIndex, TopicIndex};
use crate::store::{Change, Key, Position, Row, Table};
use crate::time::Timestamp;

/// A row's place on the desk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot(u32);

/// How long bodies are taken to be before any was seen.
const UNKNOWN_BODY: usize = 256 << 10;

/// A body that is longer is not kept for what is with a consumer.
const LONG_BODY: usize = 4 << 10;

#[derive(Debug)]
pub(super) struct Desk {
    slots: Vec<Option<Resident>>,
    free: Vec<Slot>,
    by_key: HashMap<Key, Slot, FixedState>,
    by_seq: HashMap<u64, Slot, FixedState>,
    /// The timers of rows that have left, by number: whoever changes such a row can take its timer back.
    timers_of_absent: HashMap<u64, Handle, FixedState>,
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

impl Desk {
    /// `room` is how many bytes rows may take that need not be in memory; `seed` makes hashing unpredictable.
    pub fn new(room: usize, seed: u64) -> Desk {
        Desk {
            slots: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::with_hasher(FixedState::with_seed(seed)),
            by_seq: HashMap::with_hasher(FixedState::with_seed(seed)),
            timers_of_absent: HashMap::with_hasher(FixedState::with_seed(seed)),
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
        if let Some(old) = self.by_key.get(resident.key()).copied() {
            let old = self.row_mut(old);
            assert!(old.gone, "{:?} is there already", old.key());
            resident.replace(old);
        }
        let slot = self.place(resident);
        self.touch(slot);
        slot
    }

    /// Puts a row from the store on the desk, or only its body if the rest is there.
    pub fn supply(&mut self, mut row: Row, topic: TopicIndex, with_body: bool) -> Option<Slot> {
        let is_part = !row.key.queue().is_empty();
        let body = (with_body && !is_part).then(|| std::mem::take(&mut row.body));
        if let Some(slot) = self.by_key.get(&row.key).copied() {
            let known = self.row_mut(slot);
            // What is on the desk is newer than what the store has.
            if known.seq() == row.seq && known.body.is_none() {
                let length = body.as_ref().map_or(0, Bytes::len);
                known.body = body;
                known.cost += length;
                self.cost += length;
            }
            return None;
        }
        let seq = row.seq;
        let slot = self.place(Resident::stored(row, topic, body));
        self.row_mut(slot).timer = self.timers_of_absent.remove(&seq);
        self.cached.push_back((slot, seq));
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
        self.by_key.insert(resident.key().clone(), slot);
        self.by_seq.insert(resident.seq(), slot);
        self.slots[slot.0 as usize] = Some(resident);
        slot
    }

    /// A row changes in this step; says whether it is the first time.
    pub fn touch(&mut self, slot: Slot) -> bool {
        let first = !std::mem::replace(&mut self.row_mut(slot).touched, true);
        if first {
            self.touched.push(slot);
        }
        first
    }

    /// A row to be changed in this step, which it has been told before: it was taken off the counts as it was, and is
    /// written at the end of the step.
    pub fn edit(&mut self, slot: Slot) -> &mut Resident {
        let row = self.row_mut(slot);
        debug_assert!(row.touched, "{:?} changes in this step", row.key());
        row
    }

    /// Removes a row in this step. It stays on the desk until the store does not show it any more.
    pub fn remove(&mut self, slot: Slot) {
        self.edit(slot).gone = true;
    }

    /// A row has a timer that can be taken back.
    pub fn set_timer(&mut self, slot: Slot, timer: Handle) {
        self.row_mut(slot).timer = Some(timer);
    }

    /// A row's timer has come, or is not to come any more.
    pub fn take_timer(&mut self, slot: Slot) -> Option<Handle> {
        self.row_mut(slot).timer.take()
    }

    /// No timer of a row that has left can be taken back any more.
    pub fn forget_timers_of_absent(&mut self) {
        self.timers_of_absent.clear();
    }

    /// A row stands in the ready set of a queue from now on.
    pub fn offer(&mut self, slot: Slot, queue: QueueIndex, now: Timestamp) {
        let row = self.row_mut(slot);
        (row.ready_in, row.offered_at) = (Some(queue), Some(now));
    }

    /// A row stands in the ready set of a queue, if any. Since when is not known.
    pub fn stand_in(&mut self, slot: Slot, queue: Option<QueueIndex>) {
        self.row_mut(slot).ready_in = queue;
    }

    /// A row stands in no ready set any more; says in which it stood.
    pub fn leave_ready(&mut self, slot: Slot) -> Option<QueueIndex> {
        self.row_mut(slot).ready_in.take()
    }

    /// Since when a row that is handed out has stood in the ready set, if that is known.
    pub fn take_offer(&mut self, slot: Slot) -> Option<Timestamp> {
        self.row_mut(slot).offered_at.take()
    }

    /// A row is with a consumer from now on.
    pub fn hand_over(&mut self, slot: Slot, now: Timestamp) {
        self.row_mut(slot).leased_at = Some(now);
    }

    /// Whether a row's body is in memory. A delivery's is its task's, of which it gets a copy.
    pub fn has_body(&mut self, slot: Slot) -> bool {
        if self[slot].body.is_none() && self[slot].is_part() {
            let task = self.by_key(&self[slot].key().of_task());
            self.row_mut(slot).body = task.and_then(|task| self[task].body.clone());
        }
        self[slot].body.is_some()
    }

    /// A delivery's copy of its task's body is not right any more.
    pub fn forget_copy(&mut self, slot: Slot) {
        if self[slot].is_part() {
            self.row_mut(slot).body = None;
        }
    }

    fn row_mut(&mut self, slot: Slot) -> &mut Resident {
        self.slots[slot.0 as usize].as_mut().expect("a slot is used while its row is on the desk")
    }

    /// The rows that changed in this step.
    pub fn touched(&self) -> &[Slot] {
        &self.touched
    }

    /// The rows that the store does not show as they are.
    pub fn dirty(&self) -> impl Iterator<Item = Slot> {
        let pinned = self.pinned.iter().flat_map(|(step, slots)| slots.iter().map(move |slot| (*step, *slot)));
        // A row that has changed in several steps stands with each of them: it is met with the last.
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
            changes.extend(self.row_mut(*slot).take_change(step));
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
                let row = self.row_mut(slot);
                // A later batch changes it again, and the store shows it as it is only after that.
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
                if row.gone || row.table() != Table::Live || far {
                    self.let_go(slot);
                } else {
                    let (seq, before, now) = (row.seq(), row.cost, row.weight());
                    row.cost = now;
                    self.cost = self.cost - before + now;
                    self.cached.push_back((slot, seq));
                }
            }
        }
        self.trim();
    }

    /// Whether there is room for rows that need not be in memory.
    pub fn has_room(&self) -> bool {
        self.cost < self.room / 2
    }

    /// Lets go of rows that need not be in memory, as far as there is too little room.
    pub fn trim(&mut self) {
        while self.cost > self.room {
            let Some((slot, seq)) = self.cached.pop_front() else { return };
            let row = self.slots[slot.0 as usize].as_ref();
            let idle = row.is_some_and(|row| row.seq() == seq && !row.is_dirty() && !row.is_leased());
            if idle {
                self.let_go(slot);
            }
        }
        // Entries of rows that left by themselves would otherwise pile up while there is room.
        if self.cached.len() > 64 + 4 * self.slots.len() {
            self.cached.clear();
            let idle = |row: &Resident| !row.is_dirty();
            let slots = self.slots.iter().enumerate();
            let rows = slots.filter_map(|(index, row)| Some((index, row.as_ref().filter(|row| idle(row))?.seq())));
            self.cached.extend(rows.map(|(index, seq)| (Slot(index as u32), seq)));
        }
    }

    fn let_go(&mut self, slot: Slot) {
        let row = self.slots[slot.0 as usize].take().expect("the row is on the desk");
        self.cost -= row.cost;
        self.free.push(slot);
        self.by_seq.remove(&row.seq());
        if let Some(timer) = row.timer {
            self.timers_of_absent.insert(row.seq(), timer);
        }
        if self.by_key.get(row.key()) == Some(&slot) {
            self.by_key.remove(row.key());
        }
    }
}
