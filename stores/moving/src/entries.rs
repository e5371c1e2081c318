//! The entries of the cluster: the few things that all nodes share, such as the secret and the number of shards.

use punctual_core::store::{Roll, Store, StoreError};

use crate::error::MoveError;
use crate::marks;
use crate::presence::Guest;

/// Copies all entries but the mark of the move, and writes those that the source keeps elsewhere; reads them back, and says
/// how many there are.
pub(crate) fn copy(from: &Guest<'_>, roll: &Roll, to: &Guest<'_>, keep: &[(&str, &[u8])]) -> Result<usize, MoveError> {
    let is_kept = |key: &str| keep.iter().any(|(kept, _)| *kept == key);
    let mut copied = keep.len();
    for (key, _) in roll.revisions.iter().filter(|(key, _)| key != marks::KEY && !is_kept(key)) {
        let entry = from.patience.retry(|| from.side.store.cluster_get(key)).map_err(MoveError::of(from.side.name))?;
        if let Some(entry) = entry {
            write(to, key, &entry.value)?;
            copied += 1;
        }
    }
    for (key, value) in keep {
        write(to, key, value)?;
    }
    Ok(copied)
}

fn write(to: &Guest<'_>, key: &str, value: &[u8]) -> Result<(), MoveError> {
    to.patience.retry(|| put(to.side.store, key, value)).map_err(MoveError::of(to.side.name))?;
    let there = to.patience.retry(|| to.side.store.cluster_get(key)).map_err(MoveError::of(to.side.name))?;
    match there {
        Some(entry) if entry.value == value => Ok(()),
        _ => Err(MoveError::Overtaken { place: to.side.name.to_owned() }),
    }
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
