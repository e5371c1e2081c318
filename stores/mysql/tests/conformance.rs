//! The store passes the suite that every store must pass, with two handles wherever ownership is concerned.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use punctual_conformance::Subject;
use punctual_core::Millis;
use punctual_core::store::Store;
use punctual_engines::Maria;
use punctual_mysql::{Config, Database, MysqlStore};

/// One server for all stores, each with tables of its own.
struct OnMaria {
    maria: Maria,
    stores: AtomicU32,
}

impl OnMaria {
    /// A handle to the store that was made last.
    fn open(&self) -> Arc<dyn Store> {
        let prefix = format!("s{}_", self.stores.load(Ordering::SeqCst));
        Arc::new(MysqlStore::open(Config { prefix: Some(prefix), ..Config::new(self.maria.url()) }).unwrap())
    }
}

impl Subject for OnMaria {
    fn fresh(&self) -> Arc<dyn Store> {
        self.stores.fetch_add(1, Ordering::SeqCst);
        self.open()
    }

    fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        drop(store);
        self.open()
    }

    fn share(&self, _store: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        Some(self.open())
    }

    fn mark<'a>(&'a self, _store: &Arc<dyn Store>) -> Option<Box<dyn FnOnce() + 'a>> {
        let prefix = format!("s{}_", self.stores.load(Ordering::SeqCst));
        let for_each = |statements: &str| {
            let tables = ["shards", "nodes", "cluster", "names", "members", "rows", "tallies", "deltas"];
            let of = |table: &str| {
                statements
                    .replace("KEPT", &format!("kept_{prefix}{table}"))
                    .replace("TABLE_", &format!("{prefix}{table}"))
            };
            tables.map(of).concat()
        };
        let keep = for_each("DROP TABLE IF EXISTS KEPT; CREATE TABLE KEPT AS SELECT * FROM TABLE_; ");
        let restore = for_each("DELETE FROM TABLE_; INSERT INTO TABLE_ SELECT * FROM KEPT; ");
        self.maria.sql(&format!("USE punctual; {keep}"));
        Some(Box::new(move || drop(self.maria.sql(&format!("USE punctual; BEGIN; {restore} COMMIT")))))
    }

    fn pass(&self, time: Millis) {
        thread::sleep(Duration::from_millis(time.0));
    }

    fn commits_between_reopenings(&self) -> u64 {
        5
    }

    fn rounds(&self) -> u64 {
        300
    }
}

#[test]
fn the_store_conforms_on_mariadb() {
    punctual_conformance::run(&OnMaria { maria: Maria::start(), stores: AtomicU32::new(0) });
}
