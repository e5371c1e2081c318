//! A row as Redis keeps it.
//!
//! ```text
//! head    table u8, at u64
//! body    length u32; its highest bit says that the body lies apart, in `bodies`
//! label   group length u8, space u8, topic length u8, id length u8, queue length u8, topic, id, queue, group
//!         the body itself, unless it lies apart
//! state   the rest
//! ```
//! Numbers are big-endian. Head and state change, what is between them never does: the scripts know these places by
//! their offsets. The label without its first byte and its group is the row's name in `names`; space 1 holds the
//! settings, whose keys do not collide with the others.

use bytes::Bytes;
use punctual_core::store::{Key, Place, Position, Row, StoreError, StoredRow, Table};
use punctual_core::{Name, Timestamp};

/// Longer bodies lie apart, so that a change of state need not write them again. Shorter ones cost less with the row
/// than as a field of their own.
const SHORT: usize = 64;
const APART: u32 = 1 << 31;
const HEAD: usize = 9;
const LABEL: usize = HEAD + 4;

/// The bytes of a row's number, in whose order they stand.
pub(crate) fn number(seq: u64) -> [u8; 8] {
    seq.to_be_bytes()
}

pub(crate) fn head(table: Table, at: Timestamp) -> [u8; HEAD] {
    let mut head = [table as u8; HEAD];
    head[1..].copy_from_slice(&at.as_millis().to_be_bytes());
    head
}

/// What a row is found by in `names`.
pub(crate) fn name(key: &Key, table: Table) -> Vec<u8> {
    let short = |part: &str| u8::try_from(part.len()).expect("a name has at most 255 bytes");
    let space = u8::from(table == Table::Settings);
    let mut name = vec![space, short(key.topic()), short(key.id()), short(key.queue())];
    name.extend(key.text().as_bytes());
    name
}

/// The part of a row that says whose it is.
pub(crate) fn label(key: &Key, table: Table, group: Option<&Name>) -> Vec<u8> {
    let group = group.map_or("", Name::as_str);
    let mut label = vec![u8::try_from(group.len()).expect("a name has at most 255 bytes")];
    label.extend(name(key, table));
    label.extend(group.as_bytes());
    label
}

pub(crate) fn label_of(place: &Place) -> Vec<u8> {
    label(&place.key, place.table, place.group.as_ref())
}

/// Where a group's rows stand in `groups`; their numbers follow. No name has a zero byte.
pub(crate) fn in_group(table: Table, group: &str) -> Vec<u8> {
    [&[table as u8], group.as_bytes(), &[0]].concat()
}

/// After all rows of a group.
pub(crate) fn past_group(table: Table, group: &str) -> Vec<u8> {
    [&[table as u8], group.as_bytes(), &[1]].concat()
}

/// Whether a body is kept apart from its row.
pub(crate) fn lies_apart(body: &[u8]) -> bool {
    body.len() > SHORT
}

pub(crate) fn encode(row: &Row) -> Vec<u8> {
    let is_apart = lies_apart(&row.body);
    let inside = if is_apart { &[][..] } else { &row.body };
    let length = u32::try_from(row.body.len()).expect("a body has less than 2 GB");
    let label = label(&row.key, row.table, row.group.as_ref());
    let mut bytes = Vec::with_capacity(LABEL + label.len() + inside.len() + row.state.len());
    bytes.extend(head(row.table, row.at));
    bytes.extend((if is_apart { length | APART } else { length }).to_be_bytes());
    bytes.extend(label);
    bytes.extend(inside);
    bytes.extend(&row.state);
    bytes
}

/// A row that was read; its body may still be missing.
pub(crate) struct Read {
    pub(crate) row: Row,
    /// Whether the body lies apart.
    pub(crate) is_apart: bool,
}

