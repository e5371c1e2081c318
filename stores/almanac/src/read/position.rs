//! Looking for live rows where they stand.

use punctual_core::store::{Bodies, Found, Position, ShardId, Table};

use super::{Errand, Hand, Hit, each};
use crate::holdings::{Holdings, Stand};

pub(super) struct ByPosition<'w> {
    shard: ShardId,
    positions: &'w [Position],
    bodies: Bodies,
    hits: Vec<Option<Hit>>,
}

impl<'w> ByPosition<'w> {
    pub fn new(shard: ShardId, positions: &'w [Position], bodies: Bodies) -> ByPosition<'w> {
        ByPosition { shard, positions, bodies, hits: Vec::new() }
    }
}

impl Errand for ByPosition<'_> {
    fn attempt(&mut self, holdings: &mut Holdings, hand: &mut Hand<'_>) -> bool {
        let ByPosition { shard, positions, bodies, .. } = *self;
        let (hits, is_done) = hand.lacking_none(|hand| {
            positions.iter().map(|position| fetch(holdings, hand, shard, *position, bodies)).collect()
        });
        self.hits = hits;
        is_done
    }

    fn bring(self: Box<Self>) -> Found {
        each(self.hits, self.bodies)
    }
}

fn fetch(
    holdings: &mut Holdings,
    hand: &mut Hand<'_>,
    shard: ShardId,
    position: Position,
    bodies: Bodies,
) -> Option<Hit> {
    let active = holdings.active.table(shard, Table::Live).and_then(|index| index.get(position)).map(Stand::Active);
    let frozen =
        holdings.frozen.as_mut().and_then(|frozen| frozen.get(shard, Table::Live, position)).map(Stand::Frozen);
    if let Some(stand) = active.or(frozen) {
        return hand.recent(holdings, stand, bodies);
    }
    for (_, shelved) in holdings.shelf.runs() {
        if !shelved.run.seqs(shard).is_some_and(|seqs| seqs.contains(&position.seq)) {
            continue;
        }
        let blocks = shelved.run.blocks_from(shard, Table::Live, position);
        if blocks.is_empty() || shelved.is_dead(blocks.start) {
            continue;
        }
        let Some(block) = hand.block(&shelved.run, blocks.start) else { continue };
        if let Ok(index) = block.search(position)
            && !shelved.deaths.contains(shelved.run.ordinals(blocks.start).start + index as u32)
        {
            return Some(Hit::InBlock(block, index));
        }
    }
    None
}
