//! Who takes part. Each does the same work on the same rows, every commit atomic and synced before it returns.

mod almanac;
mod fjall;
mod layout;
mod raw;
mod redb;
mod stored;

use std::path::Path;

use bytes::Bytes;
use punctual_core::Timestamp;
use punctual_core::store::{Key, Position, Row};

pub use almanac::store as almanac_store;

/// What even the raw limit can do.
pub trait Inserts {
    /// Makes the rows durable, all or none.
    fn insert(&mut self, rows: Vec<Row>);
}

/// A store under test. Whatever goes wrong ends the run.
pub trait Contestant: Inserts {
    /// At most so many rows with their bodies, from a position on and before a time, in time order.
    fn due(&mut self, from: Position, until: Timestamp, limit: usize) -> Vec<Row>;

    /// The rows under these keys, with their bodies.
    fn get(&mut self, keys: &[Key]) -> Vec<Option<Row>>;

    /// Removes the rows under these keys in one commit, and says how many there were.
    fn remove_keys(&mut self, keys: &[Key]) -> usize;

    /// Gives the rows a new time and new states in one commit. The rows are given whole, so that a peer that
    /// has to write the body again need not read it again.
    fn update(&mut self, rows: &[Row], at: Timestamp, states: Vec<Bytes>);

    /// Removes the rows in one commit; it is known where they stand.
    fn remove(&mut self, rows: &[Row]);
}

/// A contestant and how to have it.
pub struct Entrant {
    /// Its name in the tables and on the command line.
    pub name: &'static str,
    pub kind: Kind,
}

pub enum Kind {
    /// Only takes rows.
    Raw(fn(&Path) -> Box<dyn Inserts>),
    /// One that the almanac is measured against; it may get fewer rows when time is short.
    Peer(fn(&Path) -> Box<dyn Contestant>),
    /// Ours.
    Own(fn(&Path) -> Box<dyn Contestant>),
}

pub const ENTRANTS: &[Entrant] = &[
    Entrant { name: "raw", kind: Kind::Raw(raw::open) },
    Entrant { name: "almanac", kind: Kind::Own(almanac::open) },
    Entrant { name: "fjall", kind: Kind::Peer(fjall::open) },
    Entrant { name: "fjall-blobs", kind: Kind::Peer(fjall::open_with_blobs) },
    Entrant { name: "redb", kind: Kind::Peer(redb::open) },
];
