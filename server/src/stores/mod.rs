//! Where tasks are kept. A store is a crate of its own and one module here, which brings its settings and the crate
//! together; the node, the doors and everything else know it by what every store can do.

mod almanac;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use punctual_core::Clock;
use punctual_core::store::Store;
use punctual_wire::StoreSize;
use serde_json::Value;

use crate::config::Config;
use crate::data::DataDirectory;
use crate::failure::Failure;
use crate::metrics::MetricsPage;

/// The store that the settings choose; so far they leave no choice.
pub fn chosen(_config: &Config) -> &'static dyn Storage {
    &almanac::Embedded
}

/// A way to keep tasks. One whose data is elsewhere says, instead of copying or checking it, what does.
pub trait Storage {
    /// Opens the store, or begins one. One that was there and is gone, or has lost confirmed tasks, is opened only
    /// if it is forced to, and what is lost is logged.
    fn open(&self, opening: &Opening<'_>) -> Result<Arc<dyn OpenStore>, Failure>;

    /// Whether there is one in this data directory.
    fn is_in(&self, data: &Path) -> bool;

    /// Copies it from one data directory to another as it is at one moment, also while it is in use.
    fn copy(&self, from: &Path, to: &Path) -> Result<Copied, Failure>;

    /// Looks for damage in a data directory, prints it, and says whether there is none. Changes nothing.
    fn check(&self, data: &Path, json: bool) -> Result<bool, Failure>;

    /// Prints what is in a data directory, as far as it can be read, and says whether nothing is damaged.
    fn show(&self, data: &Path, listing: &Listing, json: bool) -> Result<bool, Failure>;
}

/// What a store is opened with.
pub struct Opening<'a> {
    pub config: &'a Config,
    pub data: &'a DataDirectory,
    pub clock: Arc<dyn Clock>,
    pub is_forced: bool,
}

/// A store that is open. It says of itself what an operator should see at the start: where it is, and what a
/// confirmation is worth.
pub trait OpenStore: Store + fmt::Display {
    /// What it takes.
    fn size(&self) -> StoreSize;

    /// Writes its numbers.
    fn meter(&self, page: &mut MetricsPage);
}

/// What was copied.
pub struct Copied {
    /// For people.
    pub words: String,
    /// For machines, by name.
    pub numbers: Vec<(&'static str, Value)>,
}

/// Which rows to show.
pub struct Listing {
    /// Only those of this topic.
    pub topic: Option<String>,
    /// At most so many.
    pub limit: usize,
}
