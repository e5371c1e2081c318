//! All rows of a table of a shard in time order, as anybody may look at them.

use punctual_core::store::{Bodies, Look, Page, Position, Row, Scan, ShardId, Store, StoreError, Table};
use punctual_core::{Name, Timestamp};

/// How many rows are read at once.
const STRETCH: usize = 512;

/// Which rows are walked through.
pub struct Walk<'a> {
    pub store: &'a dyn Store,
    pub topic: Option<Name>,
    pub bodies: Bodies,
}

impl Walk<'_> {
    /// Shows the rows of a table in order, some at a time, until it is told to stop.
    pub fn table(
        &self,
        shard: ShardId,
        table: Table,
        see: &mut dyn FnMut(&[Row]) -> Result<Onward, StoreError>,
    ) -> Result<(), StoreError> {
        let mut next = Some(Position::START);
        while let Some(from) = next {
            let (topic, bodies) = (self.topic.clone(), self.bodies);
            let scan = Scan { table, from, until: Timestamp::NEVER, topic, limit: STRETCH, bodies };
            let Page { rows, next: after } = self.store.scan(shard, &scan)?;
            if see(&rows)? == Onward::Enough {
                return Ok(());
            }
            next = after;
        }
        Ok(())
    }
}

/// Whether to go on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Onward {
    More,
    Enough,
}
