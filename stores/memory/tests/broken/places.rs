//! Where all rows of a store stand, so that it can be told whether a batch is about them.

use std::collections::HashMap;

use punctual_core::store::{Change, Key, Place, Row, ShardId, Table};

#[derive(Clone, Default)]
pub struct Places {
    by_number: HashMap<(ShardId, u64), Place>,
    /// Settings have keys of their own.
    by_key: HashMap<(ShardId, bool, Key), u64>,
}

impl Places {
    /// What is wrong with a change, if it is not about what is there.
    pub fn is_astray(&self, shard: ShardId, change: &Change) -> Option<String> {
        let stands = |place: &Place| self.by_number.get(&(shard, place.position.seq)) == Some(place);
        let fits = match change {
            Change::Insert { row, replaces: None } => {
                !self.by_number.contains_key(&(shard, row.seq)) && !self.by_key.contains_key(&key(shard, &row.place()))
            }
            Change::Insert { row, replaces: Some(place) } => {
                let is_free = row.seq == place.position.seq || !self.by_number.contains_key(&(shard, row.seq));
                is_free && stands(place)
            }
            Change::Update { place, .. } | Change::Remove { place } => stands(place),
        };
        (!fits).then(|| format!("{change:?}"))
    }

    /// A change happens.
    pub fn apply(&mut self, shard: ShardId, change: &Change) {
        match change {
            Change::Insert { row, replaces } => {
                replaces.iter().for_each(|place| self.leave(shard, place));
                self.enter(shard, row);
            }
            Change::Update { place, table, at, .. } => {
                if let Some(known) = self.by_number.get_mut(&(shard, place.position.seq)) {
                    (known.table, known.position.at) = (*table, *at);
                }
            }
            Change::Remove { place } => self.leave(shard, place),
        }
    }

    fn enter(&mut self, shard: ShardId, row: &Row) {
        self.by_number.insert((shard, row.seq), row.place());
        self.by_key.insert(key(shard, &row.place()), row.seq);
    }

    fn leave(&mut self, shard: ShardId, place: &Place) {
        self.by_number.remove(&(shard, place.position.seq));
        self.by_key.remove(&key(shard, place));
    }
}

fn key(shard: ShardId, place: &Place) -> (ShardId, bool, Key) {
    (shard, place.table == Table::Settings, place.key.clone())
}
