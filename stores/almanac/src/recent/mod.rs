//! Recent rows: all that the journal holds and no run does, in memory.
//!
//! ```text
//! keys ────────────────┐
//! each table's index ──┴──► slot ──► spot in the arena: the row in its stored form
//!                              └───► body: in the arena too, or still in a run
//! ```
//! A layer is filled by commits; then it is frozen, and written into a run while the next one fills.
//! A frozen layer stays as it was, because the run must hold exactly what the journal said up to
//! that moment; what happens to its rows afterwards is noted beside it (`frozen.rs`).

mod arena;
mod frozen;

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashTable;
use punctual_core::store::{Index, Position, ShardId, Table, Tally};
use roaring::RoaringBitmap;

pub(crate) use frozen::Frozen;

use crate::address::Address;
use crate::manifest::Tallies;
use crate::retell::Telling;
use crate::row::{KeyText, StoredRow};
use arena::{Arena, Spot};

/// About what a row costs beside its bytes: slot, entry in the time order, entry by key.
const ROW_OVERHEAD: usize = 96;

/// The number of a row within its layer.
pub(crate) type SlotId = u32;

/// Where a row's body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// With the row.
    Here,
    /// Still in the run from which the row was updated.
    Borrowed(Address),
}

pub(crate) struct Recent {
    rows: Arc<Rows>,
    keys: HashTable<KeyEntry>,
    order: BTreeMap<(ShardId, Table), Index<SlotId>>,
}

/// The rows themselves: shared with the thread that writes them into a run, once they are frozen.
pub(crate) struct Rows {
    slots: Vec<Slot>,
    free: Vec<SlotId>,
    arena: Arena,
    /// How many bytes the rows have that are here.
    living: u64,
    /// How many bytes telling them again takes at most.
    to_tell: u64,
    telling: Telling,
    tallies: Tallies,
}

struct Slot {
    spot: Spot,
    body: Body,
    hash: u64,
    shard: ShardId,
}

#[derive(Clone, Copy)]
struct KeyEntry {
    hash: u32,
    slot: SlotId,
}

impl KeyEntry {
    /// The table looks at the lowest and at the highest bits.
    fn spread(hash: u32) -> u64 {
        u64::from(hash) << 32 | u64::from(hash)
    }
}

const UNSHARED: &str = "only a frozen layer is shared, and it does not change";

impl Recent {
    pub fn new(telling: Telling) -> Recent {
        let rows = Rows {
            slots: Vec::new(),
            free: Vec::new(),
            arena: Arena::default(),
            living: 0,
            to_tell: 0,
            telling,
            tallies: BTreeMap::new(),
        };
        Recent { rows: Arc::new(rows), keys: HashTable::default(), order: BTreeMap::new() }
    }

    /// The layer emptied, with so many bytes of its memory: to be filled anew without asking for other.
    /// `None` if somebody still reads it.
    pub fn emptied(self, keep: usize) -> Option<Recent> {
        let Recent { rows, mut keys, .. } = self;
        let Rows { mut slots, mut free, mut arena, telling, .. } = Arc::into_inner(rows)?;
        keys.clear();
        slots.clear();
        free.clear();
        arena.clear(keep);
        let rows = Rows { slots, free, arena, living: 0, to_tell: 0, telling, tallies: BTreeMap::new() };
        Some(Recent { rows: Arc::new(rows), keys, order: BTreeMap::new() })
    }

    /// A row comes.
    pub fn insert(&mut self, shard: ShardId, hash: u64, row: StoredRow<'_>, body: &[u8], lies: Body) {
        let rows = Arc::get_mut(&mut self.rows).expect(UNSHARED);
        let spot = rows.arena.put(row, body);
        rows.comes(spot);
        let slot = rows.fill(Slot { spot, body: lies, hash, shard });
        let hash = (hash >> 32) as u32;
        let rehash = |entry: &KeyEntry| KeyEntry::spread(entry.hash);
        self.keys.insert_unique(KeyEntry::spread(hash), KeyEntry { hash, slot }, rehash);
        let index = self.order.entry((shard, row.table())).or_default();
        index.add(row.position(), row.group(), slot);
    }

    /// A row changes its time, state or table, and keeps its body.
    pub fn update(&mut self, shard: ShardId, slot: SlotId, row: StoredRow<'_>, before: (Table, Position)) {
        let rows = Arc::get_mut(&mut self.rows).expect(UNSHARED);
        let old = rows.slots[slot as usize].spot;
        rows.goes(old);
        let new = rows.arena.put_instead(row, old);
        rows.comes(new);
        rows.slots[slot as usize].spot = new;
        let (table, position) = before;
        if table != row.table() {
            self.index(shard, table).remove(position, row.group());
            self.order.entry((shard, row.table())).or_default().add(row.position(), row.group(), slot);
        } else if position.at != row.position().at {
            self.index(shard, table).shift(position, row.position(), slot);
        }
    }

    /// A row goes.
    pub fn remove(&mut self, shard: ShardId, slot: SlotId) {
        let rows = Arc::get_mut(&mut self.rows).expect(UNSHARED);
        let Slot { spot, hash, .. } = rows.empty(slot);
        rows.goes(spot);
        let row = rows.arena.get(spot);
        let index = self.order.get_mut(&(shard, row.table())).expect("every row is in an index");
        index.remove(row.position(), row.group());
        rows.arena.free(spot);
        forget_key(&mut self.keys, hash, slot);
    }

