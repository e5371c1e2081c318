//! Following a journal of which some may be lost: what a record says is done as far as it can be.

use punctual_core::store::ShardId;

use crate::blocks::Blocks;
use crate::holdings::{ApplyError, Holdings, Stand};
use crate::payload::{self, Malformed, Statement};
use crate::row::StoredRow;

/// Applies what a record says. What cannot be done is told to `astray`, and the rest is done all the same.
pub(super) fn follow(
    holdings: &mut Holdings,
    payload: &[u8],
    blocks: &Blocks,
    mut astray: impl FnMut(String),
) -> Result<(), Malformed> {
    payload::read(payload, |event| {
        match event {
            Statement::Claim(shard, fence) => _ = holdings.fences.insert(shard, fence),
            Statement::Entry(key, revision, value) => holdings.enter(key, revision, value),
            Statement::Tally(shard, tally, delta) => holdings.active.count(shard, tally, delta),
            Statement::Insert(shard, row) => {
                if forget(holdings, shard, row) {
                    astray(format!("{shard} has a row {:?} already, though a change inserts it", text(row)));
                }
                holdings.insert(shard, row);
            }
            Statement::Replace(shard, place, row) => {
                if let Err(error) = holdings.remove(shard, place, blocks) {
                    astray(describe(error));
                    forget(holdings, shard, row);
                }
                holdings.insert(shard, row);
            }
            Statement::Update(shard, row, table, position) => {
                if let Err(error) = holdings.update(shard, row, (table, position), blocks) {
                    astray(describe(error));
                    bring_up_to_date(holdings, shard, row);
                }
            }
            Statement::Remove(shard, place) => {
                if let Err(error) = holdings.remove(shard, place, blocks) {
                    astray(describe(error));
                    forget(holdings, shard, place);
                }
            }
        }
        Ok(())
    })
}

/// Takes the row out that stands under a key among the recent ones, wherever that is.
fn forget(holdings: &mut Holdings, shard: ShardId, row: StoredRow<'_>) -> bool {
    match find(holdings, shard, row) {
        Some(slot) => {
            holdings.active.remove(shard, slot);
            true
        }
        None => false,
    }
}

/// Updates a recent row that stands elsewhere than the change says.
fn bring_up_to_date(holdings: &mut Holdings, shard: ShardId, row: StoredRow<'_>) {
    if let Some(slot) = find(holdings, shard, row) {
        let (before, _) = holdings.active.rows().row(slot);
        let before = (before.table(), before.position());
        holdings.active.update(shard, slot, row, before);
    }
}

fn find(holdings: &Holdings, shard: ShardId, row: StoredRow<'_>) -> Option<crate::recent::SlotId> {
    let hash = row.key().hash(shard, row.table());
    match holdings.find_recent(hash, row.key(), shard, row.table()) {
        Some(Stand::Active(slot)) => Some(slot),
        _ => None,
    }
}

fn describe(error: ApplyError) -> String {
    match error {
        ApplyError::Malformed => "it is not valid".to_owned(),
        ApplyError::Astray(what) => what,
        ApplyError::Read(error) => error.to_string(),
    }
}

fn text(row: StoredRow<'_>) -> String {
    String::from_utf8_lossy(row.key_text()).into_owned()
}
