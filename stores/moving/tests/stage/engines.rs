//! A real engine of every kind, and new stores in them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use punctual_almanac::{Almanac, Directory};
use punctual_core::store::Store;
use punctual_database::{Config, Database};
use punctual_engines::{Maria, Postgres, Redis, RedisCluster};
use punctual_memory::MemoryStore;
use punctual_mysql::MysqlStore;
use punctual_node::SystemClock;
use punctual_postgres::PostgresStore;
use punctual_redis::RedisStore;

/// One of each.
pub struct Engines {
    postgres: Postgres,
    maria: Maria,
    redis: Redis,
    cluster: RedisCluster,
    directory: tempfile::TempDir,
    stores: AtomicU32,
}

/// Nobody pulls the plug here, and a disk that is busy for seconds must not look like a store that is away.
const UNSYNCED: &[&str] = &["--appendfsync", "no"];
pub const PATIENCE: Duration = Duration::from_secs(60);

pub const KINDS: [&str; 6] = ["memory", "almanac", "postgres", "mysql", "redis", "redis-cluster"];

impl Engines {
    pub fn start() -> Engines {
        Engines {
            postgres: Postgres::start(),
            maria: Maria::start(),
            redis: Redis::start_with(UNSYNCED),
            cluster: RedisCluster::start_with(UNSYNCED),
            directory: tempfile::tempdir().unwrap(),
            stores: AtomicU32::new(0),
        }
    }

    /// A new store of a kind, beside all others in the same engine.
    pub fn fresh(&self, kind: &str) -> Arc<dyn Store> {
        let name = format!("store{}", self.stores.fetch_add(1, Ordering::SeqCst));
        match kind {
            "memory" => Arc::new(MemoryStore::new(Arc::new(SystemClock))),
            "almanac" => {
                let disk = Directory::open(self.directory.path().join(name)).unwrap();
                Arc::new(Almanac::open(Arc::new(disk), small(), Arc::new(SystemClock)).unwrap())
            }
            "postgres" => {
                let config = Config { schema: Some(name), ..patient(self.postgres.url()) };
                Arc::new(PostgresStore::open(config).unwrap())
            }
            "mysql" => {
                let config = Config { prefix: Some(format!("{name}_")), ..patient(self.maria.url()) };
                Arc::new(MysqlStore::open(config).unwrap())
            }
            redis => {
                let url = if redis == "redis" { self.redis.url() } else { self.cluster.url() };
                Arc::new(RedisStore::open(Config { prefix: Some(name), ..patient(url) }).unwrap())
            }
        }
    }
}

/// Two dozen of them lie on the disk at once, which may have little room.
fn small() -> punctual_almanac::Config {
    punctual_almanac::Config { segment: 2 << 20, journal: 16 << 20, reserve: 2 << 20, ..Default::default() }
}

/// Many stores are open in one server at once, so that each has few connections.
fn patient(url: String) -> Config {
    Config { patience: PATIENCE, connections: 3, ..Config::new(url) }
}
