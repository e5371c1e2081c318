//! A layer that is being written into a run: it stays as it was, and beside it is noted which of its
//! rows have changed or gone since.

use punctual_core::store::{Index, Position, ShardId, Table};
use roaring::RoaringBitmap;

use super::{KeyText, Recent, SlotId, forget_key};

pub(crate) struct Frozen {
    layer: Recent,
    /// Rows that are not here any more: removed, or updated and thereby moved to the layer above.
    gone: RoaringBitmap,
    /// How many bytes telling these again would have taken.
    gone_bytes: u64,
}

impl Frozen {
    pub fn new(layer: Recent) -> Frozen {
        Frozen { layer, gone: RoaringBitmap::new(), gone_bytes: 0 }
    }

    /// The layer emptied, to be filled anew.
    pub fn emptied(self, keep: usize) -> Option<Recent> {
        self.layer.emptied(keep)
    }

    /// The layer as it was when it was frozen.
    pub fn layer(&self) -> &Recent {
        &self.layer
    }

    /// The slots of the rows that have gone since.
    pub fn gone(&self) -> &RoaringBitmap {
        &self.gone
    }

    /// How many bytes the rows have at least that are still here.
    pub fn living(&self) -> u64 {
        self.layer.rows.living().saturating_sub(self.gone_bytes)
    }

    /// How many bytes telling the rows again takes at most that are still here.
    pub fn to_tell(&self) -> u64 {
        self.layer.rows.to_tell() - self.gone_bytes
    }

    pub fn find(&self, hash: u64, key: KeyText<'_>, shard: ShardId, table: Table) -> Option<SlotId> {
        self.layer.find(hash, key, shard, table)
    }

    /// A row goes.
    pub fn remove(&mut self, slot: SlotId) {
        self.gone.insert(slot);
        self.gone_bytes += self.layer.rows.told(slot);
        let hash = self.layer.rows.hash(slot);
        forget_key(&mut self.layer.keys, hash, slot);
    }

    /// The rows of a table as they were, in time order and by group, and the slots of those that have gone since.
    pub fn table(&mut self, shard: ShardId, table: Table) -> Option<(&mut Index<SlotId>, &RoaringBitmap)> {
        Some((self.layer.order.get_mut(&(shard, table))?, &self.gone))
    }

    /// The row at exactly this position.
    pub fn get(&mut self, shard: ShardId, table: Table, position: Position) -> Option<SlotId> {
        let slot = self.layer.order.get_mut(&(shard, table))?.get(position)?;
        (!self.gone.contains(slot)).then_some(slot)
    }

    /// The row with this number, if it is still here.
    pub fn number(&mut self, shard: ShardId, table: Table, seq: u64) -> Option<SlotId> {
        let slot = self.layer.order.get_mut(&(shard, table))?.number(seq)?;
        (!self.gone.contains(slot)).then_some(slot)
    }

    /// The tables that have rows, in order.
    pub fn tables(&self) -> Vec<(ShardId, Table)> {
        self.layer.order.keys().copied().collect()
    }

    /// In how many leaves a table's rows stand.
    pub fn leaves(&self, shard: ShardId, table: Table) -> usize {
        self.layer.order.get(&(shard, table)).map_or(0, |index| index.leaves())
    }

    /// The rows of a leaf as they were when the layer was frozen, in time order.
    pub fn leaf(&mut self, shard: ShardId, table: Table, number: usize) -> Vec<(Position, SlotId)> {
        let index = self.layer.order.get_mut(&(shard, table));
        index.map(|index| index.leaf(number).collect()).unwrap_or_default()
    }
}
