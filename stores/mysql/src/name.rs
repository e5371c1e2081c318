//! The key of a row as one column: one column is found by a list of values six times as fast as three.
//!
//! ```text
//! space, 1 byte: 0 for tasks and deliveries, 1 for settings, whose keys are their own
//! topic: length, 1 byte, and its bytes
//! id: length, 1 byte, and its bytes
//! queue: the rest
//! ```

use punctual_core::store::{Key, Table};

/// The longest: the space, two lengths and three names of 255 bytes.
pub(crate) const LONGEST: usize = 768;

/// The key as bytes.
pub(crate) fn encode(table: Table, key: &Key) -> Vec<u8> {
    let mut bytes = topic_prefix(table, key.topic());
    put(&mut bytes, key.id());
    bytes.extend_from_slice(key.queue().as_bytes());
    bytes
}

/// What the keys of all rows of a topic begin with.
pub(crate) fn topic_prefix(table: Table, topic: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    bytes.push(u8::from(table == Table::Settings));
    put(&mut bytes, topic);
    bytes
}

/// Topic, id and queue of the key of which these are the bytes; `None` if they are damaged.
pub(crate) fn parts(bytes: &[u8]) -> Option<[&[u8]; 3]> {
    let mut rest = bytes.get(1..)?;
    Some([take(&mut rest)?, take(&mut rest)?, rest])
}

fn put(bytes: &mut Vec<u8>, part: &str) {
    bytes.push(u8::try_from(part.len()).expect("a name has at most 255 bytes"));
    bytes.extend_from_slice(part.as_bytes());
}

fn take<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (&length, rest) = bytes.split_first()?;
    let (part, rest) = rest.split_at_checked(usize::from(length))?;
    *bytes = rest;
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_and_differs_from_its_neighbours() {
        let longest = "x".repeat(255);
        let keys = [("a", "b", "c"), ("ab", "", "c"), ("", "ab", "c"), ("", "", ""), (&longest, &longest, &longest)];
        let all: Vec<Vec<u8>> = keys.iter().map(|(t, i, q)| encode(Table::Live, &Key::new(t, i, q))).collect();
        for ((topic, id, queue), bytes) in keys.iter().zip(&all) {
            assert_eq!(parts(bytes), Some([topic.as_bytes(), id.as_bytes(), queue.as_bytes()]));
            assert!(bytes.starts_with(&topic_prefix(Table::Dead, topic)) && bytes.len() <= LONGEST);
            assert_eq!(all.iter().filter(|other| *other == bytes).count(), 1);
        }
        assert_ne!(encode(Table::Settings, &Key::new("a", "b", "c")), all[0]);
    }

    #[test]
    fn damaged_bytes_are_no_key() {
        for bytes in [&[][..], &[0], &[0, 5, b'a'], &[0, 1, b'a'], &[0, 1, b'a', 2, b'b']] {
            assert_eq!(parts(bytes), None, "{bytes:?}");
        }
    }
}
