//! What can be wrong with scans, finds and their pages.

use punctual_core::store::{Find, FindBack, Look, Page, Position, Row, Scan, ScanBack, ShardId, StoreError, Table};
use punctual_core::{Millis, Timestamp};

use crate::cases::Breakage::*;
use crate::store::Broken;

impl Broken {
    pub fn scan(&self, shard: ShardId, scan: &Scan) -> Result<Page<Position>, StoreError> {
        let mut scan = scan.clone();
        if self.is(ScansAfterTheCursor) {
            scan.from = scan.from.next();
        }
        if self.is(ScansThroughTheEnd) && scan.until < Timestamp::LAST {
            scan.until = scan.until.plus(Millis(1));
        }
        if self.is(ScansAllTopics) {
            scan.topic = None;
        }
        if self.is(ScansWithoutLimit) {
            scan.limit = usize::MAX;
        }
        let mut page = self.good.scan(shard, &scan)?;
        if self.is(LimitsBeforeFilteringTopics) {
            page = self.good.scan(shard, &Scan { topic: None, ..scan.clone() })?;
            page.rows.retain(|row| scan.topic.as_deref().is_none_or(|topic| row.key.topic() == topic));
            page.next = page.next.filter(|_| page.rows.len() == scan.limit);
        }
        if self.is(FoldsTopics) {
            page = self.good.scan(shard, &Scan { topic: None, ..scan.clone() })?;
            let is_alike = |topic: &str, row: &Row| topic.to_lowercase() == row.key.topic().to_lowercase();
            page.rows.retain(|row| scan.topic.as_deref().is_none_or(|topic| is_alike(topic, row)));
        }
        if self.is(ScansWithoutOrder) {
            page.rows.sort_by(|a, b| a.key.cmp(&b.key));
        }
        if self.is(ScansByTextOfTheNumber) {
            page.rows.sort_by_key(|row| (row.at, row.seq.to_string()));
        }
        if self.is(ScansRowsWithoutATime) && scan.table == Table::Live {
            page.rows.extend(self.timeless(shard, scan.bodies)?);
        }
        if self.is(LeadsPastRowsOfTheSameTime) {
            page.next = page.next.map(|next| Position::start_of(next.at.plus(Millis(1))));
        }
        if self.is(LeadsToTheSameRowAgain) {
            page.next = page.next.map(|next| Position { seq: next.seq - 1, ..next });
        }
        Ok(self.bend_end(page, scan.limit))
    }

    pub fn scan_back(&self, shard: ShardId, back: &ScanBack) -> Result<Page<Position>, StoreError> {
        let mut back = back.clone();
        if self.is(ScansBackThroughItsPosition) {
            back.before = back.before.next();
        }
        if self.is(ScansBackAllTopics) {
            back.topic = None;
        }
        if self.is(ScansBackPastItsEnd) {
            back.from = Timestamp::ZERO;
        }
        let mut page = self.good.scan_back(shard, &back)?;
        if self.is(ScansBackTheEarliest) {
            let all = self.good.scan_back(shard, &ScanBack { limit: usize::MAX, ..back.clone() })?.rows;
            let earliest = all.into_iter().rev().take(back.limit).rev().collect();
            page = Page { rows: earliest, next: None };
        }
        if self.is(ScansBackRowsWithoutATime) && back.table == Table::Live {
            page.rows.splice(0..0, self.timeless(shard, back.bodies)?);
        }
        if self.is(ScansBackInTimeOrder) {
            page.rows.reverse();
        }
        if self.is(LeadsBackPastRowsOfTheSameTime) {
            page.next = page.next.map(|next| Position::start_of(next.at));
        }
        Ok(self.bend_end(page, back.limit))
    }

    pub fn find(&self, shard: ShardId, find: &Find) -> Result<Page<u64>, StoreError> {
        let mut find = find.clone();
        if self.is(FindsFromTheBeginning) {
            find.from_seq = 0;
        }
        let mut page = self.good.find(shard, &find)?;
        if self.is(FindsInTimeOrder) {
            page.rows.sort_by_key(Row::position);
        }
        if self.is(FindsInAllTables) {
            for table in Table::ALL.into_iter().filter(|table| *table != find.table) {
                page.rows.extend(self.good.find(shard, &Find { table, ..find.clone() })?.rows);
            }
            page.rows.sort_by_key(|row| row.seq);
        }
        if self.is(LeadsPastAMember) {
            page.next = page.next.map(|next| next + 2);
        }
        Ok(self.bend_end(page, find.limit))
    }

    pub fn find_back(&self, shard: ShardId, back: &FindBack) -> Result<Page<u64>, StoreError> {
        let mut page = self.good.find_back(shard, back)?;
        if self.is(FindsBackInTimeOrder) {
            page.rows.sort_by_key(|row| std::cmp::Reverse(row.position()));
        }
        if self.is(LeadsBackPastAMember) {
            page.next = page.next.map(|next| next.saturating_sub(2));
        }
        Ok(self.bend_end(page, back.limit))
    }

    /// What a page says about what comes after it.
    fn bend_end<C>(&self, mut page: Page<C>, limit: usize) -> Page<C> {
        let is_short = page.rows.len() < limit;
        if self.is(SaysThatEveryPageIsTheLast)
            || self.is(SaysThatShortPagesAreTheLast) && is_short
            || self.is(SaysThatEmptyPagesAreTheLast) && limit == 0
        {
            page.next = None;
        }
        page
    }
}
