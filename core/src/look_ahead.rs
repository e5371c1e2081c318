//! What falls due when for some of the topics, counted by looking at each row.
//!
//! The shards count by time for all topics together, or a count for each topic and minute would grow without bound.
//! Whoever has to do with a few topics only is counted for here, within a bound that is told.

use std::collections::BTreeMap;

use crate::name::Name;
use crate::scope::Scope;
use crate::state::{Phase, State};
use crate::store::{Bodies, Look, Position, Scan, ShardId, Store, StoreError, Table};
use crate::time::Timestamp;
use crate::unit::Unit;

/// How many rows are read at once.
const SLICE: usize = 1_024;
/// How many rows a read counts for at least: one that finds little has looked at many.
const LEAST: usize = 64;

/// How many deliveries come due in each of some slots of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ahead {
    unit: Unit,
    first: u64,
    counts: Vec<u64>,
    /// By topic, and only where something comes due: bounded by the rows that are looked at.
    by_topic: BTreeMap<Name, BTreeMap<usize, u64>>,
    /// Everything that comes due before this is counted.
    counted_until: Timestamp,
}

impl Ahead {
    /// So many slots, of which the first is the one with this time in it. Nothing is counted yet.
    pub fn new(from: Timestamp, unit: Unit, slots: usize) -> Ahead {
        let first = unit.slot(from);
        let last = unit.slot(Timestamp::LAST);
        let slots = slots.min(usize::try_from(last - first + 1).unwrap_or(usize::MAX));
        let mut ahead =
            Ahead { unit, first, counts: vec![0; slots], by_topic: BTreeMap::new(), counted_until: Timestamp::ZERO };
        ahead.counted_until = ahead.end();
        ahead
    }

    fn beginning(&self, slot: usize) -> Timestamp {
        self.unit.beginning(self.first + slot as u64)
    }

    fn end(&self) -> Timestamp {
        self.beginning(self.counts.len())
    }

    /// Counts what waits in a shard and is of topics in a scope, or of one of them, looking at no more rows than `budget`.
    pub fn count(
        &mut self,
        store: &dyn Store,
        shard: ShardId,
        (within, topic): (&Scope, Option<&Name>),
        mut budget: usize,
    ) -> Result<(), StoreError> {
        let mut from = Position::start_of(self.beginning(0));
        // What was not counted in one shard need not be in another, but for the slot in which counting ended.
        let until = self.beginning((self.whole() + 1).min(self.counts.len()));
        while from.at < until {
            let limit = SLICE.min(budget);
            if limit == 0 {
                self.counted_until = self.counted_until.min(from.at);
                return Ok(());
            }
            let scan = Scan { table: Table::Live, from, until, topic: topic.cloned(), limit, bodies: Bodies::Without };
            let page = store.scan(shard, &scan)?;
            for row in page.rows.iter().filter(|row| within.fits(row.key.topic())) {
                if let Phase::Waiting = State::decode(&row.state).phase {
                    let slot = self.unit.slot(row.at) - self.first;
                    self.counts[slot as usize] += 1;
                    let topic = self.by_topic.entry(Name::stored(row.key.topic())).or_default();
                    *topic.entry(slot as usize).or_default() += 1;
                }
            }
            budget = budget.saturating_sub(page.rows.len().max(LEAST));
            match page.next {
                Some(next) => from = next,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// How many slots there are of which everything is counted.
    fn whole(&self) -> usize {
        (0..self.counts.len()).take_while(|slot| self.beginning(slot + 1) <= self.counted_until).count()
    }

    /// What comes due in these slots by topic: so many of the topics with the most, and the others together under no name.
    /// If not all slots are counted, the last one that is told is the first of those: at least so much comes due in it, so that a herd that
    /// is too large to be counted still shows whose it is.
    pub fn top_topics(&self, most: usize) -> Vec<(Option<Name>, Vec<u64>)> {
        let told = (self.whole() + 1).min(self.counts.len());
        let counts = |slots: &BTreeMap<usize, u64>| -> Vec<u64> {
            (0..told).map(|slot| slots.get(&slot).copied().unwrap_or(0)).collect()
        };
        let sum = |slots: &BTreeMap<usize, u64>| -> u64 { slots.range(..told).map(|(_, due)| due).sum() };
        let mut topics: Vec<_> = self.by_topic.iter().filter(|(_, slots)| sum(slots) > 0).collect();
        topics.sort_by_key(|(_, slots)| std::cmp::Reverse(sum(slots)));
        let others = topics.split_off(most.min(topics.len()));
        let mut apart: Vec<_> = topics.into_iter().map(|(name, slots)| (Some(name.clone()), counts(slots))).collect();
        if !others.is_empty() {
            let mut together = vec![0; told];
            for (slot, due) in others.into_iter().flat_map(|(_, slots)| slots.range(..told)) {
                together[*slot] += due;
            }
            apart.push((None, together));
        }
        apart
    }

    /// The slots of which everything is counted, by their beginnings, and where those that are not begin.
    pub fn into_slots(self) -> (Vec<(Timestamp, u64)>, Option<Timestamp>) {
        let whole = self.whole();
        let slots = (0..whole).map(|slot| (self.beginning(slot), self.counts[slot])).collect();
        (slots, (whole < self.counts.len()).then(|| self.beginning(whole)))
    }
}
