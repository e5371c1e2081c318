//! How the peers keep a row: under its position, in time order, everything but the position; and under its key,
//! the position.

use bytes::Bytes;
use punctual_core::Timestamp;
use punctual_core::store::{Key, Position, Row, Table};

/// Time and number, so that the order of the bytes is the order of time.
pub fn position_bytes(position: Position) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&position.at.as_millis().to_be_bytes());
    bytes[8..].copy_from_slice(&position.seq.to_be_bytes());
    bytes
}

pub fn position_from(bytes: &[u8]) -> Position {
    let number = |half: &[u8]| u64::from_be_bytes(half.try_into().expect("half of 16 bytes are 8"));
    Position { at: Timestamp::from_millis(number(&bytes[..8])), seq: number(&bytes[8..16]) }
}

/// Topic and id with their lengths before them, then the state's, then the body.
pub fn put_row(row: &Row, state: &[u8], bytes: &mut Vec<u8>) {
    bytes.clear();
    for part in [row.key.topic().as_bytes(), row.key.id().as_bytes(), state] {
        bytes.push(u8::try_from(part.len()).expect("these are short"));
        bytes.extend_from_slice(part);
    }
    bytes.extend_from_slice(&row.body);
}

pub fn row_from(position: Position, value: &[u8]) -> Row {
    let mut at = 0;
    let mut part = || {
        let from = at + 1;
        at = from + usize::from(value[at]);
        from..at
    };
    let (topic, id, state) = (part(), part(), part());
    let text = |range| std::str::from_utf8(&value[range]).expect("it was a text");
    let key = Key::new(text(topic), text(id), "");
    // One allocation for both.
    let rest = Bytes::copy_from_slice(&value[state.start..]);
    let body = rest.slice(state.len()..);
    Row {
        table: Table::Live,
        key,
        seq: position.seq,
        at: position.at,
        group: None,
        state: rest.slice(..state.len()),
        body,
    }
}

pub fn put_key(key: &Key, bytes: &mut Vec<u8>) {
    bytes.clear();
    bytes.extend_from_slice(key.topic().as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(key.id().as_bytes());
}
