//! The rows of a shard, each in a slot that it keeps while it lives, so that an index need only
//! name the slot, and a row that moves in time or between tables is not copied.

use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};

use punctual_core::store::Row;

/// Where a row lies. Counted from one, so that an index entry without a slot costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(NonZeroU32);

impl Slot {
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

#[derive(Clone, Default)]
pub(crate) struct Slab {
    rows: Vec<Option<Row>>,
    free: Vec<Slot>,
}

const FILLED: &str = "an index names only slots that hold a row";

impl Slab {
    pub(crate) fn put(&mut self, row: Row) -> Slot {
        if let Some(slot) = self.free.pop() {
            self.rows[slot.index()] = Some(row);
            return slot;
        }
        self.rows.push(Some(row));
        let number = u32::try_from(self.rows.len()).expect("a shard in memory has fewer than 2^32 rows");
        Slot(NonZeroU32::new(number).expect("a row was just pushed"))
    }

    pub(crate) fn take(&mut self, slot: Slot) -> Row {
        self.free.push(slot);
        self.rows[slot.index()].take().expect(FILLED)
    }
}

impl Index<Slot> for Slab {
    type Output = Row;
    fn index(&self, slot: Slot) -> &Row {
        self.rows[slot.index()].as_ref().expect(FILLED)
    }
}

impl IndexMut<Slot> for Slab {
    fn index_mut(&mut self, slot: Slot) -> &mut Row {
        self.rows[slot.index()].as_mut().expect(FILLED)
    }
}
