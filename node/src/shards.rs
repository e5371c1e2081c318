//! Into how many shards the tasks of a store are divided. It is chosen at the first start and says where each task is, so
//! nodes that start at the same time must not choose differently: it is an entry of the cluster.

use punctual_core::division::{Division, Eras, division_of};
use punctual_core::store::{Store, StoreError};

use crate::error::StartError;

/// Into how many shards the tasks of a store are divided, if that was ever chosen.
pub fn known_shards(store: &dyn Store) -> Result<Option<u16>, StoreError> {
    Ok(division_of(store)?.map(|division| division.shards))
}

/// Requires that the tasks of a store are divided into so many shards, if that was chosen before; says how it was earlier.
pub(crate) fn check(store: &dyn Store, configured: u16) -> Result<Eras, StartError> {
    let Some(division) = division_of(store)? else { return Ok(Eras::default()) };
    match division {
        Division { growth: Some(growth), .. } => Err(StartError::Growing { to: growth.to }),
        Division { shards: noted, .. } if noted != configured => Err(StartError::Shards { noted, configured }),
        Division { eras, .. } => Ok(eras),
    }
}

/// The same, and chooses the number if it was not chosen.
pub(crate) fn choose(store: &dyn Store, configured: u16) -> Result<Eras, StartError> {
    loop {
        let eras = check(store, configured)?;
        let chosen = Division::of(configured).to_string();
        let is_there = store.cluster_get(Division::KEY)?.is_some();
        if is_there || store.cluster_put(Division::KEY, 0, chosen.as_bytes())?.is_ok() {
            return Ok(eras);
        }
        // Somebody else has chosen at the same time.
    }
}
