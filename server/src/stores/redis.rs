//! Redis and Valkey: one server, Sentinel or Cluster.

use std::sync::Arc;

use punctual_redis::{Config as Settings, RedisStore};

use super::Unopened;
use super::database::{Database, DatabaseStore, database_store, settings_of_databases};
use crate::config::Config;
use crate::failure::Failure;

/// The database.
pub struct Redis;

impl Database for Redis {
    const NAME: &'static str = "Redis";
    const SCHEMES: &'static [&'static str] =
        &["redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster", "valkey"];
    const FORM: &'static str = "redis://HOST";
    const SETTINGS: &'static [&'static str] = settings_of_databases!("store.replicas");
    const FIRST_SHARDS: u16 = 4;
    const BACKUP: &'static str = "a copy of its append-only file or of a snapshot";

    fn open(&self, config: &Config) -> Result<Arc<dyn DatabaseStore>, Unopened> {
        Ok(Arc::new(RedisStore::open(settings(config)?)?))
    }

    fn attach(&self, config: &Config) -> Result<Arc<dyn DatabaseStore>, Unopened> {
        Ok(Arc::new(RedisStore::attach(settings(config)?)?))
    }

    fn migrate(&self, config: &Config) -> Result<(Option<u32>, u32), Unopened> {
        let done = RedisStore::migrate(&settings(config)?)?;
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
        prefix: store.prefix.clone().unwrap_or(usual.prefix),
        replicas: store.replicas,
        ..usual
    })
}

database_store!(punctual_redis, RedisStore, "redis", memory_bytes);
