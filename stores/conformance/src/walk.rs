//! Reading on from page to page, to a limit or to the end, and what each page must be like on the way.

use std::cmp::Ordering;
use std::fmt::Debug;

use punctual_core::store::{Find, FindBack, Page, Row, Scan, ScanBack, ShardId, Want};

use crate::stage::{Difference, SHARD, Stage, holds};

/// Rows of [`SHARD`], from pages as large as the store makes them.
impl Stage<'_> {
    pub(crate) fn scan(&self, scan: &Scan) -> Result<Vec<Row>, Difference> {
        self.scan_of(SHARD, scan)
    }

    pub(crate) fn scan_of(&self, shard: ShardId, scan: &Scan) -> Result<Vec<Row>, Difference> {
        self.scan_by(scan.limit, shard, scan)
    }

    pub(crate) fn find(&self, find: &Find) -> Result<Vec<Row>, Difference> {
        self.find_by(find.limit, SHARD, find)
    }

    pub(crate) fn scan_back(&self, back: &ScanBack) -> Result<Vec<Row>, Difference> {
        self.scan_back_by(back.limit, SHARD, back)
    }

    pub(crate) fn find_back(&self, back: &FindBack) -> Result<Vec<Row>, Difference> {
        self.find_back_by(back.limit, SHARD, back)
    }
}

/// Rows from pages of at most so many.
impl Stage<'_> {
    pub(crate) fn scan_by(&self, size: usize, shard: ShardId, scan: &Scan) -> Result<Vec<Row>, Difference> {
        let page = |from, limit| {
            let scan = Scan { from, limit, ..scan.clone() };
            Ok(self.read(shard, Want::Scan(&scan))?.span())
        };
        Walk { limit: scan.limit, size, way: Ordering::Greater }.rows(scan.from, page)
    }

    pub(crate) fn find_by(&self, size: usize, shard: ShardId, find: &Find) -> Result<Vec<Row>, Difference> {
        let page = |from_seq, limit| {
            let find = Find { from_seq, limit, ..find.clone() };
            Ok(self.read(shard, Want::Find(&find))?.members())
        };
        Walk { limit: find.limit, size, way: Ordering::Greater }.rows(find.from_seq, page)
    }

    pub(crate) fn scan_back_by(&self, size: usize, shard: ShardId, back: &ScanBack) -> Result<Vec<Row>, Difference> {
        let page = |before, limit| {
            let back = ScanBack { before, limit, ..back.clone() };
            Ok(self.read(shard, Want::ScanBack(&back))?.span())
        };
        Walk { limit: back.limit, size, way: Ordering::Less }.rows(back.before, page)
    }

    pub(crate) fn find_back_by(&self, size: usize, shard: ShardId, back: &FindBack) -> Result<Vec<Row>, Difference> {
        let page = |before_seq, limit| {
            let back = FindBack { before_seq, limit, ..back.clone() };
            Ok(self.read(shard, Want::FindBack(&back))?.members())
        };
        Walk { limit: back.limit, size, way: Ordering::Less }.rows(back.before_seq, page)
    }
}

struct Walk {
    /// So many rows at most.
    limit: usize,
    /// So many in each page.
    size: usize,
    /// Whether places become greater or less.
    way: Ordering,
}

impl Walk {
    /// Follows the pages from a place on, until so many rows are there or a page says that it is the last.
    fn rows<C: Copy + Ord + Debug>(
        &self,
        mut place: C,
        page: impl Fn(C, usize) -> Result<Page<C>, Difference>,
    ) -> Result<Vec<Row>, Difference> {
        let mut rows = Vec::new();
        loop {
            let left = self.size.min(self.limit - rows.len());
            let Page { rows: more, next } = page(place, left)?;
            holds(format_args!("a page has at most {left} rows, not {}", more.len()), more.len() <= left)?;
            rows.extend(more);
            let Some(next) = next.filter(|_| rows.len() < self.limit) else { return Ok(rows) };
            // A store that does not move on must fail here, not go round for ever.
            holds(format_args!("{next:?} leads on from {place:?}"), next.cmp(&place) == self.way)?;
            place = next;
        }
    }
}
