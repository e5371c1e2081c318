//! A part of a table that a step reads and works on.

use crate::store::{Find, Row, Scan, Table};

#[derive(Debug)]
pub(super) struct Stretch {
    pub reading: Reading,
    pub rows: Vec<Row>,
}

/// What a stretch shows.
#[derive(Debug)]
pub(super) enum Reading {
    Scan(Scan),
    Find(Find),
}

impl Stretch {
    pub fn scan(scan: Scan) -> Stretch {
        Stretch { reading: Reading::Scan(scan), rows: Vec::new() }
    }

    pub fn find(find: Find) -> Stretch {
        Stretch { reading: Reading::Find(find), rows: Vec::new() }
    }

    /// Whether there is nothing after it.
    pub fn is_last(&self) -> bool {
        let limit = match &self.reading {
            Reading::Scan(scan) => scan.limit,
            Reading::Find(find) => find.limit,
        };
        self.rows.len() < limit
    }

    pub fn table(&self) -> Table {
        match &self.reading {
            Reading::Scan(scan) => scan.table,
            Reading::Find(find) => find.table,
        }
    }
}
