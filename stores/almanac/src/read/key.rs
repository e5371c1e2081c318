//! Looking for rows by their keys.

use punctual_core::store::{Bodies, Found, Key, ShardId, Table};

use super::{Errand, Hand, Hit, each};
use crate::holdings::Holdings;
use crate::row::KeyText;

pub(super) struct ByKey<'w> {
    shard: ShardId,
    keys: Vec<(u64, KeyText<'w>)>,
    bodies: Bodies,
    hits: Vec<Option<Hit>>,
}

impl<'w> ByKey<'w> {
    pub fn new(shard: ShardId, keys: &'w [Key], bodies: Bodies) -> ByKey<'w> {
        let keys = keys.iter().map(KeyText::of).map(|key| (key.hash(shard, Table::Live), key)).collect();
        ByKey { shard, keys, bodies, hits: Vec::new() }
    }
}

impl Errand for ByKey<'_> {
    fn attempt(&mut self, holdings: &mut Holdings, hand: &mut Hand<'_>) -> bool {
        let ByKey { shard, ref keys, bodies, .. } = *self;
        // Many cold lines of memory are waited for at once here, and one by one below.
        holdings.shelf.keys().warm(keys.iter().map(|(hash, _)| *hash));
        let (hits, is_done) = hand.lacking_none(|hand| {
            keys.iter().map(|(hash, key)| get(holdings, hand, shard, *hash, *key, bodies)).collect()
        });
        self.hits = hits;
        is_done
    }

    fn bring(self: Box<Self>) -> Found {
        each(self.hits, self.bodies)
    }
}

fn get(
    holdings: &Holdings,
    hand: &mut Hand<'_>,
    shard: ShardId,
    hash: u64,
    key: KeyText<'_>,
    bodies: Bodies,
) -> Option<Hit> {
    if let Some(stand) = holdings.find_recent(hash, key, shard, Table::Live) {
        return hand.recent(holdings, stand, bodies);
    }
    for address in holdings.shelf.candidates(hash) {
        let Some((block, index)) = hand.row(holdings, address) else { continue };
        let run = &holdings.shelf.get(address.run).expect("a candidate is on the shelf").run;
        let (of, table) = run.place(run.block_of(address.ordinal));
        if of == shard && table != Table::Settings && block.row(index).has_key(key) {
            return Some(Hit::InBlock(block, index));
        }
    }
    None
}
