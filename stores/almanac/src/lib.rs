//! Punctual's embedded store, the almanac: a journal, recent rows in memory, and time-ordered runs.
//!
//! ```text
//! commit ──► journal (synced) ──► recent rows ──► run: immutable, sorted by time
//!                                     │              │
//! read  ◄─────────────────────────────┴──────────────┘
//! ```
//! Rows are appended, read once in time order, seldom looked up by key, and all know when they die.
//! So nothing is ever sorted into place on disk: a row that outlives the journal is written once
//! more, in a run, and its death is a bit. `docs/almanac.md` draws the files byte by byte and says
//! what each crash leaves behind.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use punctual_almanac::{Almanac, Config, Directory};
//! use punctual_core::Clock;
//!
//! fn open(clock: Arc<dyn Clock>) -> Result<Almanac, Box<dyn std::error::Error>> {
//!     let disk = Arc::new(Directory::open("/var/lib/orders")?);
//!     // Hand it to `punctual_node::Node::start` as its store. Every commit is on disk before it is confirmed.
//!     Ok(Almanac::open(disk, Config::default(), clock)?)
//! }
//! ```

mod address;
mod admission;
mod adopt;
mod almanac;
mod backup;
mod blocks;
mod checkpoint;
mod config;
mod error;
mod holdings;
pub mod inspect;
mod journal;
mod keeper;
mod keys;
mod lock;
mod manifest;
mod merge;
mod open;
mod payload;
mod read;
mod recent;
mod retell;
mod room;
mod row;
mod run;
mod setback;
mod shared;
mod shelf;
mod store;
mod weight;

pub use punctual_disk::{Directory, Disk, File, ReadOnlyDirectory};

pub use almanac::{Almanac, Usage};
pub use backup::{Backup, backup};
pub use config::{Config, SyncPolicy, Tending};
pub use error::{Damage, OpenError};