/// The row of these bytes, with its body if that is in them.
pub(crate) fn decode(seq: u64, bytes: Vec<u8>) -> Result<Read, StoreError> {
    let broken = || damaged(seq, "its bytes are no row");
    let mut rest = Bytes::from(bytes);
    let mut take = |length: usize| (length <= rest.len()).then(|| rest.split_to(length)).ok_or_else(broken);

    let (head, length, lengths) = (take(HEAD)?, take(4)?, take(5)?);
    let at = u64::from_be_bytes(head[1..].try_into().map_err(|_| broken())?);
    let length = u32::from_be_bytes(length[..].try_into().map_err(|_| broken())?);
    let [group, space, topic, id, queue] = lengths[..] else { return Err(broken()) };
    let mut text = |length: u8| take(usize::from(length));
    let (topic, id, queue, group) = (text(topic)?, text(id)?, text(queue)?, text(group)?);
    let is_apart = length & APART != 0;
    let body = if is_apart { Bytes::new() } else { take(length as usize)? };
    let (table, key) = (u64::from(head[0]), [&topic[..], &id[..], &queue[..]]);
    let group = (!group.is_empty()).then_some(&group[..]);
    let row = StoredRow { table, key, seq, at, group, state: rest, body }.read()?;
    if space != u8::from(row.table == Table::Settings) {
        return Err(damaged(seq, "it is among the settings, or they are among the tasks"));
    }
    Ok(Read { row, is_apart })
}

/// The position of a row, by its number and the time in its head.
pub(crate) fn position(seq: &[u8], at: &[u8]) -> Option<Position> {
    let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_be_bytes);
    Some(Position { at: Timestamp::read_back(number(at)?)?, seq: number(seq)? })
}

/// Redis has something that no server of ours has written.
pub(crate) fn damaged(seq: u64, why: &str) -> StoreError {
    StoreError::damaged(format_args!("row {seq} in Redis"), why)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

    use punctual_chance::Chance;

    use super::*;

    fn row(body: usize, group: Option<&str>) -> Row {
        Row {
            table: Table::Dead,
            key: Key::new("orders", "42", "mail"),
            seq: 7,
            at: Timestamp::NEVER,
            group: group.map(Name::stored),
            state: Bytes::from_static(b"state"),
            body: vec![b'x'; body].into(),
        }
    }

    #[test]
    fn a_row_comes_back_as_it_was() {
        for (body, group) in [(0, None), (SHORT, Some("spring")), (SHORT + 1, None)] {
            let row = row(body, group);
            let read = decode(7, encode(&row)).unwrap();
            assert_eq!(read.is_apart, body > SHORT);
            assert_eq!(read.row, if read.is_apart { row.without_body() } else { row });
        }
    }

    #[test]
    fn bytes_that_are_cut_short_are_no_row() {
        let bytes = encode(&row(3, Some("spring")));
        for length in 0..bytes.len() - "state".len() {
            assert!(decode(7, bytes[..length].to_vec()).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn whatever_the_bytes_are_they_are_a_row_or_refused() {
        let mut chance = Chance::new(7);
        for _ in 0..20_000 {
            let mut bytes = encode(&row(chance.index(80), Some("spring")));
            for _ in 0..chance.between(1, 4) {
                let at = chance.index(bytes.len());
                bytes[at] = chance.draw() as u8;
            }
            bytes.truncate(chance.index(bytes.len() + 1).max(chance.index(bytes.len() + 1)));
            if let Err(error) = decode(7, bytes) {
                assert!(error.to_string().contains("row 7"), "{error}");
            }
        }
    }

    #[test]
    fn the_scripts_offsets_are_those_of_the_layout() {
        let bytes = encode(&row(3, Some("spring")));
        assert_eq!(bytes[..9], head(Table::Dead, Timestamp::NEVER));
        let label = label_of(&row(3, Some("spring")).place());
        assert_eq!(bytes[13..13 + label.len()], label);
        assert_eq!((bytes[15], &bytes[18..24]), (6, &b"orders"[..]));
    }
}
