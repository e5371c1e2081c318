//! The stored form of a row: one layout in the journal, in memory and in runs, so that a row is
//! laid out once in its life and copied from then on.
//!
//! ```text
//!  0  u64  at                      24  u16  length of the topic
//!  8  u64  seq                     26  u16  length of the id
//! 16  u32  length of the state     28  u16  length of the queue
//! 20  u32  length of the body      30  u8   table
//!                                  31  u8   length of the group; 0: none
//! 32  topic, id, queue, group, state, body
//! ```
//! Numbers are little endian, here and everywhere in the almanac.

use bytes::Bytes;
use punctual_core::store::{Bodies, Key, Position, Row, ShardId, Table};
use punctual_core::{Name, Timestamp};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// How long the part before the texts is.
pub(crate) const HEAD: usize = 32;

/// A row in its stored form.
#[derive(Clone, Copy)]
pub(crate) struct StoredRow<'a> {
    bytes: &'a [u8],
}

impl<'a> StoredRow<'a> {
    /// The row that these bytes begin with; `None` if they are too few or name no table.
    pub fn first(bytes: &'a [u8]) -> Option<StoredRow<'a>> {
        let head = StoredRow { bytes: bytes.get(..HEAD).map(|_| bytes)? };
        table(head.bytes[30])?;
        Some(StoredRow { bytes: bytes.get(..head.length())? })
    }

    /// All of it.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// All but the body; its length still tells that there is one.
    pub fn without_body(self) -> &'a [u8] {
        &self.bytes[..self.state_end()]
    }

    pub fn table(self) -> Table {
        table(self.bytes[30]).expect("the table was looked at when the row was found")
    }

    pub fn position(self) -> Position {
        Position { at: instant(self.u64(0)), seq: self.u64(8) }
    }

    /// Topic, id and queue, one after the other.
    pub fn key_text(self) -> &'a [u8] {
        &self.bytes[HEAD..self.key_end()]
    }

    pub fn topic(self) -> &'a [u8] {
        &self.bytes[HEAD..HEAD + self.u16(24)]
    }

    pub fn group(self) -> Option<&'a str> {
        let group = &self.bytes[self.key_end()..self.group_end()];
        (!group.is_empty()).then(|| text(group))
    }

    pub fn state(self) -> &'a [u8] {
        &self.bytes[self.group_end()..self.state_end()]
    }

    pub fn body(self) -> &'a [u8] {
        &self.bytes[self.state_end()..]
    }

    /// Whether it stands under this key.
    pub fn has_key(self, key: KeyText<'_>) -> bool {
        self.key_parts() == key.parts && self.key_text() == key.text
    }

    /// The key it stands under.
    pub fn key(self) -> KeyText<'a> {
        KeyText { text: self.key_text(), parts: self.key_parts() }
    }

    /// The row, with the body that belongs to it.
    pub fn to_row(self, body: &[u8]) -> Row {
        let (topic, id) = (self.u16(24), self.u16(26));
        let key = text(self.key_text());
        let group = self.group().map(Name::stored);
        Row {
            table: self.table(),
            key: Key::new(&key[..topic], &key[topic..topic + id], &key[topic + id..]),
            seq: self.u64(8),
            at: instant(self.u64(0)),
            group,
            state: Bytes::copy_from_slice(self.state()),
            body: Bytes::copy_from_slice(body),
        }
    }

    /// The row as a read gives it.
    pub fn read(self, bodies: Bodies) -> Row {
        match bodies {
            Bodies::With => self.to_row(self.body()),
            Bodies::Without => self.to_row(&[]),
        }
    }

    fn key_parts(self) -> (u16, u16) {
        (self.u16(24) as u16, self.u16(26) as u16)
    }

    fn length(self) -> usize {
        self.state_end() + self.u32(20)
    }

    fn key_end(self) -> usize {
        HEAD + self.u16(24) + self.u16(26) + self.u16(28)
    }

    fn group_end(self) -> usize {
        self.key_end() + usize::from(self.bytes[31])
    }

    fn state_end(self) -> usize {
        self.group_end() + self.u32(16)
    }

    fn u16(self, at: usize) -> usize {
        usize::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]))
    }

    fn u32(self, at: usize) -> usize {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("four bytes")) as usize
    }

    fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().expect("eight bytes"))
    }
}

/// What goes into a row's stored form.
pub(crate) struct Parts<'a> {
    pub table: Table,
    pub key: &'a Key,
    pub position: Position,
    pub group: Option<&'a Name>,
    pub state: &'a [u8],
    pub body: &'a [u8],
}

