//! Where tasks are kept. A store is a crate of its own; one in a database is a line in [`ALL`], and any other a module
//! here, which brings its settings and the crate together. The node, the doors and everything else know it by what every
//! store can do.
//!
//! ```text
//! Storage                    ─► Opened               ─► the node, the doors, the metrics
//! what the settings choose      once it is reached      OpenStore
//! ```

mod almanac;
mod database;
mod memory;
mod print;
mod shared_secret;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use punctual_core::Clock;
use punctual_core::store::{Store, StoreError};
use punctual_wire::StoreStats;
use serde_json::Value;

use crate::config::{Config, StoreUrl};
use crate::failure::Failure;
use crate::metrics::MetricsPage;
use database::Remote;

pub use database::roll::{roll, users};
pub use shared_secret::{SECRET, made_once};

/// All stores, in the order in which they are listed.
const ALL: [&dyn Storage; 5] = [
    &almanac::Embedded,
    &memory::Forgetful,
    &Remote::<punctual_postgres::PostgresStore>::KIND,
    &Remote::<punctual_mysql::MysqlStore>::KIND,
    &Remote::<punctual_redis::RedisStore>::KIND,
];

/// The store of this name or URL; or why there is none, and which there are.
pub fn named(url: &StoreUrl) -> Result<&'static dyn Storage, String> {
    let found = ALL.into_iter().find(|storage| storage.schemes().contains(&url.scheme()));
    let forms: Vec<&str> = ALL.iter().map(|storage| storage.form()).collect();
    let forms = forms.join(", ");
    let scheme = url.scheme();
    match found {
        Some(storage) if storage.is_remote() == url.is_remote() => Ok(storage),
        Some(storage) => Err(format!("write {}", storage.form())),
        None => Err(format!("there is no store `{scheme}`: write one of {forms}")),
    }
}

/// The store that the settings choose.
pub fn chosen(config: &Config) -> Result<&'static dyn Storage, Failure> {
    named(&config.store.url).map_err(|what| Failure::Usage(format!("`store`: {what}")))
}

/// A way to keep tasks. One whose data is elsewhere says, instead of copying it, what does.
pub trait Storage: Sync {
    /// What the setting begins with that chooses it.
    fn schemes(&self) -> &'static [&'static str];

    /// How to write that setting.
    fn form(&self) -> &'static str;

    /// Whether another setting of the store, by its full name, means something for this one.
    fn knows(&self, setting: &str) -> bool;

    /// Whether it is behind a network, where a call takes time and may fail.
    fn is_remote(&self) -> bool {
        false
    }

    /// Into how many shards the tasks are divided at a first start, unless told otherwise.
    fn first_shards(&self) -> u16 {
        1
    }

    /// Opens the store, or begins one: one attempt. One that was there and is gone, or has lost confirmed tasks, is
    /// opened only if it is forced to, and what is lost is logged.
    fn open(&self, opening: &Opening<'_>) -> Result<Opened, Unopened>;

    /// Whether there is one in this data directory.
    fn is_in(&self, data: &Path) -> bool;

    /// Copies it from one data directory to another as it is at one moment, also while it is in use.
    fn copy(&self, from: &Path, to: &Path) -> Result<Copied, Failure>;

    /// Looks for damage, prints it, and says whether there is none. Changes nothing.
    fn check(&self, config: &Config, json: bool) -> Result<bool, Failure>;

    /// Prints what is in it, as far as it can be read, and says whether nothing is damaged.
    fn show(&self, config: &Config, listing: &Listing, json: bool) -> Result<bool, Failure>;

    /// Brings its layout up to date, or makes it, and says what was done.
    fn migrate(&self, config: &Config) -> Result<String, Failure>;
}

/// What a store is opened with.
pub struct Opening<'a> {
    pub config: &'a Config,
    pub clock: Arc<dyn Clock>,
    pub is_forced: bool,
}

/// A store that was opened, with what belongs to it.
pub struct Opened {
    pub store: Arc<dyn Store>,
    /// The same, as an operator sees it.
    pub face: Arc<dyn OpenStore>,
    /// Vouches for leases.
    pub secret: [u8; 32],
    /// The data directory, if it keeps its data there.
    pub data: Option<PathBuf>,
}

/// Why a store was not opened.
#[derive(Debug)]
pub enum Unopened {
    /// It cannot be reached for now: it may be worth trying again.
    Away(String),
    /// Trying again does not help.
    Failed(Failure),
}

impl From<Failure> for Unopened {
    fn from(failure: Failure) -> Unopened {
        Unopened::Failed(failure)
    }
}

impl From<StoreError> for Unopened {
    fn from(error: StoreError) -> Unopened {
        match error {
            StoreError::Unavailable(why) => Unopened::Away(why),
            error => Unopened::Failed(Failure::failed(error)),
        }
    }
}

impl Unopened {
    /// For those who do not wait.
    pub fn into_failure(self) -> Failure {
        match self {
            Unopened::Away(why) => Failure::Failed(why),
            Unopened::Failed(failure) => failure,
        }
    }
}

/// A store that is open, as an operator sees it.
pub trait OpenStore: Send + Sync {
    /// What an operator should see at the start: where it is, and what a confirmation is worth.
    fn line(&self) -> String;

    /// What an operator should change about it, if anything.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Where all that was confirmed is once the server has stopped.
    fn whereabouts(&self) -> &'static str;

    /// What it takes, and how it is reached.
    fn stats(&self) -> StoreStats;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::StoreUrl;

    fn told(text: &str) -> String {
        named(&StoreUrl::read(text).expect("its form is right")).err().expect("there is no such store")
    }

    #[test]
    fn a_store_is_found_by_its_name_or_scheme() {
        for text in ["almanac", "memory", "postgresql://db/x", "mariadb://db/x", "redis+cluster://a,b"] {
            assert!(named(&StoreUrl::read(text).expect("its form is right")).is_ok(), "{text}");
        }
        assert_eq!(told("postgres"), "write postgres://USER@HOST/DATABASE");
        assert_eq!(told("almanac://here"), "write almanac");
        let unknown = told("mongodb://user:hunter2@db/x");
        assert!(
            unknown.starts_with("there is no store `mongodb`: write one of almanac, memory, postgres://"),
            "{unknown}"
        );
        assert!(!unknown.contains("hunter2"));
    }

    #[test]
    fn no_two_stores_bear_the_same_name() {
        let mut schemes: Vec<&str> = ALL.iter().flat_map(|storage| storage.schemes()).copied().collect();
        let all = schemes.len();
        schemes.sort_unstable();
        schemes.dedup();
        assert_eq!(schemes.len(), all);
    }
}
