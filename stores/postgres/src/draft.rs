//! The parameters of a commit: everything that batches change, column by column.

use punctual_core::Timestamp;
use punctual_core::store::{Batch, Change, Place, Row, ShardId, Table, Tallies};
use tokio_postgres::types::Type;

use crate::column::Column;
use crate::number::shard_number;
use crate::statement::{Parts, Query, value};

/// The columns of `commit.sql`, in the order of its parameters.
pub(crate) struct Draft {
    batches: [Column; 6],
    removals: [Column; 4],
    updates: [Column; 7],
    inserts: [Column; 10],
    parts: Parts,
}

/// What is in the columns.
const BATCHES: [Type; 6] = [Type::INT4, Type::INT8, Type::INT8, Type::INT4, Type::INT4, Type::BYTEA];
const REMOVALS: [Type; 4] = [Type::INT4, Type::INT8, Type::INT2, Type::INT8];
const UPDATES: [Type; 7] = [Type::INT4, Type::INT8, Type::INT2, Type::INT8, Type::INT2, Type::INT8, Type::BYTEA];
const INSERTS: [Type; 10] = [
    Type::INT4,
    Type::INT8,
    Type::INT2,
    Type::INT8,
    Type::BYTEA,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::BYTEA,
];

/// About what a change takes on its way beside its bytes.
const CHANGE_BYTES: usize = 80;

impl Draft {
    pub(crate) fn new() -> Draft {
        Draft {
            batches: BATCHES.map(Column::new),
            removals: REMOVALS.map(Column::new),
            updates: UPDATES.map(Column::new),
            inserts: INSERTS.map(Column::new),
            parts: Parts::default(),
        }
    }

    /// The types of all parameters. A commit that leaves a part out does not tell them by itself.
    pub(crate) fn types() -> Vec<Type> {
        let elements = BATCHES.into_iter().chain(REMOVALS).chain(UPDATES).chain(INSERTS);
        elements.map(|element| Column::new(element).array()).collect()
    }

    /// About how many bytes a batch takes on its way.
    pub(crate) fn weight(batch: &Batch) -> usize {
        let change = |change: &Change| {
            CHANGE_BYTES
                + match change {
                    Change::Insert { row, .. } => row.body.len() + row.state.len() + row.key.text().len(),
                    Change::Update { state, .. } => state.len(),
                    Change::Remove { .. } => 0,
                }
        };
        batch.changes.iter().map(change).sum::<usize>() + batch.tallies.len() * 16
    }

    pub(crate) fn add(&mut self, batch: &Batch) {
        let (mut updated, mut removed) = (0, 0);
        for change in &batch.changes {
            match change {
                Change::Insert { row, replaces } => {
                    if let Some(place) = replaces {
                        removed += 1;
                        self.remove(batch.shard, place);
                    }
                    self.insert(batch.shard, row);
                }
                Change::Update { place, table, at, state } => {
                    updated += 1;
                    self.update(batch.shard, place, *table, *at, state);
                }
                Change::Remove { place } => {
                    removed += 1;
                    self.remove(batch.shard, place);
                }
            }
        }
        let counts = (!batch.tallies.is_empty()).then(|| batch.tallies.iter().cloned().collect::<Tallies>().to_bytes());
        let [shard, fence, serial, updates, removals, tallies] = &mut self.batches;
        shard.int4(shard_number(batch.shard));
        fence.int8(batch.fence.0);
        serial.int8(batch.serial);
        updates.int4(updated);
        removals.int4(removed);
        tallies.maybe(counts.as_deref());
    }

    pub(crate) fn finish(self) -> Query {
        let Draft { batches, removals, updates, inserts, parts } = self;
        let columns = batches.into_iter().chain(removals).chain(updates).chain(inserts);
        Query::commit(parts, columns.map(value).collect())
    }

    fn remove(&mut self, of: ShardId, place: &Place) {
        self.parts.removals = true;
        let [shard, seq, table, at] = &mut self.removals;
        shard.int4(shard_number(of));
        seq.int8(place.position.seq);
        table.int2(place.table as i16);
        at.int8(place.position.at.as_millis());
    }

    fn update(&mut self, of: ShardId, place: &Place, new_table: Table, new_at: Timestamp, new_state: &[u8]) {
        self.parts.updates = true;
        let [shard, seq, old_table, old_at, table, at, state] = &mut self.updates;
        shard.int4(shard_number(of));
        seq.int8(place.position.seq);
        old_table.int2(place.table as i16);
        old_at.int8(place.position.at.as_millis());
        table.int2(new_table as i16);
        at.int8(new_at.as_millis());
        state.bytes(new_state);
    }

    fn insert(&mut self, of: ShardId, row: &Row) {
        self.parts.inserts = true;
        let [shard, seq, table, at, state, topic, id, queue, group, body] = &mut self.inserts;
        shard.int4(shard_number(of));
        seq.int8(row.seq);
        table.int2(row.table as i16);
        at.int8(row.at.as_millis());
        state.bytes(&row.state);
        topic.bytes(row.key.topic().as_bytes());
        id.bytes(row.key.id().as_bytes());
        queue.bytes(row.key.queue().as_bytes());
        group.maybe(row.group.as_ref().map(|group| group.as_bytes()));
        body.bytes(&row.body);
    }
}
