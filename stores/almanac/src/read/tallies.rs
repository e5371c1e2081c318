//! Reading the counts of a shard.

use punctual_core::store::{Found, ShardId, Tally};

use super::{Errand, Hand};
use crate::holdings::Holdings;

pub(super) struct Counts {
    shard: ShardId,
    tallies: Vec<(Tally, i64)>,
}

impl Counts {
    pub fn new(shard: ShardId) -> Counts {
        Counts { shard, tallies: Vec::new() }
    }
}

impl Errand for Counts {
    fn attempt(&mut self, holdings: &mut Holdings, _: &mut Hand<'_>) -> bool {
        self.tallies = holdings.tallies(self.shard);
        true
    }

    fn bring(self: Box<Self>) -> Found {
        Found::Tallies(self.tallies)
    }
}
