//! Following a journal of which some may be lost: what a record says is done as far as it can be.

use punctual_core::store::ShardId;

use crate::blocks::Blocks;
use crate::payload::{self, Event, Malformed};
use crate::row::StoredRow;
use crate::state::{ApplyError, Stand, State};

/// Applies what a record says. What cannot be done is told to `astray`, and the rest is done all the same.
pub(super) fn follow(
    state: &mut State,
    payload: &[u8],
    blocks: &Blocks,
    mut astray: impl FnMut(String),
) -> Result<(), Malformed> {
    payload::read(payload, |event| {
        match event {
            Event::Claim(shard, fence) => _ = state.fences.insert(shard, fence),
            Event::Tally(shard, tally, delta) => state.active.count(shard, tally, delta),
            Event::Insert(shard, row) => {
                if forget(state, shard, row) {
                    astray(format!("{shard:?} has a row {:?} already, though a change inserts it", text(row)));
                }
                state.insert(shard, row);
            }
            Event::Replace(shard, place, row) => {
                if let Err(error) = state.remove(shard, place, blocks) {
                    astray(describe(error));
                    forget(state, shard, row);
                }
                state.insert(shard, row);
            }
            Event::Update(shard, row, table, position) => {
                if let Err(error) = state.update(shard, row, (table, position), blocks) {
                    astray(describe(error));
                    bring_up_to_date(state, shard, row);
                }
            }
            Event::Remove(shard, place) => {
                if let Err(error) = state.remove(shard, place, blocks) {
                    astray(describe(error));
                    forget(state, shard, place);
                }
            }
        }
        Ok(())
    })
}

/// Takes the row out that stands under a key among the recent ones, wherever that is.
fn forget(state: &mut State, shard: ShardId, row: StoredRow<'_>) -> bool {
    match find(state, shard, row) {
        Some(slot) => {
            state.active.remove(shard, slot);
            true
        }
        None => false,
    }
}

/// Updates a recent row that stands elsewhere than the change says.
fn bring_up_to_date(state: &mut State, shard: ShardId, row: StoredRow<'_>) {
    if let Some(slot) = find(state, shard, row) {
        let (before, _) = state.active.rows().row(slot);
        let before = (before.table(), before.position());
        state.active.update(shard, slot, row, before);
    }
}

fn find(state: &State, shard: ShardId, row: StoredRow<'_>) -> Option<crate::recent::SlotId> {
    let hash = row.key().hash(shard, row.table());
    match state.find_recent(hash, row.key(), shard, row.table()) {
        Some(Stand::Active(slot)) => Some(slot),
        _ => None,
    }
}

fn describe(error: ApplyError) -> String {
    match error {
        ApplyError::Malformed => "it cannot be understood".to_owned(),
        ApplyError::Astray(what) => what,
        ApplyError::Read(error) => error.to_string(),
    }
}

fn text(row: StoredRow<'_>) -> String {
    String::from_utf8_lossy(row.key_text()).into_owned()
}
