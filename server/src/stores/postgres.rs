//! PostgreSQL, and what speaks its language.

use std::sync::Arc;

use punctual_postgres::{Config as Settings, PostgresStore};

use super::Unopened;
use super::database::{Database, DatabaseStore, database_store, settings_of_databases};
use crate::config::Config;
use crate::failure::Failure;

/// The database.
pub struct Postgres;

impl Database for Postgres {
    const NAME: &'static str = "PostgreSQL";
    const SCHEMES: &'static [&'static str] = &["postgres", "postgresql"];
    const FORM: &'static str = "postgres://USER@HOST/DATABASE";
    const SETTINGS: &'static [&'static str] = settings_of_databases!("store.schema");
    const FIRST_SHARDS: u16 = 4;
    const BACKUP: &'static str = "pg_dump --schema=punctual, or a base backup";

    fn open(&self, config: &Config) -> Result<Arc<dyn DatabaseStore>, Unopened> {
        Ok(Arc::new(PostgresStore::open(settings(config)?)?))
    }

    fn attach(&self, config: &Config) -> Result<Arc<dyn DatabaseStore>, Unopened> {
        Ok(Arc::new(PostgresStore::attach(settings(config)?)?))
    }

    fn migrate(&self, config: &Config) -> Result<(Option<u32>, u32), Unopened> {
        let done = PostgresStore::migrate(&settings(config)?)?;
        Ok((done.from, done.to))
    }
}

fn settings(config: &Config) -> Result<Settings, Failure> {
    let (store, usual) = (&config.store, Settings::new(config.store_url().map_err(Failure::Usage)?));
    Ok(Settings {
        connections: store.connections.get(),
        patience: store.patience.as_duration(),
        ca: store.ca.clone(),
        certificate: store.certificate.clone(),
        key: store.key.clone(),
        schema: store.schema.clone().unwrap_or(usual.schema),
        prefix: store.prefix.clone().unwrap_or(usual.prefix),
        ..usual
    })
}

database_store!(punctual_postgres, PostgresStore, "postgres", disk_bytes);
