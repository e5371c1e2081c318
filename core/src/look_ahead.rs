//! What falls due when for some of the topics, counted by looking at each row.
//!
//! The shards count by time for all topics together, or a count for each topic and minute would grow without bound.
//! Whoever has to do with a few topics only is counted for here, within a bound that is told.

use crate::scope::Scope;
use crate::shard::Unit;
use crate::state::{Phase, State};
use crate::store::{Bodies, Look, Position, Scan, ShardId, Store, StoreError, Table};
use crate::time::Timestamp;

/// How many rows are read at once.
const SLICE: usize = 1_024;

/// How many deliveries come due in each of some slots of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ahead {
    unit: Unit,
    first: u64,
    counts: Vec<u64>,
    /// Everything that comes due before this is counted.
    counted_until: Timestamp,
}

impl Ahead {
    /// So many slots, of which the first is the one that is running. Nothing is counted yet.
    pub fn new(now: Timestamp, unit: Unit, slots: usize) -> Ahead {
        let first = now.as_millis() / unit.millis();
        let last = Timestamp::LAST.as_millis() / unit.millis();
        let slots = slots.min(usize::try_from(last - first + 1).unwrap_or(usize::MAX));
        let mut ahead = Ahead { unit, first, counts: vec![0; slots], counted_until: Timestamp::ZERO };
        ahead.counted_until = ahead.end();
        ahead
    }

    fn beginning(&self, slot: usize) -> Timestamp {
        Timestamp::from_millis((self.first + slot as u64) * self.unit.millis())
    }

    fn end(&self) -> Timestamp {
        self.beginning(self.counts.len())
    }

    /// Counts what waits in a shard and is of topics in a scope, looking at no more rows than `budget` has left.
    pub fn count(
        &mut self,
        store: &dyn Store,
        shard: ShardId,
        within: &Scope,
        budget: &mut usize,
    ) -> Result<(), StoreError> {
        let mut from = Position::start_of(self.beginning(0));
        // What was not counted in one shard need not be in another: no slot from there on is told of.
        while from.at < self.counted_until {
            let limit = SLICE.min(*budget);
            if limit == 0 {
                self.counted_until = from.at;
                return Ok(());
            }
            let scan = Scan {
                table: Table::Live,
                from,
                until: self.counted_until,
                topic: None,
                limit,
                bodies: Bodies::Without,
            };
            let page = store.scan(shard, &scan)?;
            for row in page.rows.iter().filter(|row| within.fits(row.key.topic())) {
                if let Phase::Waiting = State::decode(&row.state).phase {
                    let slot = row.at.as_millis() / self.unit.millis() - self.first;
                    self.counts[slot as usize] += 1;
                }
            }
            *budget -= page.rows.len();
            match page.next {
                Some(next) => from = next,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// The slots of which everything is counted, by their beginnings, and where those that are not begin.
    pub fn into_slots(self) -> (Vec<(Timestamp, u64)>, Option<Timestamp>) {
        let whole = (0..self.counts.len()).take_while(|slot| self.beginning(slot + 1) <= self.counted_until).count();
        let slots = (0..whole).map(|slot| (self.beginning(slot), self.counts[slot])).collect();
        (slots, (whole < self.counts.len()).then(|| self.beginning(whole)))
    }
}
