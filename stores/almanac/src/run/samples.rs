//! Rows and runs for tests.

use punctual_core::store::{Key, Position, Row, ShardId, Table};
use punctual_core::{Name, Timestamp};
use punctual_disk::Disk;

use crate::row::{Parts, StoredRow};

use super::{Run, RunWriter};

/// A row with this place in the order; all else follows from its number.
pub(crate) fn row(table: Table, at: u64, seq: u64) -> Row {
    let named = seq.is_multiple_of(3).then(|| Name::new(format!("group-{}", seq % 7)).unwrap());
    Row {
        table,
        key: Key::new("topic", &format!("id-{seq}"), ""),
        seq,
        at: if at == u64::MAX { Timestamp::NEVER } else { Timestamp::from_millis(at) },
        group: named,
        state: vec![seq as u8; seq as usize % 40].into(),
        body: vec![!seq as u8; seq as usize * 17 % 300].into(),
    }
}

/// So many live rows of one shard, one each millisecond, with these numbers.
pub(crate) fn rows(shard: u16, seqs: impl IntoIterator<Item = u64>) -> Vec<(ShardId, Row)> {
    let row = |(at, seq)| (ShardId(shard), row(Table::Live, at, seq));
    (0..).zip(seqs).map(row).collect()
}

/// The row in its stored form.
pub(crate) fn stored(row: &Row) -> Vec<u8> {
    let Row { table, key, group, state, body, .. } = row;
    let mut bytes = Vec::new();
    Parts { table: *table, key, position: row.position(), group: group.as_ref(), state, body }.write(&mut bytes);
    bytes
}

/// Writes a run of these rows, which are in order.
pub(crate) fn write(disk: &dyn Disk, number: u64, rows: &[(ShardId, Row)]) -> (Run, Vec<(u64, u32)>) {
    let mut writer = RunWriter::create(disk, number).unwrap();
    for (ordinal, (shard, row)) in (0..).zip(rows) {
        let bytes = stored(row);
        assert_eq!(writer.push(*shard, StoredRow::first(&bytes).unwrap(), &[]).unwrap(), ordinal);
    }
    writer.finish().unwrap()
}

/// A place in the order of a run.
pub(crate) fn order(row: &(ShardId, Row)) -> (ShardId, Table, Position) {
    (row.0, row.1.table, row.1.position())
}
