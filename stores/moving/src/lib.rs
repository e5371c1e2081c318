//! Moves what a store keeps into another one, by what every store can do and nothing else: anything to anything.
//!
//! Rows keep their numbers, keys, groups, times, states and bodies, so that whoever opens the shards afterwards finds
//! them as they were: leases go on, and ids are known. Every row is read back and counted into a checksum on both sides.
//!
//! [`Move`] is for stores that no server works on. What makes it safe to kill it at any moment is that a shard's rows
//! are written in the order in which they are read, and each commit happens wholly or not at all: how far a move has come is what is there,
//! and nothing has to be noted beside it. [`live`] moves a store under a server that goes on. The [mark](marks) in both stores says that a move is under way, and keeps servers from
//! working on half of one.
//!
//! [`Grow`] moves rows within one store: from its shards into more of them.

mod copying;
mod emptiness;
mod entries;
mod error;
mod growing;
pub mod live;
pub mod marks;
mod patience;
mod presence;
mod progress;
mod reading;
mod report;
mod stopped;
mod sum;
mod writing;

use std::fmt;

use punctual_core::store::Store;

pub use error::MoveError;
pub use growing::{Grow, GrowError, Grown, MOST_SHARDS, Outlook};
pub use progress::Progress;
pub use report::{Report, ShardReport};
pub use stopped::Move;
pub use sum::{Sum, Sums};

/// One of the two stores.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The store.
    pub store: &'a dyn Store,
    /// What people call it: where it is, without secrets. It is noted in the other store.
    pub name: &'a str,
}

impl fmt::Debug for Side<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
