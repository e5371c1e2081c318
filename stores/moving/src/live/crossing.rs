//! Where the shards are while they cross over, in memory and as it is noted in the source.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use punctual_core::store::{Incarnation, ShardId, Store, StoreError};

use crate::Side;
use crate::error::MoveError;
use crate::marks::{Mark, Noted};
use crate::patience::Patience;
use crate::presence::Guest;

/// A store whose shards are crossing over into another one.
pub(super) struct Crossing {
    pub home: Arc<dyn Store>,
    pub home_name: String,
    pub to: Arc<dyn Store>,
    pub to_name: String,
    /// The node that works on both, as its last beat said.
    who: Mutex<Incarnation>,
    mark: Mutex<Noted>,
    seats: RwLock<BTreeMap<ShardId, Seat>>,
}

/// Where a shard is; one that is nowhere in here is in the source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seat {
    There,
    /// It was noted that it has crossed, or not: the source did not say.
    Unknown,
}

impl Crossing {
    pub fn new(
        home: (Arc<dyn Store>, String),
        to: (Arc<dyn Store>, String),
        who: Incarnation,
        mark: Noted,
    ) -> Crossing {
        let crossed = mark.mark.iter().flat_map(crossed);
        let seats = RwLock::new(crossed.map(|shard| (shard, Seat::There)).collect());
        let (who, mark) = (Mutex::new(who), Mutex::new(mark));
        Crossing { home: home.0, home_name: home.1, to: to.0, to_name: to.1, who, mark, seats }
    }

    /// Which node works on both.
    pub fn heard_of(&self, who: &Incarnation) {
        self.who.lock().unwrap_or_else(PoisonError::into_inner).clone_from(who);
    }

    fn who(&self) -> Incarnation {
        self.who.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The mover as the source knows it.
    pub fn source(&self, patience: Duration) -> Guest<'_> {
        let side = Side { store: &*self.home, name: &self.home_name };
        Guest { side, who: self.who(), patience: Patience(patience) }
    }

    /// The mover as the target knows it.
    pub fn target(&self, patience: Duration) -> Guest<'_> {
        let side = Side { store: &*self.to, name: &self.to_name };
        Guest { side, who: self.who(), patience: Patience(patience) }
    }

    /// Whether a shard has crossed.
    pub fn is_there(&self, shard: ShardId) -> Result<bool, StoreError> {
        match self.seats().get(&shard) {
            None => Ok(false),
            Some(Seat::There) => Ok(true),
            Some(Seat::Unknown) => {
                let why = format!("{shard} is being moved, and it could not be noted where it is");
                Err(StoreError::Unavailable(why))
            }
        }
    }

    /// The shards that have crossed.
    pub fn crossed(&self) -> BTreeSet<ShardId> {
        self.seats().iter().filter(|(_, seat)| **seat == Seat::There).map(|(shard, _)| *shard).collect()
    }

    /// Notes that a shard has crossed. Until that is certain, it is nowhere.
    pub fn cross(&self, shard: ShardId, patience: Duration) -> Result<(), MoveError> {
        self.seat(shard, Some(Seat::Unknown));
        let mut noted = self.mark();
        let mut crossed = self.crossed();
        crossed.insert(shard);
        let mark = noted.mark.as_ref().map(|mark| Mark { crossed: ranges(&crossed), ..mark.clone() });
        *noted = self.source(patience).write_mark(&noted, mark.as_ref())?;
        self.seat(shard, Some(Seat::There));
        Ok(())
    }

    /// Finds out where the shards are of which that could not be noted. The mark is written once more as it is, so that
    /// an answer that comes late finds another revision.
    pub fn settle(&self, patience: Duration) -> Result<(), MoveError> {
        if self.seats().values().all(|seat| *seat == Seat::There) {
            return Ok(());
        }
        let (mut noted, source) = (self.mark(), self.source(patience));
        let now = source.read_mark()?;
        *noted = source.write_mark(&now, now.mark.as_ref())?;
        let crossed: BTreeSet<ShardId> = noted.mark.iter().flat_map(crossed).collect();
        let unknown: Vec<ShardId> = self.seats().keys().copied().filter(|shard| !crossed.contains(shard)).collect();
        unknown.into_iter().for_each(|shard| self.seat(shard, None));
        crossed.into_iter().for_each(|shard| self.seat(shard, Some(Seat::There)));
        Ok(())
    }

    /// What is noted in the source.
    pub fn mark(&self) -> MutexGuard<'_, Noted> {
        self.mark.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seats(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<ShardId, Seat>> {
        self.seats.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn seat(&self, shard: ShardId, seat: Option<Seat>) {
        let mut seats = self.seats.write().unwrap_or_else(PoisonError::into_inner);
        match seat {
            Some(seat) => _ = seats.insert(shard, seat),
            None => _ = seats.remove(&shard),
        }
    }
}

/// The shards that a mark says have crossed.
fn crossed(mark: &Mark) -> impl Iterator<Item = ShardId> {
    mark.crossed.iter().flat_map(|(first, last)| *first..=*last).map(ShardId)
}

/// Shards as ranges, which are few since they cross in their order.
fn ranges(shards: &BTreeSet<ShardId>) -> Vec<(u16, u16)> {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for ShardId(shard) in shards {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *shard => *last = *shard,
            _ => ranges.push((*shard, *shard)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_noted_as_ranges_and_read_back() {
        let shards: BTreeSet<ShardId> = [0, 1, 2, 5, 9, 10, u16::MAX].map(ShardId).into();
        assert_eq!(ranges(&shards), [(0, 2), (5, 5), (9, 10), (u16::MAX, u16::MAX)]);
        let mark = Mark {
            id: String::new(),
            part: crate::marks::Part::Crossing,
            other: String::new(),
            at: 0,
            crossed: ranges(&shards),
        };
        assert_eq!(crossed(&mark).collect::<BTreeSet<ShardId>>(), shards);
    }
}
