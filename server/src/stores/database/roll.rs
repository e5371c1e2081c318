//! Who is at work on a store, and into how many shards it is divided.

use punctual_core::division::{Growth, division_of};
use punctual_core::store::{Beat, Incarnation, Roll, Store};
use punctual_core::{Millis, Name};

use crate::failure::Failure;

/// Into how many shards the tasks are divided.
pub fn shards(store: &dyn Store) -> Result<u16, Failure> {
    let Some(division) = division_of(store).map_err(Failure::failed)? else { return Ok(0) };
    match division.growth {
        None => Ok(division.shards),
        Some(Growth { to, .. }) => Err(Failure::Failed(format!(
            "this store is being divided into {to} shards: let `punctual shards grow {to}` finish first"
        ))),
    }
}

/// Who is there. A beat without a lease leaves nothing behind.
pub fn roll(store: &dyn Store) -> Result<Roll, Failure> {
    let who = Incarnation { node: Name::stored("punctual-store"), number: 0 };
    store.beat(&Beat { who, address: String::new(), lease: Millis::ZERO }).map_err(Failure::failed)
}

/// The nodes that are at work.
pub fn users(roll: &Roll) -> Vec<String> {
    roll.there().map(|present| present.who.node.to_string()).collect()
}
