//! Looking for rows by their numbers.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use punctual_core::store::{Bodies, Row, ShardId, StoreError, Table};

use super::{Found, Hand, Reader};
use crate::address::Address;
use crate::holdings::{Holdings, Stand};
use crate::lock::lock;
use crate::run::Run;

/// Where a row may be that is looked for by its number.
const TABLES: [Table; 3] = [Table::Live, Table::Dead, Table::History];

impl Reader<'_> {
    pub fn numbered(&self, shard: ShardId, numbers: &[u64], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        // By the run's number: where it has each of the rows.
        let mut known: BTreeMap<u64, Vec<Option<u32>>> = BTreeMap::new();
        loop {
            // What a run says of a number never changes, so it is asked without the lock.
            let runs: Vec<Arc<Run>> =
                lock(self.holdings).shelf.runs().map(|(_, shelved)| Arc::clone(&shelved.run)).collect();
            for run in runs {
                if let Entry::Vacant(unasked) = known.entry(run.number()) {
                    let ordinals: Result<_, _> = numbers.iter().map(|number| run.numbered(shard, *number)).collect();
                    unasked.insert(ordinals?);
                }
            }
            let found = self.attempt(|holdings, hand| {
                let all_asked = holdings.shelf.runs().all(|(_, shelved)| known.contains_key(&shelved.run.number()));
                let each = numbers.iter().enumerate();
                all_asked.then(|| {
                    each.map(|(index, number)| {
                        numbered(holdings, hand, shard, *number, bodies, |run| known[&run][index])
                    })
                    .collect::<Vec<_>>()
                })
            })?;
            if let Some(found) = found {
                return Ok(found.into_iter().map(|found| found.map(|found| found.read(bodies))).collect());
            }
        }
    }
}

/// The row with a number; `ordinal` tells where the run has it that bears the given one.
fn numbered(
    holdings: &mut Holdings,
    hand: &mut Hand<'_>,
    shard: ShardId,
    number: u64,
    bodies: Bodies,
    ordinal: impl Fn(u64) -> Option<u32>,
) -> Option<Found> {
    for table in TABLES {
        let active = holdings.active.table(shard, table).and_then(|index| index.number(number)).map(Stand::Active);
        let frozen = || holdings.frozen.as_mut()?.number(shard, table, number).map(Stand::Frozen);
        if let Some(stand) = active.or_else(frozen) {
            return hand.recent(holdings, stand, bodies);
        }
    }
    let in_run = holdings.shelf.runs().find_map(|(run, shelved)| {
        let ordinal = ordinal(shelved.run.number()).filter(|ordinal| !shelved.deaths.contains(*ordinal))?;
        Some(Address { run, ordinal })
    });
    hand.row(holdings, in_run?).map(|(block, index)| Found::InBlock(block, index))
}
