//! MySQL and MariaDB.

use std::sync::Arc;

use punctual_mysql::{Config as Settings, MysqlStore};

use super::Unopened;
use super::database::{Database, DatabaseStore, database_store, settings_of_databases};
use crate::config::Config;
use crate::failure::Failure;

/// The database.
pub struct Mysql;

impl Database for Mysql {
    const NAME: &'static str = "MySQL";
    const SCHEMES: &'static [&'static str] = &["mysql", "mariadb"];
    const FORM: &'static str = "mysql://USER@HOST/DATABASE";
    const SETTINGS: &'static [&'static str] = settings_of_databases!();
    const FIRST_SHARDS: u16 = 4;
    const BACKUP: &'static str = "mariadb-dump or mysqldump --single-transaction";

    fn open(&self, config: &Config) -> Result<Arc<dyn DatabaseStore>, Unopened> {
        Ok(Arc::new(MysqlStore::open(settings(config)?)?))
    }

    fn attach(&self, config: &Config) -> Result<Arc<dyn DatabaseStore>, Unopened> {
        Ok(Arc::new(MysqlStore::attach(settings(config)?)?))
    }

    fn migrate(&self, config: &Config) -> Result<(Option<u32>, u32), Unopened> {
        let done = MysqlStore::migrate(&settings(config)?)?;
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
        ..usual
    })
}

database_store!(punctual_mysql, MysqlStore, "mysql", disk_bytes);
