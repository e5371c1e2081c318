//! The suite that every store must pass, on a real server.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use punctual_conformance::Subject;
use punctual_core::Millis;
use punctual_core::store::Store;
use punctual_engines::Postgres;
use punctual_postgres::{Config, Database, PostgresStore};

const TABLES: [&str; 7] = ["shards", "nodes", "cluster", "names", "rows", "tallies", "deltas"];

/// Stores in schemas of one database.
struct Schemas {
    postgres: Postgres,
    next: AtomicU32,
    /// The schema of each handle, by its address.
    schemas: Mutex<HashMap<usize, String>>,
}

impl Schemas {
    fn open(&self, schema: &str) -> Arc<dyn Store> {
        let config = Config { schema: Some(schema.to_owned()), connections: 4, ..Config::new(self.postgres.url()) };
        let store: Arc<dyn Store> = Arc::new(PostgresStore::open(config).unwrap());
        self.schemas.lock().unwrap().insert(address(&store), schema.to_owned());
        store
    }

    fn schema(&self, store: &Arc<dyn Store>) -> String {
        self.schemas.lock().unwrap()[&address(store)].clone()
    }
}

fn address(store: &Arc<dyn Store>) -> usize {
    Arc::as_ptr(store).cast::<u8>().addr()
}

impl Subject for Schemas {
    fn fresh(&self) -> Arc<dyn Store> {
        self.open(&format!("store {}", self.next.fetch_add(1, Ordering::Relaxed)))
    }

    fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let schema = self.schema(&store);
        drop(store);
        self.open(&schema)
    }

    fn share(&self, store: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        Some(self.open(&self.schema(store)))
    }

    fn mark<'a>(&'a self, store: &Arc<dyn Store>) -> Option<Box<dyn FnOnce() + 'a>> {
        let schema = self.schema(store);
        for table in TABLES {
            self.postgres.sql(&format!(r#"CREATE TABLE "{schema}"."marked {table}" AS TABLE "{schema}"."{table}""#));
        }
        Some(Box::new(move || {
            let back = TABLES.map(|table| {
                let (now, then) = (format!(r#""{schema}"."{table}""#), format!(r#""{schema}"."marked {table}""#));
                format!("DELETE FROM {now}; INSERT INTO {now} TABLE {then}; DROP TABLE {then}")
            });
            self.postgres.sql(&back.join("; "));
        }))
    }

    fn pass(&self, time: Millis) {
        thread::sleep(Duration::from_millis(time.0));
    }

    fn commits_between_reopenings(&self) -> u64 {
        5
    }

    fn rounds(&self) -> u64 {
        500
    }
}

#[test]
fn the_store_conforms() {
    let postgres = Postgres::start();
    punctual_conformance::run(&Schemas { postgres, next: AtomicU32::new(0), schemas: Mutex::default() });
}