impl Parts<'_> {
    /// Appends the row in its stored form.
    pub fn write(&self, to: &mut Vec<u8>) {
        let (topic, id, queue) = (self.key.topic(), self.key.id(), self.key.queue());
        let group = self.group.map_or("", Name::as_str);
        let mut head = [0; HEAD];
        head[0..8].copy_from_slice(&self.position.at.as_millis().to_le_bytes());
        head[8..16].copy_from_slice(&self.position.seq.to_le_bytes());
        head[16..20].copy_from_slice(&length(self.state).to_le_bytes());
        head[20..24].copy_from_slice(&length(self.body).to_le_bytes());
        head[24..26].copy_from_slice(&(topic.len() as u16).to_le_bytes());
        head[26..28].copy_from_slice(&(id.len() as u16).to_le_bytes());
        head[28..30].copy_from_slice(&(queue.len() as u16).to_le_bytes());
        head[30] = self.table as u8;
        head[31] = group.len() as u8;
        to.extend_from_slice(&head);
        for part in [topic.as_bytes(), id.as_bytes(), queue.as_bytes(), group.as_bytes(), self.state, self.body] {
            to.extend_from_slice(part);
        }
    }
}

/// Appends a row with this body, whatever body it had.
pub(crate) fn write_with_body(row: StoredRow<'_>, body: &[u8], to: &mut Vec<u8>) {
    write_head(row, body.len(), to);
    to.extend_from_slice(body);
}

/// Appends a row up to its body, which is to follow and is so long.
pub(crate) fn write_head(row: StoredRow<'_>, body: usize, to: &mut Vec<u8>) {
    let start = to.len();
    to.extend_from_slice(row.without_body());
    to[start + 20..start + 24].copy_from_slice(&(body as u32).to_le_bytes());
}

/// A key as it is compared: its parts one after the other, and how long the first two are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyText<'a> {
    pub text: &'a [u8],
    pub parts: (u16, u16),
}

impl<'a> KeyText<'a> {
    pub fn of(key: &'a Key) -> KeyText<'a> {
        KeyText { text: key.text().as_bytes(), parts: (key.topic().len() as u16, key.id().len() as u16) }
    }

    /// The hash by which runs know the row; stored, so it never changes. Settings have a space of their own.
    pub fn hash(self, shard: ShardId, table: Table) -> u64 {
        let space = u64::from(table == Table::Settings);
        let seed = u64::from(shard.0) | space << 16 | u64::from(self.parts.0) << 24 | u64::from(self.parts.1) << 40;
        xxh3_64_with_seed(self.text, seed)
    }
}

/// The hash by which runs know a group; stored, so it never changes.
pub(crate) fn group_hash(shard: ShardId, group: &str) -> u64 {
    xxh3_64_with_seed(group.as_bytes(), u64::from(shard.0))
}

/// The hash under which the numbers of all rows of a shard stand among the groups: that of the group
/// without a name, which no row is in.
pub(crate) fn numbers_hash(shard: ShardId) -> u64 {
    group_hash(shard, "")
}

/// The table with this number.
pub(crate) fn table(number: u8) -> Option<Table> {
    Table::numbered(number.into())
}

/// The instant that was stored, or none.
pub(crate) fn instant(millis: u64) -> Timestamp {
    if millis == Timestamp::NEVER.as_millis() { Timestamp::NEVER } else { Timestamp::from_millis(millis) }
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a state or body has less than 4 GiB")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it was a text when it was stored, and the checksum is right")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            table: Table::Dead,
            key: Key::new("orders", "42", "mail"),
            seq: 7,
            at: Timestamp::from_millis(1_000),
            group: Some(Name::new("user-9").unwrap()),
            state: Bytes::from_static(b"state"),
            body: Bytes::from_static(b"body"),
        }
    }

    fn stored(row: &Row, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let Row { table, key, group, state, .. } = row;
        Parts { table: *table, key, position: row.position(), group: group.as_ref(), state, body }.write(&mut bytes);
        bytes
    }

    #[test]
    fn a_row_comes_back_as_it_was_stored() {
        let bytes = stored(&row(), b"body");
        let read = StoredRow::first(&bytes).unwrap();
        assert_eq!(read.read(Bodies::With), row());
        assert_eq!(read.read(Bodies::Without), row().without_body());
        assert!(read.has_key(KeyText::of(&row().key)));
        assert!(!read.has_key(KeyText::of(&Key::new("order", "s42", "mail"))));
    }

    #[test]
    fn a_row_from_when_dots_were_names_comes_back() {
        let row = Row { key: Key::new("..", ".", ".."), group: Some(Name::stored("..")), ..row() };
        assert_eq!(StoredRow::first(&stored(&row, b"body")).unwrap().read(Bodies::With), row);
    }

    #[test]
    fn a_row_cut_short_is_not_a_row() {
        let bytes = stored(&row(), b"body");
        assert!((0..bytes.len()).all(|length| StoredRow::first(&bytes[..length]).is_none()));
    }

    #[test]
    fn a_body_can_be_added_later() {
        let mut whole = Vec::new();
        write_with_body(StoredRow::first(&stored(&row(), b"")).unwrap(), b"body", &mut whole);
        assert_eq!(whole, stored(&row(), b"body"));
    }
}
