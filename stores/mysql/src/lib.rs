//! Punctual's store in MariaDB (10.6 and later) or MySQL (8.0 and later).
//!
//! ```no_run
//! use punctual_mysql::{Config, MysqlStore};
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
mod config;
mod connection;
mod keeper;
mod layout;
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
use std::sync::atomic::Ordering;
use std::time::Duration;

use punctual_core::store::StoreError;

use connection::Threads;
use keeper::Keeper;
use pool::Pool;
use server::Server;
use sql::Tables;
use trouble::Hardships;

pub use config::Config;
pub use layout::Migrated;
pub use trouble::OpenError;

/// A beat that comes late is worth nothing, so it is given up early.
const BEAT_PATIENCE: Duration = Duration::from_secs(2);

/// A store in a database of a MariaDB or MySQL server.
pub struct MysqlStore {
    pool: Arc<Pool>,
    /// What keeps the node's shards never waits behind what the shards do.
    beats: Pool,
    tables: Tables,
    prefix: String,
    server: Server,
    hardships: Hardships,
    keeper: Keeper,
}

/// How it goes, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Texts that were sent.
    pub round_trips: u64,
    /// Attempts that were not the first ones.
    pub retries: u64,
    /// Calls that failed.
    pub failures: u64,
    /// Connections that are open.
    pub connections: usize,
    /// Those that are in use.
    pub busy: usize,
    /// What the tables take on the server's disk, as of a minute ago at most.
    pub bytes: u64,
}

impl MysqlStore {
    /// Opens the store; makes its tables or brings them up to date if need be.
    pub fn open(config: Config) -> Result<MysqlStore, OpenError> {
        MysqlStore::prepare(config, |pool, tables| layout::migrate(pool, tables).map(|_| ()))
    }

    /// Opens a store that is there, as it is.
    pub fn attach(config: Config) -> Result<MysqlStore, OpenError> {
        MysqlStore::prepare(config, layout::verify)
    }

    /// Makes the tables, or brings them up to date.
    pub fn migrate(config: &Config) -> Result<Migrated, OpenError> {
        let pool = Pool::new(threads()?, config.login()?, 1, config.patience);
        let deadline = pool.deadline();
        Server::learn(&mut pool.take(deadline)?, deadline)?;
        layout::migrate(&pool, &Tables::new(&config.prefix))
    }

    fn prepare(
        config: Config,
        prepare_tables: impl FnOnce(&Pool, &Tables) -> Result<(), OpenError>,
    ) -> Result<MysqlStore, OpenError> {
        let login = config.login()?;
        let tables = Tables::new(&config.prefix);
        let threads = threads()?;
        let beats = Pool::new(Arc::clone(&threads), login.clone(), 1, config.patience.min(BEAT_PATIENCE));
        let pool = Arc::new(Pool::new(threads, login, config.connections, config.patience));
        let deadline = pool.deadline();
        let server = Server::learn(&mut pool.take(deadline)?, deadline)?;
        prepare_tables(&pool, &tables)?;
        let keeper = Keeper::start(pool.clone(), tables.clone(), server.product);
        let keeper = keeper.map_err(no_threads)?;
        let hardships = Hardships::default();
        Ok(MysqlStore { pool, beats, tables, prefix: config.prefix, server, hardships, keeper })
    }

    /// What makes confirmations worth less than they should be, and what to do about it.
    pub fn warnings(&self) -> Vec<String> {
        self.server.warnings()
    }

    /// How it goes, without asking the server.
    pub fn status(&self) -> Status {
        let sum = |counter: fn(&pool::Counters) -> &std::sync::atomic::AtomicU64| {
            [&*self.pool, &self.beats].map(|pool| counter(&pool.counters).load(Ordering::Relaxed)).iter().sum()
        };
        let (sizes, beats) = (self.pool.size(), self.beats.size());
        Status {
            round_trips: sum(|counters| &counters.round_trips),
            retries: sum(|counters| &counters.retries),
            failures: sum(|counters| &counters.failures),
            connections: sizes.0 + beats.0,
            busy: sizes.1 + beats.1,
            bytes: self.keeper.bytes(),
        }
    }

    /// What is wrong with the tables that no reading of rows would show: a line for each.
    pub fn check(&self) -> Result<Vec<String>, StoreError> {
        check::check(self)
    }

    /// The longest text that fits into a packet of the server's.
    fn packet(&self) -> usize {
        self.server.packet - 1_024
    }
}

fn threads() -> Result<Arc<Threads>, OpenError> {
    Threads::start().map_err(no_threads)
}

fn no_threads(error: std::io::Error) -> OpenError {
    OpenError::Away(format!("no thread can be started: {error}"))
}

impl fmt::Display for MysqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, prefix) = (&self.pool.login().place, &self.prefix);
        write!(f, "{} at {place}, tables {prefix}*, {}", self.server, self.server.durability())
    }
}

impl fmt::Debug for MysqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MysqlStore({self})")
    }
}
