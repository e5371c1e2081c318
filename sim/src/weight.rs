//! How much of a shard is in memory: promise 6 says that it is what is due soon and what is in
//! flight, however much is pending.

use punctual_core::{Phase, Shard};

use crate::auditor::{Ledger, Promise};
use crate::node::Seat;
use crate::record::Tag;
use crate::world::World;

/// What a row costs at least, by the shard's own reckoning.
const ROW_COST: usize = 400;
/// A few more do no harm: whoever was deposed, or has yet to notice that its store went back, knows of rows that are gone.
const SLACK: usize = 16;

/// What a shard has in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Rows on the desk.
    pub rows: usize,
    /// Timers in the wheel.
    pub timers: usize,
}

impl Weight {
    /// Weighs a shard by what it shows of itself to a person who debugs it.
    pub fn of(shard: &Shard<Tag>) -> Weight {
        let text = format!("{shard:?}");
        let wheel = text.split_once("Wheel { len: ").map_or("", |(_, rest)| rest);
        let digits = wheel.find(|character: char| !character.is_ascii_digit()).unwrap_or(0);
        Weight {
            rows: text.matches("Resident {").count(),
            timers: wheel[..digits].parse().expect("a shard shows how many timers its wheel has"),
        }
    }
}

impl World {
    /// Compares what the shards of a node have in memory with what they may have.
    pub(crate) fn weigh(&mut self, index: usize) {
        let seats: Vec<_> = self.nodes[index].seats().filter(|(_, seat)| seat.is_settled()).collect();
        let mut heavy = Vec::new();
        for (shard, seat) in seats {
            let Some(ledger) = self.auditor.ledger(*shard) else { continue };
            let weight = Weight::of(&seat.shard);
            let allowed = self.allowed(ledger, seat);
            self.census.count("weighings");
            if weight.rows > allowed.rows || weight.timers > allowed.timers {
                let pending = ledger.rows.len();
                heavy
                    .push(format!("shard {} has {weight:?} in memory of {pending} rows, at most {allowed:?}", shard.0));
            }
        }
        for what in heavy {
            self.auditor.accuse(Promise::Bounded, "", what);
        }
    }

    /// What is due soon, what is in flight, and the room that the configuration gives.
    fn allowed(&self, ledger: &Ledger, seat: &Seat) -> Weight {
        let config = &self.profile.config;
        let soon = seat.shard.now().plus(config.window);
        let near = ledger.rows.values().filter(|row| row.is_open() && row.at <= soon).count();
        let leased = ledger.rows.values().filter(|row| matches!(row.state.phase, Phase::Leased { .. })).count();
        Weight { rows: config.cache / ROW_COST + leased + SLACK, timers: near + SLACK }
    }
}
