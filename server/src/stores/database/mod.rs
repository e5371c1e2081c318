//! Stores behind a network: what is the same for all of them.
//!
//! A database is asked for in one attempt; who starts a server waits and asks again (`serve/opening.rs`). Nothing of it is
//! in the data directory: the secret for leases is in the store, beside the tasks.

mod inspect;
mod walk;

use std::path::Path;
use std::sync::Arc;

use punctual_core::store::StoreError;
use punctual_wire::StoreStats;

use super::shared_secret::shared_secret;
use super::{Copied, Listing, OpenStore, Opened, Opening, Storage, Unopened};
use crate::config::Config;
use crate::failure::Failure;
use crate::metrics::{MetricsPage, Series, Unit};

/// The settings of the store that mean something for every database.
macro_rules! settings_of_databases {
    ($($more:literal),*) => {
        &[
            "store.password",
            "store.password_file",
            "store.connections",
            "store.patience",
            "store.wait",
            "store.ca",
            "store.certificate",
            "store.key",
            "store.prefix",
            $($more),*
        ]
    };
}
pub(super) use settings_of_databases;

/// What a database has of its own.
pub trait Database: Sync {
    /// Its name for people.
    const NAME: &'static str;
    /// What its URLs begin with.
    const SCHEMES: &'static [&'static str];
    /// How to write its URL.
    const FORM: &'static str;
    /// The settings of the store that mean something for it, beside the URL.
    const SETTINGS: &'static [&'static str];
    /// Into how many shards the tasks are divided at a first start: their commits go on side by side.
    const FIRST_SHARDS: u16;
    /// What makes a backup of it, instead of `punctual backup`.
    const BACKUP: &'static str;

    /// Connects, and makes the layout or brings it up to date.
    fn open(&self, config: &Config) -> Result<Arc<dyn DatabaseStore>, Unopened>;

    /// Connects, and changes nothing.
    fn attach(&self, config: &Config) -> Result<Arc<dyn DatabaseStore>, Unopened>;

    /// Makes the layout or brings it up to date, and says from which version to which.
    fn migrate(&self, config: &Config) -> Result<(Option<u32>, u32), Unopened>;
}

/// A database that is open.
pub trait DatabaseStore: OpenStore {
    /// The damage that only the database itself can see.
    fn check(&self) -> Result<Vec<String>, StoreError>;
}

/// A database as a store of the server.
pub struct Remote<D>(pub D);

impl<D: Database> Storage for Remote<D> {
    fn schemes(&self) -> &'static [&'static str] {
        D::SCHEMES
    }

    fn form(&self) -> &'static str {
        D::FORM
    }

    fn settings(&self) -> &'static [&'static str] {
        D::SETTINGS
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn first_shards(&self) -> u16 {
        D::FIRST_SHARDS
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Opened, Unopened> {
        let store = self.0.open(opening.config)?;
        let secret = shared_secret(&*store)?;
        Ok(Opened { store, secret, data: None })
    }

    fn is_in(&self, _: &Path) -> bool {
        false
    }

    fn copy(&self, _: &Path, _: &Path) -> Result<Copied, Failure> {
        let (name, backup) = (D::NAME, D::BACKUP);
        Err(Failure::Usage(format!(
            "the tasks are in {name}, and so is the secret: back them up and restore them with its own means ({backup}). The \
             tokens are in the data directory. `punctual store move` copies everything into another store"
        )))
    }

    fn check(&self, config: &Config, json: bool) -> Result<bool, Failure> {
        let store = self.0.attach(config).map_err(Unopened::into_failure)?;
        inspect::check(&*store, json)
    }

    fn show(&self, config: &Config, listing: &Listing, json: bool) -> Result<bool, Failure> {
        let store = self.0.attach(config).map_err(Unopened::into_failure)?;
        inspect::show(&*store, listing, json)
    }

    fn migrate(&self, config: &Config) -> Result<String, Failure> {
        let name = D::NAME;
        Ok(match self.0.migrate(config).map_err(Unopened::into_failure)? {
            (None, to) => format!("created the layout in {name}, version {to}"),
            (Some(from), to) if from == to => format!("the layout in {name} is up to date, version {to}"),
            (Some(from), to) => format!("brought the layout in {name} from version {from} to {to}"),
        })
    }
}

/// Brings the store of a database's crate under the server's words. These crates know nothing of each other, but what
/// they have alike has the same names: `OpenError`, `status`, `warnings`, `check`.
macro_rules! database_store {
    ($crate_name:ident, $store:ident, $kind:literal, $bytes:ident) => {
        impl From<$crate_name::OpenError> for $crate::stores::Unopened {
            fn from(error: $crate_name::OpenError) -> Self {
                use $crate::failure::Failure;
                match error {
                    $crate_name::OpenError::Url(what) => Self::Failed(Failure::Usage(format!("`store`: {what}"))),
                    $crate_name::OpenError::Away(why) => Self::Away(why),
                    $crate_name::OpenError::Refused(why) => Self::Failed(Failure::Failed(why)),
                }
            }
        }

        impl $crate::stores::OpenStore for $store {
            fn line(&self) -> String {
                self.to_string()
            }

            fn warnings(&self) -> Vec<String> {
                $store::warnings(self)
            }

            fn whereabouts(&self) -> &'static str {
                "in the database"
            }

            fn stats(&self) -> punctual_wire::StoreStats {
                let status = self.status();
                punctual_wire::StoreStats {
                    kind: $kind.into(),
                    $bytes: status.bytes,
                    link: Some(punctual_wire::StoreLink {
                        round_trips: status.round_trips,
                        retries: status.retries,
                        failures: status.failures,
                        connections: status.connections as u64,
                        busy: status.busy as u64,
                    }),
                    ..punctual_wire::StoreStats::default()
                }
            }

            fn meter(&self, page: &mut $crate::metrics::MetricsPage) {
                $crate::stores::database::meter(&self.stats(), page);
            }
        }

        impl $crate::stores::database::DatabaseStore for $store {
            fn check(&self) -> Result<Vec<String>, punctual_core::store::StoreError> {
                $store::check(self)
            }
        }
    };
}
pub(super) use database_store;

/// Writes the numbers of a database: the same as its stats have.
pub fn meter(stats: &StoreStats, page: &mut MetricsPage) {
    for (name, about, bytes) in [
        ("store_memory", "Memory used by the store, by purpose.", stats.memory_bytes),
        ("store_disk", "Disk space used by the store, by purpose.", stats.disk_bytes),
    ] {
        if bytes > 0 {
            page.gauges(name, about, Some(Unit::Bytes), ["part"], &Series::from([(["database".to_owned()], bytes)]));
        }
    }
    let Some(link) = &stats.link else { return };
    page.counter("store_round_trips", "Requests to the database.", link.round_trips);
    page.counter("store_retries", "Requests to the database that were tried again.", link.retries);
    page.counter("store_failures", "Requests to the database that failed after all attempts.", link.failures);
    let states = [("open", link.connections), ("busy", link.busy)];
    let states: Series<1> = states.map(|(state, count)| ([state.to_owned()], count)).into();
    page.gauges("store_connections", "Connections to the database, by state.", None, ["state"], &states);
}