    /// The slot of the row with this key.
    pub fn find(&self, hash: u64, key: KeyText<'_>, shard: ShardId, table: Table) -> Option<SlotId> {
        let short = (hash >> 32) as u32;
        let is_it = |entry: &KeyEntry| {
            let slot = &self.rows.slots[entry.slot as usize];
            if slot.hash != hash || slot.shard != shard {
                return false;
            }
            let row = self.rows.arena.get(slot.spot);
            row.has_key(key) && (row.table() == Table::Settings) == (table == Table::Settings)
        };
        self.keys.find(KeyEntry::spread(short), is_it).map(|entry| entry.slot)
    }

    /// The rows of a table, in time order and by group.
    pub fn table(&mut self, shard: ShardId, table: Table) -> Option<&mut Index<SlotId>> {
        self.order.get_mut(&(shard, table))
    }

    pub fn rows(&self) -> &Arc<Rows> {
        &self.rows
    }

    /// Adds to a tally.
    pub fn count(&mut self, shard: ShardId, tally: Tally, delta: i64) {
        *Arc::get_mut(&mut self.rows).expect(UNSHARED).tallies.entry((shard, tally)).or_insert(0) += delta;
    }

    /// The bodies that moved from one run to another are borrowed from there from now on.
    pub fn borrow_from(&mut self, moved: impl Fn(Address) -> Option<Address>) {
        for slot in &mut Arc::get_mut(&mut self.rows).expect(UNSHARED).slots {
            if let Body::Borrowed(address) = slot.body
                && let Some(address) = moved(address)
            {
                slot.body = Body::Borrowed(address);
            }
        }
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        self.rows.arena.bytes() + self.keys.len() * ROW_OVERHEAD
    }

    fn index(&mut self, shard: ShardId, table: Table) -> &mut Index<SlotId> {
        self.order.get_mut(&(shard, table)).expect("every row is in an index")
    }
}

impl Rows {
    /// The row in a slot; its body may be elsewhere.
    pub fn row(&self, slot: SlotId) -> (StoredRow<'_>, Body) {
        let Slot { spot, body, .. } = &self.slots[slot as usize];
        (self.arena.get(*spot), *body)
    }

    /// Looks at many rows before each is read, so that memory answers for all of them together: rows
    /// that are due one after the other lie far apart, and one by one each would wait for it.
    pub fn warm(&self, slots: impl Iterator<Item = SlotId>) {
        let spots: Vec<Spot> = slots.map(|slot| self.slots[slot as usize].spot).collect();
        std::hint::black_box(spots.iter().fold(0, |sum, spot| sum ^ self.arena.touch(*spot)));
    }

    pub fn hash(&self, slot: SlotId) -> u64 {
        self.slots[slot as usize].hash
    }

    pub fn shard(&self, slot: SlotId) -> ShardId {
        self.slots[slot as usize].shard
    }

    /// The slots that have a row, in their order.
    pub fn filled(&self) -> impl Iterator<Item = SlotId> + '_ {
        let empty: RoaringBitmap = self.free.iter().copied().collect();
        (0..self.slots.len() as SlotId).filter(move |slot| !empty.contains(*slot))
    }

    /// How many bytes the rows have that are here; bodies that are elsewhere do not count.
    pub fn living(&self) -> u64 {
        self.living
    }

    /// How many bytes telling them again takes at most.
    pub fn to_tell(&self) -> u64 {
        self.to_tell
    }

    pub fn telling(&self) -> Telling {
        self.telling
    }

    /// How many bytes of those a row takes.
    pub fn told(&self, slot: SlotId) -> u64 {
        self.telling.of(self.row(slot).0.bytes().len() as u64)
    }

    /// How many slots there are, empty ones included.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// What is added to the tallies.
    pub fn tallies(&self) -> &Tallies {
        &self.tallies
    }

    /// Tallies with this layer's added, those that become zero left out.
    pub fn added_to(&self, before: &Tallies) -> Tallies {
        let mut sums = before.clone();
        for (tally, delta) in &self.tallies {
            *sums.entry(tally.clone()).or_insert(0) += delta;
        }
        sums.retain(|_, count| *count != 0);
        sums
    }

    /// About how many bytes of rows there are.
    pub fn bytes(&self) -> usize {
        self.arena.bytes()
    }

    fn comes(&mut self, spot: Spot) {
        let bytes = self.arena.get(spot).bytes().len() as u64;
        self.living += bytes;
        self.to_tell += self.telling.of(bytes);
    }

    fn goes(&mut self, spot: Spot) {
        let bytes = self.arena.get(spot).bytes().len() as u64;
        self.living -= bytes;
        self.to_tell -= self.telling.of(bytes);
    }

    fn fill(&mut self, slot: Slot) -> SlotId {
        if let Some(free) = self.free.pop() {
            self.slots[free as usize] = slot;
            return free;
        }
        self.slots.push(slot);
        self.slots.len() as SlotId - 1
    }

    fn empty(&mut self, slot: SlotId) -> Slot {
        self.free.push(slot);
        // What is left in it is never looked at, but nothing may seem to be borrowed.
        let Slot { spot, hash, shard, .. } = self.slots[slot as usize];
        let empty = Slot { spot, body: Body::Here, hash, shard };
        std::mem::replace(&mut self.slots[slot as usize], empty)
    }
}

fn forget_key(keys: &mut HashTable<KeyEntry>, hash: u64, slot: SlotId) {
    let short = (hash >> 32) as u32;
    if let Ok(entry) = keys.find_entry(KeyEntry::spread(short), |entry| entry.slot == slot) {
        entry.remove();
    }
}
