//! The entries of the cluster: the few things that all nodes share, such as the secret and the number of shards.

use punctual_core::store::{Entry, Roll, Store, StoreError};

use crate::error::MoveError;
use crate::marks;
use crate::presence::Guest;

/// Copies all entries but the mark of the move, reads them back, and says how many there are.
pub(crate) fn copy(from: &Guest<'_>, roll: &Roll, to: &Guest<'_>) -> Result<usize, MoveError> {
    let keys: Vec<&String> = roll.revisions.iter().map(|(key, _)| key).filter(|key| *key != marks::KEY).collect();
    for key in &keys {
        let read = |guest: &Guest<'_>| {
            let entry = guest.patience.retry(|| guest.side.store.cluster_get(key));
            entry.map_err(MoveError::of(guest.side.name))
        };
        let Some(Entry { value, .. }) = read(from)? else { continue };
        to.patience.retry(|| put(to.side.store, key, &value)).map_err(MoveError::of(to.side.name))?;
        if read(to)?.is_none_or(|entry| entry.value != value) {
            return Err(MoveError::Overtaken { place: to.side.name.to_owned() });
        }
    }
    Ok(keys.len())
}

/// Lets an entry have a value, whatever it was.
fn put(store: &dyn Store, key: &str, value: &[u8]) -> Result<(), StoreError> {
    let there = store.cluster_get(key)?;
    if there.as_ref().is_some_and(|entry| entry.value == value) {
        return Ok(());
    }
    // Somebody else who writes here is found when the entry is read back.
    store.cluster_put(key, there.map_or(0, |entry| entry.revision), value).map(drop)
}
