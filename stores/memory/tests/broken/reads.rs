//! What can be wrong with reads as a whole, and with rows that are asked for one by one.

use std::thread;

use punctual_core::store::{
    Bodies, Find, Found, Key, Look, Page, Position, Row, Scan, ShardId, Store, StoreError, Table, Tally, Tenure, Want,
};
use punctual_core::{Name, Timestamp};

use crate::cases::Breakage::*;
use crate::members::A_WHILE;
use crate::store::{Broken, SHARD};

impl Broken {
    pub fn bend_read(&self, shard: ShardId, tenure: Tenure, wants: &[Want<'_>]) -> Result<Vec<Found>, StoreError> {
        let mut asked = tenure;
        if self.is(ReadsUnderEveryFence) {
            asked.fence = self.tenure(shard).fence;
        }
        if self.is(ForgetsTheSerialAtReads) || self.is(ConfirmsBeforeItWrites) {
            asked.serial = 0;
        }
        if self.is(ReadsOnlyUnderTheLatestSerial) {
            asked.serial = asked.serial.max(self.tenure(shard).serial + u64::from(asked.serial == 0));
        }
        if self.is(AdmitsWhoReadsNothing) && wants.is_empty() {
            return Ok(vec![]);
        }
        let wants: Vec<_> = wants.iter().map(|want| (shard, *want)).collect();
        if self.is(AdmitsTheFenceOfNobody) && tenure == self.tenure(shard) {
            return self.bend_look(&wants);
        }
        if self.is(LooksAtTheFenceFirst) {
            self.good.read(shard, asked, &[])?;
            thread::sleep(A_WHILE);
            return self.bend_look(&wants);
        }
        let found = self.bend_look(&wants)?;
        self.good.read(shard, asked, &[])?;
        Ok(found)
    }

    pub fn bend_look(&self, wants: &[(ShardId, Want<'_>)]) -> Result<Vec<Found>, StoreError> {
        let first = wants.first().map(|(shard, _)| *shard);
        let mut all = Vec::new();
        for (shard, want) in wants {
            let shard = first.filter(|_| self.is(LooksAtOneShard)).unwrap_or(*shard);
            let is_free = self.is(LooksAtAnotherShardInstead) && self.tenure(shard) == Tenure::default();
            let instead = is_free || self.is(ReadsOneShardForAll);
            let found = self.find_one(if instead { SHARD } else { shard }, want)?;
            let asks_nothing = matches!(&found, Found::Each(rows) if rows.is_empty());
            if !(asks_nothing && self.is(PassesOverEmptyWants)) {
                all.push(found);
            }
        }
        if self.is(AnswersAgainstTheOrder) {
            all.reverse();
        }
        Ok(all)
    }

    fn find_one(&self, shard: ShardId, want: &Want<'_>) -> Result<Found, StoreError> {
        Ok(match want {
            Want::Keys(keys, bodies) => Found::Each(self.get(shard, keys, *bodies)?),
            Want::Positions(positions, bodies) => Found::Each(self.fetch(shard, positions, *bodies)?),
            Want::Numbers(numbers, bodies) => Found::Each(self.numbered(shard, numbers, *bodies)?),
            Want::Scan(scan) => Found::Span(self.scan(shard, scan)?),
            Want::ScanBack(back) => Found::Span(self.scan_back(shard, back)?),
            Want::Find(find) => Found::Members(self.find(shard, find)?),
            Want::FindBack(back) => Found::Members(self.find_back(shard, back)?),
            Want::Tallies => Found::Tallies(self.tallies(shard)?),
        })
    }

    fn get(&self, shard: ShardId, keys: &[Key], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        let bodies = if self.is(GivesBodiesUnasked) { Bodies::With } else { bodies };
        let mut rows = self.good.get(shard, keys, bodies)?;
        if self.is(GetsSettings) {
            let settings = self.everything(shard, Table::Settings)?;
            for (key, row) in keys.iter().zip(&mut rows) {
                *row = row.take().or_else(|| settings.iter().find(|setting| setting.key == *key).cloned());
            }
        }
        if self.is(GetsLiveRowsOnly) {
            rows.iter_mut().for_each(|row| *row = row.take().filter(|row| row.table == Table::Live));
        }
        if self.is(GetsOnlyWhatIsThere) {
            rows.retain(Option::is_some);
        }
        if self.is(GetsAThousandAtMost) {
            rows.iter_mut().skip(1_000).for_each(|row| *row = None);
        }
        Ok(rows)
    }

    fn fetch(&self, shard: ShardId, positions: &[Position], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        if !self.is(FetchesByNumberAlone) {
            let mut rows = self.good.fetch(shard, positions, bodies)?;
            if self.is(FetchesInTimeOrder) {
                rows.sort_by_key(|row| row.as_ref().map(Row::position));
            }
            return Ok(rows);
        }
        let rows = self.everything(shard, Table::Live)?;
        Ok(positions.iter().map(|position| rows.iter().find(|row| row.seq == position.seq).cloned()).collect())
    }

    fn numbered(&self, shard: ShardId, numbers: &[u64], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        let mut rows = self.good.numbered(shard, numbers, bodies)?;
        if self.is(NumbersOfLiveRowsOnly) {
            rows.iter_mut().for_each(|row| *row = row.take().filter(|row| row.table == Table::Live));
        }
        Ok(rows)
    }

    fn tallies(&self, shard: ShardId) -> Result<Vec<(Tally, i64)>, StoreError> {
        if self.is(SharesTalliesBetweenShards) {
            return self.good.tallies(ShardId(8));
        }
        let mut tallies = self.good.tallies(shard)?;
        if self.is(ShowsEmptyTallies) {
            tallies.iter_mut().for_each(|(_, count)| *count -= 1);
        }
        if self.is(HidesNegativeTallies) {
            tallies.retain(|(_, count)| *count > 0);
        }
        if self.is(ListsTalliesWithoutOrder) {
            tallies.reverse();
        }
        Ok(tallies)
    }

    /// All rows of a table.
    pub fn everything(&self, shard: ShardId, table: Table) -> Result<Vec<Row>, StoreError> {
        let (from, until) = (Position::START, Timestamp::NEVER);
        let scan = Scan { table, from, until, topic: None, limit: usize::MAX, bodies: Bodies::With };
        Ok(self.good.scan(shard, &scan)?.rows)
    }

    /// The rows of group `g` that have no time.
    pub fn timeless(&self, shard: ShardId, bodies: Bodies) -> Result<Vec<Row>, StoreError> {
        let find = Find { table: Table::Live, group: Name::stored("g"), from_seq: 0, limit: 9, bodies };
        let Page { mut rows, .. } = self.good.find(shard, &find)?;
        rows.retain(|row| row.at == Timestamp::NEVER);
        Ok(rows)
    }
}
