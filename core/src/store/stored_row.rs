//! A row as it comes out of a database, where anybody may have written anything: a building block for stores.

use bytes::Bytes;

use super::{Key, Row, StoreError, Table};
use crate::name::Name;
use crate::time::Timestamp;

/// The parts of a row, none of which is believed yet.
pub struct StoredRow<'a> {
    /// The number of its table.
    pub table: u64,
    /// Topic, id and queue.
    pub key: [&'a [u8]; 3],
    /// Its number.
    pub seq: u64,
    /// Its time, in milliseconds since 1970.
    pub at: u64,
    /// Its group.
    pub group: Option<&'a [u8]>,
    /// Its state, which is for the shard to read.
    pub state: Bytes,
    /// Its body.
    pub body: Bytes,
}

impl StoredRow<'_> {
    /// The row; or what is wrong with it, with its number.
    pub fn read(self) -> Result<Row, StoreError> {
        let StoredRow { table, key, seq, at, group, state, body } = self;
        let damaged = |why: &str| StoreError::damaged(format_args!("row {seq}"), why);
        let table =
            Table::numbered(table).ok_or_else(|| damaged(&format!("it is in a table {table}, which is none")))?;
        let [topic, id, queue] = key.map(std::str::from_utf8);
        let parts = topic.ok().zip(id.ok()).zip(queue.ok());
        let key = parts.and_then(|((topic, id), queue)| Key::read_back(topic, id, queue));
        let group = group.map(|group| std::str::from_utf8(group).ok().and_then(|group| Name::read_back(group).ok()));
        Ok(Row {
            table,
            key: key.ok_or_else(|| damaged("its key is none"))?,
            seq,
            at: Timestamp::read_back(at).ok_or_else(|| damaged("its time is after the end of time"))?,
            group: group.map(|group| group.ok_or_else(|| damaged("its group is none"))).transpose()?,
            state,
            body,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored() -> StoredRow<'static> {
        let (state, body) = (Bytes::from_static(b"state"), Bytes::from_static(b"body"));
        StoredRow { table: 2, key: [b"orders", b"42", b""], seq: 7, at: 9, group: Some(b"spring"), state, body }
    }

    fn refused(stored: StoredRow<'_>) -> String {
        stored.read().expect_err("it is damaged").to_string()
    }

    #[test]
    fn what_a_store_has_written_comes_back() {
        let row = stored().read().unwrap();
        assert_eq!((row.table, row.key, row.seq), (Table::Dead, Key::new("orders", "42", ""), 7));
        assert_eq!((row.at, row.group), (Timestamp::from_millis(9), Some(Name::stored("spring"))));
        let never = StoredRow { at: Timestamp::NEVER.as_millis(), group: None, ..stored() };
        assert_eq!(never.read().unwrap().at, Timestamp::NEVER);
    }

    #[test]
    fn what_no_store_has_written_is_refused_with_the_rows_number() {
        let long = [b'x'; Name::MAX_BYTES + 1];
        let at = Timestamp::NEVER.as_millis() + 1;
        for (forged, why) in [
            (StoredRow { table: 0, ..stored() }, "table 0"),
            (StoredRow { table: 5, ..stored() }, "table 5"),
            (StoredRow { table: u64::MAX, ..stored() }, "which is none"),
            (StoredRow { key: [b"orders", b"4\xff", b""], ..stored() }, "key"),
            (StoredRow { key: [b"orders", &long, b""], ..stored() }, "key"),
            (StoredRow { at, ..stored() }, "time"),
            (StoredRow { at: u64::MAX, ..stored() }, "time"),
            (StoredRow { group: Some(b""), ..stored() }, "group"),
            (StoredRow { group: Some(b"a b"), ..stored() }, "group"),
            (StoredRow { group: Some(&long), ..stored() }, "group"),
        ] {
            let text = refused(forged);
            assert!(text.contains("row 7") && text.contains(why), "{why}: {text}");
        }
    }
}
