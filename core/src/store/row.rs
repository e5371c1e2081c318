//! Rows, their keys and positions, and the changes that can happen to them.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;

use crate::name::Name;
use crate::time::Timestamp;

/// The tables of a shard. The numbers are stored: they never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Table {
    /// Tasks and deliveries to come, ready or with a consumer; `at` is when to wake.
    Live = 1,
    /// Dead letters; `at` is when they died.
    Dead = 2,
    /// Finished tasks; `at` is when they finished.
    History = 3,
    /// Settings of topics and queues, and the shard's own notes; `at` is zero.
    Settings = 4,
}

impl Table {
    /// All tables, in the order of their numbers.
    pub const ALL: [Table; 4] = [Table::Live, Table::Dead, Table::History, Table::Settings];

    /// The table of this number, if there is such a one.
    pub fn numbered(number: u64) -> Option<Table> {
        Table::ALL.into_iter().find(|table| *table as u64 == number)
    }
}

/// What a row is known by: (topic, id, queue), any of them possibly empty. Cloning shares the text.
#[derive(Clone, Eq, PartialOrd, Ord)]
pub struct Key {
    text: Arc<str>,
    topic_end: u16,
    id_end: u16,
}

impl Key {
    /// The key of these three parts.
    pub fn new(topic: &str, id: &str, queue: &str) -> Key {
        let (topic_end, id_end) = (topic.len(), topic.len() + id.len());
        let end = id_end + queue.len();
        assert!(end <= Key::MAX_BYTES, "the parts of a key are names, of at most {} bytes", Name::MAX_BYTES);
        // Laid together on the stack, so that one allocation does.
        let mut text = [0; Key::MAX_BYTES];
        text[..topic_end].copy_from_slice(topic.as_bytes());
        text[topic_end..id_end].copy_from_slice(id.as_bytes());
        text[id_end..end].copy_from_slice(queue.as_bytes());
        let text = std::str::from_utf8(&text[..end]).expect("texts one after the other are a text");
        Key { text: text.into(), topic_end: topic_end as u16, id_end: id_end as u16 }
    }

    const MAX_BYTES: usize = 3 * Name::MAX_BYTES;

    /// The same for parts that come out of a store; none if they are too long to be a key's.
    pub fn read_back(topic: &str, id: &str, queue: &str) -> Option<Key> {
        let fits = |part: &str| part.len() <= Name::MAX_BYTES;
        [topic, id, queue].into_iter().all(fits).then(|| Key::new(topic, id, queue))
    }

    /// The key of a task.
    pub fn task(topic: &Name, id: &Name) -> Key {
        Key::new(topic, id, "")
    }

    /// The key of a task's own delivery in one of several queues.
    #[must_use]
    pub fn in_queue(&self, queue: &Name) -> Key {
        Key::new(self.topic(), self.id(), queue)
    }

    /// The key of the task that this delivery belongs to.
    #[must_use]
    pub fn of_task(&self) -> Key {
        if self.queue().is_empty() { self.clone() } else { Key::new(self.topic(), self.id(), "") }
    }

    /// All three parts, one after the other.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The topic's name.
    pub fn topic(&self) -> &str {
        &self.text[..usize::from(self.topic_end)]
    }

    /// The task's id.
    pub fn id(&self) -> &str {
        &self.text[usize::from(self.topic_end)..usize::from(self.id_end)]
    }

    /// The queue's name; empty for the task itself.
    pub fn queue(&self) -> &str {
        &self.text[usize::from(self.id_end)..]
    }
}

impl PartialEq for Key {
    /// Clones share their text, and then need not be compared byte by byte.
    fn eq(&self, other: &Key) -> bool {
        let same_parts = (self.topic_end, self.id_end) == (other.topic_end, other.id_end);
        same_parts && (Arc::ptr_eq(&self.text, &other.text) || self.text == other.text)
    }
}

impl Hash for Key {
    /// Where the parts end is left out: keys that differ only in that are rare.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.text.as_bytes());
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.topic(), self.id(), self.queue())
    }
}

/// A place in a table's time order: by time, and at equal times by the row's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The row's time.
    pub at: Timestamp,
    /// The row's number.
    pub seq: u64,
}

impl Position {
    /// Before every row.
    pub const START: Position = Position { at: Timestamp::ZERO, seq: 0 };

    /// Before every row of this time.
    pub const fn start_of(at: Timestamp) -> Position {
        Position { at, seq: 0 }
    }

    /// The next position after this one.
    #[must_use]
    pub const fn next(self) -> Position {
        Position { at: self.at, seq: self.seq + 1 }
    }
}

/// A row: small state that changes, under a key and a time, and a body that does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The table it stands in.
    pub table: Table,
    /// What it is known by.
    pub key: Key,
    /// Its number, unique within the shard, given once and kept; below 2^63, for databases' sake.
    pub seq: u64,
    /// Its time; what it means depends on the table.
    pub at: Timestamp,
    /// What it can be found by together with others; never changes.
    pub group: Option<Name>,
    /// What changes.
    pub state: Bytes,
    /// What does not.
    pub body: Bytes,
}

impl Row {
    /// Where it stands in its table's time order.
    pub fn position(&self) -> Position {
        Position { at: self.at, seq: self.seq }
    }

    /// Where it stands, for the change that comes next.
    pub fn place(&self) -> Place {
        Place { table: self.table, key: self.key.clone(), position: self.position(), group: self.group.clone() }
    }
}

/// Where a row stands now: all that a store may need to reach it without searching.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The table it stands in.
    pub table: Table,
    /// What it is known by.
    pub key: Key,
    /// Where it stands in time order.
    pub position: Position,
    /// The row's group. It never changes; with it a store need not look the row up to take it out
    /// of its group.
    pub group: Option<Name>,
}

/// One change to one row. Only an insert carries a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new row, maybe in the place of an old one of the same key, which goes with its body.
    /// Their numbers may differ.
    Insert {
        /// The new row.
        row: Row,
        /// Where the old one stands.
        replaces: Option<Place>,
    },
    /// Another time, state, or table; key, number, group and body stay.
    Update {
        /// Where the row stands.
        place: Place,
        /// The table it is to stand in.
        table: Table,
        /// Its new time.
        at: Timestamp,
        /// Its new state.
        state: Bytes,
    },
    /// The row goes.
    Remove {
        /// Where the row stands.
        place: Place,
    },
}

impl Change {
    /// The key of the row that changes.
    pub fn key(&self) -> &Key {
        match self {
            Change::Insert { row, .. } => &row.key,
            Change::Update { place, .. } | Change::Remove { place } => &place.key,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_gives_back_its_parts_and_tells_equal_texts_apart() {
        let key = Key::new("orders", "42", "mail");
        assert_eq!((key.topic(), key.id(), key.queue()), ("orders", "42", "mail"));
        assert_ne!(Key::new("ab", "c", ""), Key::new("a", "bc", ""));
        assert_eq!(key.of_task(), Key::new("orders", "42", ""));
    }

    #[test]
    fn positions_are_ordered_by_time_and_then_by_number() {
        let at = |at, seq| Position { at: Timestamp::from_millis(at), seq };
        assert!(at(1, 9) < at(2, 1));
        assert!(at(2, 1) < at(2, 2));
        assert_eq!(at(2, 1).next(), at(2, 2));
    }
}
