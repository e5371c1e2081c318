//! Punctual's store in MariaDB (10.6 and later) or MySQL (8.0 and later).
//!
//! ```no_run
//! use punctual_mysql::{Config, Database, MysqlStore};
//!
//! let store = MysqlStore::open(Config::new("mysql://punctual:secret@db.example.com/punctual"))?;
//! println!("{store}"); // MariaDB 10.11.19 at db.example.com:3306/punctual, tables punctual_*, commits are synced
//! # Ok::<_, punctual_mysql::OpenError>(())
//! ```
//!
//! Every call is a text of several statements and one round trip, blocks, and ends within the store's patience. What to
//! do with a failure is decided in `trouble.rs`, which statements there are in `change.rs`, `read.rs`, `page.rs` and
//! `membership.rs`, and how they travel in `connection.rs`.

mod answer;
mod change;
mod check;
mod commit;
mod connection;
mod contents;
mod keeper;
mod layout;
mod login;
mod membership;
mod name;
mod page;
mod pool;
mod read;
mod secrecy;
mod server;
mod sql;
mod store;
mod trouble;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use punctual_core::store::StoreError;
use punctual_database::{Hardships, Kind, Threads};

use answer::{Answer, Record};
use keeper::Keeper;
use login::Login;
use pool::Pool;
use server::Server;
use sql::{Sql, Tables};

pub use punctual_database::{Config, Contents, Database, Migrated, OpenError, ShardContents, Status};

/// How long a look at all rows may take.
const SURVEY: Duration = Duration::from_secs(3_600);

/// A store in a database of a MariaDB or MySQL server.
pub struct MysqlStore {
    pool: Arc<Pool>,
    /// What keeps the node's shards never waits behind what the shards do.
    beats: Pool,
    tables: Tables,
    server: Server,
    hardships: Hardships,
    keeper: Keeper,
}

impl Database for MysqlStore {
    const KIND: Kind = Kind {
        name: "MySQL",
        word: "mysql",
        schemes: &["mysql", "mariadb"],
        form: "mysql://USER@HOST/DATABASE",
        settings: &[],
        backup: "mariadb-dump or mysqldump --single-transaction",
    };

    fn open(config: Config) -> Result<MysqlStore, OpenError> {
        MysqlStore::prepare(&config, |pool, tables| layout::migrate(pool, tables).map(drop))
    }

    fn attach(config: Config) -> Result<MysqlStore, OpenError> {
        MysqlStore::prepare(&config, layout::verify)
    }

    fn freeze(config: Config) -> Result<Option<MysqlStore>, OpenError> {
        let store = MysqlStore::attach(config)?;
        Ok(Some(MysqlStore { pool: Arc::new(store.pool.frozen()), ..store }))
    }

    fn migrate(config: &Config) -> Result<Migrated, OpenError> {
        let (pool, tables, _) = MysqlStore::reach(config)?;
        layout::migrate(&pool, &tables)
    }

    fn status(&self) -> Status {
        let (sizes, beats) = (self.pool.size(), self.beats.size());
        let status = self.pool.counters().status((sizes.0 + beats.0, sizes.1 + beats.1));
        Status { disk_bytes: self.keeper.bytes(), ..status }
    }

    fn warnings(&self) -> Vec<String> {
        self.server.warnings()
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        check::check(self)
    }

    fn contents(&self) -> Result<Contents, StoreError> {
        contents::contents(self)
    }
}

impl MysqlStore {
    /// Connects, and learns whether the server will do.
    fn reach(config: &Config) -> Result<(Pool, Tables, Server), OpenError> {
        let (login, tables) = (Login::of(config)?, Tables::of(config)?);
        let threads = Arc::new(Threads::start("mysql")?);
        let pool = Pool::new(threads, login, config.connections, config.patience);
        let deadline = pool.deadline();
        let server = Server::learn(&mut pool.take(deadline)?, deadline)?;
        Ok((pool, tables, server))
    }

    fn prepare(
        config: &Config,
        prepare_tables: impl FnOnce(&Pool, &Tables) -> Result<(), OpenError>,
    ) -> Result<MysqlStore, OpenError> {
        let (pool, tables, server) = MysqlStore::reach(config)?;
        prepare_tables(&pool, &tables)?;
        let beats = pool.beside(1);
        let pool = Arc::new(pool);
        let keeper = Keeper::start(pool.clone(), tables.clone(), server.product);
        let keeper = keeper.map_err(|error| OpenError::Away(format!("no thread can be started: {error}")))?;
        Ok(MysqlStore { pool, beats, tables, server, hardships: Hardships::default(), keeper })
    }

    /// The answer to a statement that looks at all rows, and takes as long as it takes.
    fn survey(&self, statement: String) -> Result<Vec<Record>, StoreError> {
        let sql = Sql::from(statement);
        let patient = self.pool.patient(SURVEY);
        let answers = patient.retry(|line, deadline| line.ask(&sql, deadline).map_err(|stopped| stopped.why))?;
        Ok(answers.into_iter().flat_map(Answer::rows).collect())
    }

    /// The longest text that fits into a packet of the server's.
    fn packet(&self) -> usize {
        self.server.packet - 1_024
    }
}

impl fmt::Display for MysqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, prefix) = (&self.pool.login().place, &self.tables.prefix);
        write!(f, "{} at {place}, tables {prefix}*, {}", self.server, self.server.durability())
    }
}

impl fmt::Debug for MysqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MysqlStore({self})")
    }
}
