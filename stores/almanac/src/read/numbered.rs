//! Looking for rows by their numbers.

use punctual_core::store::{Bodies, Row, ShardId, StoreError, Table};

use super::{Found, Hand, Reader};
use crate::address::Address;
use crate::holdings::{Holdings, Stand};

/// Where a row may be that is looked for by its number.
const TABLES: [Table; 3] = [Table::Live, Table::Dead, Table::History];

impl Reader<'_> {
    pub fn numbered(&self, shard: ShardId, numbers: &[u64], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        let found = self.attempt_asking(
            |run| numbers.iter().map(|number| run.numbered(shard, *number)).collect::<Result<Vec<_>, _>>(),
            |holdings, hand, told| {
                let each = numbers.iter().enumerate();
                let found = each
                    .map(|(index, number)| numbered(holdings, hand, shard, *number, bodies, |run| told[&run][index]));
                found.collect::<Vec<_>>()
            },
        )?;
        Ok(found.into_iter().map(|found| found.map(|found| found.read(bodies))).collect())
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
