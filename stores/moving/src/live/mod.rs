//! Moving a store while a server works on it.
//!
//! A [`Transit`] is the store that the server works on. As long as nothing is moved it passes everything on. Then its shards
//! cross over one after the other, each in two parts: the most of it is [copied](Transit::copy_ahead) while the shard is
//! in use, and it is noted which rows change meanwhile; then the shard is set aside for a moment, what has changed follows, and the shard
//! is [handed over](Transit::hand_over).
//!
//! **Invariant**: which shards have crossed is noted in the source before anything is written to them in the target,
//! and from then on nothing is read or written of them in the source. So a server that is killed finds out where each is.

mod carrying;
mod crossing;
mod tracking;
mod transit;

pub use carrying::Ahead;
pub use transit::Transit;

use punctual_core::store::Store;

use crate::marks::{self, Barred, Part};

/// Where a store is being moved to while a server works on it, if it is: without that store, only a part of its tasks is there.
pub fn target_of(store: &dyn Store) -> Result<Option<String>, Barred> {
    let mark = marks::read(store)?.mark.filter(|mark| mark.part == Part::Crossing);
    Ok(mark.map(|mark| mark.other))
}
