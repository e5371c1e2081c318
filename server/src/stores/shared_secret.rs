//! The secret that vouches for leases, where the store is not in a data directory: it is kept in the store itself, so
//! that every server on it, and every later life of one, takes the leases that another gave out.

use bytes::Bytes;
use punctual_core::store::Store;

use super::Unopened;
use crate::failure::Failure;

/// The entry of the cluster that holds it.
pub const SECRET: &str = "secret";

/// What vouches for leases; made by the first server that comes.
pub fn shared_secret(store: &dyn Store) -> Result<[u8; 32], Unopened> {
    read_secret(&made_once(store, SECRET, || {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map(|()| secret.to_vec())
    })?)
}

/// What vouches for leases, if the store has it.
pub fn kept_secret(store: &dyn Store) -> Result<Option<[u8; 32]>, Unopened> {
    store.cluster_get(SECRET)?.map(|entry| read_secret(&entry.value)).transpose()
}

fn read_secret(kept: &[u8]) -> Result<[u8; 32], Unopened> {
    <[u8; 32]>::try_from(kept).map_err(|_| {
        let length = kept.len();
        Unopened::Failed(Failure::Failed(format!(
            "the secret in the store has {length} bytes instead of 32: restore the store from a backup"
        )))
    })
}

/// What an entry of the cluster says that all servers must have alike; drawn by the first one that comes.
pub fn made_once(
    store: &dyn Store,
    key: &str,
    draw: impl Fn() -> Result<Vec<u8>, getrandom::Error>,
) -> Result<Bytes, Unopened> {
    loop {
        if let Some(entry) = store.cluster_get(key)? {
            return Ok(entry.value);
        }
        let drawn =
            draw().map_err(|error| Failure::Failed(format!("cannot get random numbers from the system: {error}")))?;
        // Whoever was quicker has made the one that counts.
        if store.cluster_put(key, 0, &drawn)?.is_ok() {
            return Ok(drawn.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use punctual_memory::MemoryStore;
    use punctual_node::SystemClock;

    use super::*;

    #[test]
    fn the_first_secret_stays() {
        let store = MemoryStore::new(Arc::new(SystemClock));
        let first = shared_secret(&store).expect("it is made");
        assert_eq!(shared_secret(&store).expect("it is read"), first);
        assert_ne!(first, [0; 32]);
    }
}
