//! Whether a store has anything in it.

use punctual_core::Timestamp;
use punctual_core::store::{Bodies, Found, Position, Scan, ShardId, Table, Want};

use crate::error::MoveError;
use crate::presence::Guest;

/// How many shards are looked at in one read.
pub(crate) const LOOKED: usize = 64;

impl Guest<'_> {
    /// Requires that nothing is in these shards.
    pub fn check_empty(&self, shards: &[ShardId]) -> Result<(), MoveError> {
        let scans = Table::ALL.map(|table| Scan {
            table,
            from: Position::START,
            until: Timestamp::NEVER,
            topic: None,
            limit: 1,
            bodies: Bodies::Without,
        });
        let wants: Vec<Want<'_>> = scans.iter().map(Want::Scan).chain([Want::Tallies]).collect();
        for shards in shards.chunks(LOOKED) {
            let wanted: Vec<(ShardId, Want<'_>)> =
                shards.iter().flat_map(|shard| wants.iter().map(|want| (*shard, *want))).collect();
            let found = self.patience.retry(|| self.side.store.look(&wanted));
            let found = found.map_err(MoveError::of(self.side.name))?;
            for ((shard, _), found) in wanted.into_iter().zip(found) {
                if let Some(what) = what_is_there(&found) {
                    return Err(MoveError::NotEmpty { place: self.side.name.to_owned(), shard, what });
                }
            }
        }
        Ok(())
    }
}

fn what_is_there(found: &Found) -> Option<&'static str> {
    match found {
        Found::Span(page) if !page.rows.is_empty() => Some("rows"),
        Found::Tallies(tallies) if !tallies.is_empty() => Some("counts"),
        _ => None,
    }
}
