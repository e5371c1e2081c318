//! A part of a table that a step reads and works on.

use crate::store::{Find, Page, Position, Row, Scan};
use crate::time::Timestamp;

#[derive(Debug)]
pub(super) struct Stretch {
    pub reading: Reading,
    pub rows: Vec<Row>,
    /// Where the next one begins, in its order: of the rows of a group only the numbers count. `None`: this is the last one.
    pub next: Option<Position>,
}

/// What a stretch shows.
#[derive(Debug)]
pub(super) enum Reading {
    Scan(Scan),
    Find(Find),
    /// Nothing: what is worked on is named elsewhere.
    Nothing,
}

impl Stretch {
    pub fn scan(scan: Scan) -> Stretch {
        Stretch { reading: Reading::Scan(scan), rows: Vec::new(), next: None }
    }

    pub fn find(find: Find) -> Stretch {
        Stretch { reading: Reading::Find(find), rows: Vec::new(), next: None }
    }

    pub fn nothing() -> Stretch {
        Stretch { reading: Reading::Nothing, rows: Vec::new(), next: None }
    }

    /// Takes what was read of a table.
    pub fn fill(&mut self, page: Page<Position>) {
        (self.rows, self.next) = (page.rows, page.next);
    }

    /// Takes what was read of a group.
    pub fn fill_by_number(&mut self, page: Page<u64>) {
        let next = page.next.map(|seq| Position { at: Timestamp::ZERO, seq });
        (self.rows, self.next) = (page.rows, next);
    }
}
