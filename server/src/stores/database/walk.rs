//! All rows of an open store, shard by shard and table by table in time order, as anybody may look at them.

use punctual_core::store::{Bodies, Look, Page, Position, Row, Scan, ShardId, Store, StoreError, Table};
use punctual_core::{Name, Timestamp};

/// How many rows are read at once.
const STRETCH: usize = 512;

/// Which rows are walked through.
pub struct Walk<'a> {
    pub store: &'a dyn Store,
    pub shards: u16,
    pub topic: Option<Name>,
    pub bodies: Bodies,
}

impl Walk<'_> {
    /// Shows all rows in order, a part of a table at a time, until it is told to stop.
    pub fn each(
        &self,
        mut see: impl FnMut(ShardId, Table, &[Row]) -> Result<Onward, StoreError>,
    ) -> Result<(), StoreError> {
        for shard in (0..self.shards).map(ShardId) {
            if self.shard(shard, &mut see)? == Onward::Enough {
                break;
            }
        }
        Ok(())
    }

    /// The same for one shard.
    pub fn shard(
        &self,
        shard: ShardId,
        mut see: impl FnMut(ShardId, Table, &[Row]) -> Result<Onward, StoreError>,
    ) -> Result<Onward, StoreError> {
        for table in Table::ALL {
            let mut next = Some(Position::START);
            while let Some(from) = next {
                let (topic, bodies) = (self.topic.clone(), self.bodies);
                let scan = Scan { table, from, until: Timestamp::NEVER, topic, limit: STRETCH, bodies };
                let Page { rows, next: after } = self.store.scan(shard, &scan)?;
                if see(shard, table, &rows)? == Onward::Enough {
                    return Ok(Onward::Enough);
                }
                next = after;
            }
        }
        Ok(Onward::More)
    }
}

/// Whether to go on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Onward {
    More,
    Enough,
}
