//! Reading the rows of a shard, page by page in time order, table after table.
//!
//! A scan leaves out rows without a time. No shard ever writes one: what sleeps for good stands at the last instant.

use std::sync::mpsc::sync_channel;
use std::thread;

use punctual_core::Timestamp;
use punctual_core::store::{Bodies, Found, Position, Row, Scan, ShardId, Store, StoreError, Table, Tenure, Want};

use crate::error::MoveError;
use crate::patience::Patience;
use crate::sum::weight;

/// How many bytes a page should have.
const PAGE_BYTES: usize = 1 << 20;
/// How many rows a page has at most, and the first one. How large bodies are is known when they have come.
const MOST: usize = 512;

/// A shard in one of the stores.
#[derive(Clone, Copy)]
pub(crate) struct Held<'a> {
    pub store: &'a dyn Store,
    pub shard: ShardId,
    /// How the mover holds it; nothing if it only looks.
    pub tenure: Option<Tenure>,
}

impl Held<'_> {
    /// Reads. If the shard is held and somebody else has it by now, that is an error.
    pub fn read(&self, want: Want<'_>) -> Result<Found, StoreError> {
        let mut found = match self.tenure {
            Some(tenure) => self.store.read(self.shard, tenure, &[want])?,
            None => self.store.look(&[(self.shard, want)])?,
        };
        Ok(found.pop().expect("a store answers each want"))
    }
}

/// The rows of a shard.
pub(crate) struct Reading<'a> {
    /// How the shard is held now.
    pub held: Held<'a>,
    patience: Patience,
    tables: std::slice::Iter<'static, Table>,
    next: Option<(Table, Position)>,
    limit: usize,
    bodies: Bodies,
}

impl<'a> Reading<'a> {
    pub fn new(held: Held<'a>, patience: Patience, tables: &'static [Table]) -> Reading<'a> {
        Reading { held, patience, tables: tables.iter(), next: None, limit: MOST / 4, bodies: Bodies::With }
    }

    /// The same, and bodies come back empty.
    pub fn without_bodies(self) -> Reading<'a> {
        Reading { bodies: Bodies::Without, limit: MOST, ..self }
    }

    fn page(&mut self, table: Table, from: Position) -> Result<Vec<Row>, StoreError> {
        let until = Timestamp::NEVER;
        let scan = Scan { table, from, until, topic: None, limit: self.limit, bodies: self.bodies };
        let page = self.patience.retry(|| self.held.read(Want::Scan(&scan)))?.span();
        self.next = page.next.map(|next| (table, next));
        let bytes: usize = page.rows.iter().map(weight).sum();
        if let Some(average) = bytes.checked_div(page.rows.len()) {
            self.limit = (PAGE_BYTES / average.max(1)).clamp(1, MOST);
        }
        Ok(page.rows)
    }
}

/// How many pages are read ahead while one is worked on.
const AHEAD: usize = 3;

/// Gives all rows to somebody who writes them; reading and writing go on side by side. What the store of this name says
/// when it cannot be read comes back.
pub(crate) fn carry(
    reading: Reading<'_>,
    place: &str,
    mut take: impl FnMut(Vec<Row>) -> Result<(), MoveError>,
) -> Result<(), MoveError> {
    let (sender, pages) = sync_channel(AHEAD);
    thread::scope(|scope| {
        scope.spawn(move || {
            for page in reading {
                let is_last = page.is_err();
                // Who does not listen any more has failed, and says so.
                if sender.send(page).is_err() || is_last {
                    return;
                }
            }
        });
        // The receiver goes with this closure: if writing fails, the reader finds nobody to send to.
        for page in pages {
            take(page.map_err(MoveError::of(place))?)?;
        }
        Ok(())
    })
}

impl Iterator for Reading<'_> {
    type Item = Result<Vec<Row>, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let begin = |table: &Table| (*table, Position::START);
        let (table, from) = self.next.take().or_else(|| self.tables.next().map(begin))?;
        Some(self.page(table, from))
    }
}
