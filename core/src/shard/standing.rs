//! Where a row stands, for those who ask.

use super::Shard;
use super::desk::Slot;
use crate::answer::Standing;
use crate::state::{Phase, State};
use crate::store::Table;
use crate::time::Timestamp;

impl<R> Shard<R> {
    /// Where a row stands.
    pub(super) fn standing(&self, slot: Slot) -> Standing {
        let row = &self.desk[slot];
        Standing::of(row.table(), row.at(), &row.state, self.now)
    }
}

impl Standing {
    /// Where a row in this table, at this time and in this state stands.
    pub(crate) fn of(table: Table, at: Timestamp, state: &State, now: Timestamp) -> Standing {
        debug_assert_ne!(table, Table::Settings);
        match &state.phase {
            Phase::Waiting if at <= now => Standing::Ready { since: at },
            Phase::Waiting => Standing::Scheduled { at },
            Phase::Leased { holder, .. } => Standing::Leased {
                queue: state.queue.clone().expect("a delivery is leased from a queue"),
                holder: holder.clone(),
                until: at,
            },
            Phase::Spread(parts) => {
                let names = |finished: bool| {
                    let parts = parts.iter().filter(|part| part.finished.is_some() == finished);
                    parts.map(|part| part.queue.clone()).collect()
                };
                Standing::Spread { open: names(false), finished: names(true) }
            }
            Phase::Forwarding { death, .. } | Phase::Dead(death) => {
                Standing::Dead { reason: death.reason, at: death.at }
            }
            Phase::Finished(ending) => Standing::Finished { ending: *ending, at },
        }
    }
}
