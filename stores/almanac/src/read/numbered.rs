//! Looking for rows by their numbers.

use punctual_core::store::{Bodies, Found, ShardId, Table};

use super::told::Told;
use super::{Errand, Hand, Hit, each};
use crate::address::Address;
use crate::error::ReadError;
use crate::holdings::{Holdings, Stand};

/// Where a row may be that is looked for by its number.
const TABLES: [Table; 3] = [Table::Live, Table::Dead, Table::History];

pub(super) struct Numbered<'w> {
    shard: ShardId,
    numbers: &'w [u64],
    bodies: Bodies,
    /// For each number, where a run has its row.
    told: Told<Vec<Option<u32>>>,
    hits: Vec<Option<Hit>>,
}

impl<'w> Numbered<'w> {
    pub fn new(shard: ShardId, numbers: &'w [u64], bodies: Bodies) -> Numbered<'w> {
        Numbered { shard, numbers, bodies, told: Told::default(), hits: Vec::new() }
    }
}

impl Errand for Numbered<'_> {
    fn attempt(&mut self, holdings: &mut Holdings, hand: &mut Hand<'_>) -> bool {
        if !self.told.is_complete(&holdings.shelf) {
            return false;
        }
        let Numbered { shard, numbers, bodies, ref told, .. } = *self;
        let (hits, is_done) = hand.lacking_none(|hand| {
            let each = numbers.iter().enumerate();
            let hits =
                each.map(|(index, number)| find(holdings, hand, shard, *number, bodies, |run| told.by(run)[index]));
            hits.collect()
        });
        self.hits = hits;
        is_done
    }

    fn ask(&mut self) -> Result<(), ReadError> {
        let Numbered { shard, numbers, .. } = *self;
        self.told.ask(|run| numbers.iter().map(|number| run.numbered(shard, *number)).collect())
    }

    fn bring(self: Box<Self>) -> Found {
        each(self.hits, self.bodies)
    }
}

/// The row with a number; `ordinal` tells where the run has it that bears the given one.
fn find(
    holdings: &mut Holdings,
    hand: &mut Hand<'_>,
    shard: ShardId,
    number: u64,
    bodies: Bodies,
    ordinal: impl Fn(u64) -> Option<u32>,
) -> Option<Hit> {
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
    hand.row(holdings, in_run?).map(|(block, index)| Hit::InBlock(block, index))
}
