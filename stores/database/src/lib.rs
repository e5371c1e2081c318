//! What Punctual's stores in databases have alike. Each database has a crate of its own beside this one, which implements
//! [`Database`]; who knows this crate can choose, open, watch and inspect any of them.
//!
//! The rest is what those crates are built of: where a server is ([`Address`]), how often it was asked ([`Counters`]) and
//! when again ([`Pauses`]), why it takes no more ([`Hardships`]), and threads on which a driver works while callers block
//! ([`Threads`]).

mod address;
mod config;
mod contents;
mod counters;
mod hardships;
mod kind;
mod pauses;
mod threads;

pub use address::{Address, decoded};
pub use config::{Config, OpenError, content};
pub use contents::{Contents, Part, ShardContents};
pub use counters::{Counters, Status};
pub use hardships::Hardships;
pub use kind::{Database, Kind, Migrated};
pub use pauses::Pauses;
pub use threads::{Threads, Work};

/// How many requests are worth a commit of their own while another one is under way: a commit costs a database as much as
/// some dozens of changes.
pub const WORTHWHILE: usize = 64;
