//! A part of a table that a step reads and works on.

use crate::store::{Find, Row, Scan, Table};

/// A part of a table.
#[derive(Debug)]
pub(super) struct Page {
    pub wanted: Wanted,
    pub rows: Vec<Row>,
}

/// What a page shows.
#[derive(Debug)]
pub(super) enum Wanted {
    Scan(Scan),
    Find(Find),
}

impl Page {
    pub fn scan(scan: Scan) -> Page {
        Page { wanted: Wanted::Scan(scan), rows: Vec::new() }
    }

    pub fn find(find: Find) -> Page {
        Page { wanted: Wanted::Find(find), rows: Vec::new() }
    }

    /// Whether there is nothing after it.
    pub fn is_last(&self) -> bool {
        let limit = match &self.wanted {
            Wanted::Scan(scan) => scan.limit,
            Wanted::Find(find) => find.limit,
        };
        self.rows.len() < limit
    }

    pub fn table(&self) -> Table {
        match &self.wanted {
            Wanted::Scan(scan) => scan.table,
            Wanted::Find(find) => find.table,
        }
    }
}
