//! The databases: each started privately with a sync before it answers, unless its name says otherwise, and asked what
//! it has used so far.

use std::time::Duration;

use punctual_engines::{Maria, Postgres, Redis};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Postgres,
    Maria,
    RedisAlways,
    RedisEverySecond,
}

/// No checkpoint falls into a measurement: the pages that are written whole after one would be paid by whoever comes
/// next. Room in memory for all that is written here.
const POSTGRES: &[&str] = &["shared_buffers=512MB", "max_wal_size=8GB", "checkpoint_timeout=1h", "max_connections=200"];
const MARIA: &[&str] = &["innodb_buffer_pool_size=512M", "innodb_log_file_size=2G", "max_connections=200"];

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Postgres, Kind::Maria, Kind::RedisAlways, Kind::RedisEverySecond];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Postgres => "postgres",
            Kind::Maria => "mariadb",
            Kind::RedisAlways => "redis-always",
            Kind::RedisEverySecond => "redis-everysec",
        }
    }

    pub fn heading(self) -> &'static str {
        match self {
            Kind::Postgres => "PostgreSQL",
            Kind::Maria => "MariaDB",
            Kind::RedisAlways => "Redis, synced always",
            Kind::RedisEverySecond => "Redis, synced every second",
        }
    }

    /// An empty one.
    pub fn start(self) -> Engine {
        // A rewritten file would be shorter than what was written.
        let redis = |sync| Redis::start_with(&["--appendfsync", sync, "--auto-aof-rewrite-percentage", "0"]);
        match self {
            Kind::Postgres => Engine::Postgres(Postgres::start_with(POSTGRES)),
            Kind::Maria => Engine::Maria(Maria::start_with(MARIA)),
            Kind::RedisAlways => Engine::Redis(redis("always")),
            Kind::RedisEverySecond => Engine::Redis(redis("everysec")),
        }
    }
}

pub enum Engine {
    Postgres(Postgres),
    Maria(Maria),
    Redis(Redis),
}

/// What a database has used since it was started.
#[derive(Clone, Copy)]
pub struct Used {
    pub cpu: Duration,
    /// The bytes of the log that makes changes durable.
    pub log: u64,
}

impl Engine {
    pub fn url(&self) -> String {
        match self {
            Engine::Postgres(postgres) => postgres.url(),
            Engine::Maria(maria) => maria.url(),
            Engine::Redis(redis) => redis.url(),
        }
    }

    pub fn port(&self) -> u16 {
        match self {
            Engine::Postgres(postgres) => postgres.port(),
            Engine::Maria(maria) => maria.port(),
            Engine::Redis(redis) => redis.port(),
        }
    }

    /// Its name and version.
    pub fn version(&self) -> String {
        match self {
            Engine::Postgres(postgres) => format!("PostgreSQL {}", first_word(&postgres.sql("SHOW server_version"))),
            Engine::Maria(maria) => format!("MariaDB {}", first_word(&maria.sql("SELECT VERSION()"))),
            Engine::Redis(redis) => {
                let sync = redis.command(&["CONFIG", "GET", "appendfsync"]).replace("appendfsync\n", "");
                format!("Redis {}, synced {sync}", redis.info("redis_version").unwrap_or_default())
            }
        }
    }

    pub fn used(&self) -> Used {
        match self {
            Engine::Postgres(postgres) => {
                let log = postgres.sql("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint");
                Used { cpu: postgres.cpu(), log: number(&log) }
            }
            Engine::Maria(maria) => {
                let log = maria.sql("SHOW GLOBAL STATUS LIKE 'Innodb_lsn_current'");
                Used { cpu: maria.cpu(), log: number(log.split('\t').next_back().unwrap_or_default()) }
            }
            Engine::Redis(redis) => {
                Used { cpu: redis.cpu(), log: number(&redis.info("aof_current_size").unwrap_or_default()) }
            }
        }
    }

    /// The bytes that a table takes with its indexes; PostgreSQL only.
    pub fn table_bytes(&self, table: &str) -> u64 {
        match self {
            Engine::Postgres(postgres) => number(&postgres.sql(&format!("SELECT pg_total_relation_size('{table}')"))),
            Engine::Maria(_) | Engine::Redis(_) => 0,
        }
    }
}

fn number(text: &str) -> u64 {
    text.trim().parse().unwrap_or_else(|_| panic!("the database gave {text:?} for a number"))
}

fn first_word(text: &str) -> &str {
    text.split([' ', '-']).next().unwrap_or_default()
}
