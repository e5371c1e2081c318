//! Stores behind a network: what the server does with any of them. What each is, its crate says (`punctual_database`).
//!
//! A database is asked for in one attempt; who starts a server waits and asks again (`serve/opening.rs`). Nothing of it is
//! in the data directory: the secret for leases and the tokens are in the store, beside the tasks.

mod check;
pub mod roll;
mod show;
mod walk;

use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use punctual_database::{Config as Settings, Database, Migrated, OpenError};
use punctual_wire::{StoreLink, StoreStats};

use super::shared_secret::shared_secret;
use super::{Copied, Listing, OpenStore, Opened, Opening, Storage, Unopened};
use crate::config::Config;
use crate::failure::Failure;
use crate::metrics::{MetricsPage, Series, Unit};

/// The settings of the store that mean something for every database; those of one alone are named by its kind.
const SETTINGS: [&str; 9] = [
    "store.password",
    "store.password_file",
    "store.connections",
    "store.patience",
    "store.wait",
    "store.ca",
    "store.certificate",
    "store.key",
    "store.prefix",
];

/// A kind of database as a store of the server.
pub struct Remote<D>(PhantomData<fn() -> D>);

impl<D> Remote<D> {
    pub const KIND: Remote<D> = Remote(PhantomData);
}

impl<D: Database> Storage for Remote<D> {
    fn schemes(&self) -> &'static [&'static str] {
        D::KIND.schemes
    }

    fn form(&self) -> &'static str {
        D::KIND.form
    }

    fn knows(&self, setting: &str) -> bool {
        let own = setting.strip_prefix("store.");
        SETTINGS.contains(&setting) || own.is_some_and(|own| D::KIND.settings.contains(&own))
    }

    fn is_remote(&self) -> bool {
        true
    }

    /// Enough for a dozen servers, among whom they are divided.
    fn first_shards(&self) -> u16 {
        16
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Opened, Unopened> {
        let store = Arc::new(D::open(settings(opening.config)?)?);
        let secret = shared_secret(&*store)?;
        Ok(Opened { face: Arc::new(Reached(Arc::clone(&store))), store, secret, data: None })
    }

    fn is_in(&self, _: &Path) -> bool {
        false
    }

    fn copy(&self, _: &Path, _: &Path) -> Result<Copied, Failure> {
        let (name, backup) = (D::KIND.name, D::KIND.backup);
        Err(Failure::Usage(format!(
            "the tasks are in {name}, and so are the secret and the tokens: back them up and restore them with its own means \
             ({backup}). `punctual store move` copies everything into another store"
        )))
    }

    fn check(&self, config: &Config, json: bool) -> Result<bool, Failure> {
        let frozen = D::freeze(settings(config)?).map_err(Unopened::from).map_err(Unopened::into_failure)?;
        check::check(&attach::<D>(config)?, frozen.as_ref(), json)
    }

    fn show(&self, config: &Config, listing: &Listing, json: bool) -> Result<bool, Failure> {
        show::show(&attach::<D>(config)?, listing, json)
    }

    fn migrate(&self, config: &Config) -> Result<String, Failure> {
        let name = D::KIND.name;
        Ok(match D::migrate(&settings(config)?).map_err(Unopened::from).map_err(Unopened::into_failure)? {
            Migrated { from: None, to } => format!("created the layout in {name}, version {to}"),
            Migrated { from: Some(from), to } if from == to => {
                format!("the layout in {name} is up to date, version {to}")
            }
            Migrated { from: Some(from), to } => format!("brought the layout in {name} from version {from} to {to}"),
        })
    }
}

/// For who only looks.
fn attach<D: Database>(config: &Config) -> Result<D, Failure> {
    D::attach(settings(config)?).map_err(Unopened::from).map_err(Unopened::into_failure)
}

fn settings(config: &Config) -> Result<Settings, Failure> {
    let store = &config.store;
    Ok(Settings {
        url: config.store_url().map_err(Failure::Usage)?,
        connections: store.connections.get(),
        patience: store.patience.as_duration(),
        ca: store.ca.clone(),
        certificate: store.certificate.clone(),
        key: store.key.clone(),
        prefix: store.prefix.clone(),
        schema: store.schema.clone(),
        replicas: store.replicas,
    })
}

impl From<OpenError> for Unopened {
    fn from(error: OpenError) -> Unopened {
        match error {
            OpenError::Url(what) => Unopened::Failed(Failure::Usage(format!("`store`: {what}"))),
            OpenError::Away(why) => Unopened::Away(why),
            OpenError::Refused(why) => Unopened::Failed(Failure::Failed(why)),
        }
    }
}

/// A database that was reached.
struct Reached<D>(Arc<D>);

impl<D: Database> OpenStore for Reached<D> {
    fn line(&self) -> String {
        self.0.to_string()
    }

    fn warnings(&self) -> Vec<String> {
        self.0.warnings()
    }

    fn whereabouts(&self) -> &'static str {
        "in the database"
    }

    fn stats(&self) -> StoreStats {
        let status = self.0.status();
        StoreStats {
            kind: D::KIND.word.into(),
            memory_bytes: status.memory_bytes,
            disk_bytes: status.disk_bytes,
            link: Some(StoreLink {
                round_trips: status.round_trips,
                retries: status.retries,
                failures: status.failures,
                connections: status.connections as u64,
                busy: status.busy as u64,
            }),
        }
    }

    fn meter(&self, page: &mut MetricsPage) {
        meter(&self.stats(), page);
    }
}

/// Writes the numbers of a database: the same as its stats have.
fn meter(stats: &StoreStats, page: &mut MetricsPage) {
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
