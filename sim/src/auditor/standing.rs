//! Whether an answer about where a task stands is true.

use punctual_core::store::Table;
use punctual_core::{Phase, Standing, Timestamp};

use super::guess::Candidate;

/// Whether a row may be described so. A task that was broadcast may be described by one of its
/// deliveries, which is checked there.
pub(super) fn is_true(said: &Standing, row: &Candidate, now: Timestamp) -> bool {
    match (&row.state.phase, said) {
        (Phase::Waiting, Standing::Scheduled { at }) => *at > now && (row.at..=row.latest).contains(at),
        (Phase::Waiting, Standing::Ready { since }) => *since <= now && (row.at..=row.latest).contains(since),
        (Phase::Leased { holder, .. }, Standing::Leased { holder: said, until, .. }) => {
            holder == said && *until == row.at
        }
        (Phase::Forwarding { death, .. } | Phase::Dead(death), Standing::Dead { reason, at }) => {
            death.reason == *reason && death.at == *at
        }
        (Phase::Finished(ending), Standing::Finished { ending: said, at }) => {
            ending == said && row.table == Table::History && *at == row.at
        }
        (Phase::Spread(_), Standing::Finished { .. }) => false,
        (Phase::Spread(_), _) => true,
        _ => false,
    }
}
