//! Punctual's store in PostgreSQL: tasks in tables of one's own database, backed up, replicated and watched with the rest.
//!
//! A row of the [contract](punctual_core::store) is two rows here: `names` has what never changes (key, group, body), `rows`
//! what does (table, time, state), so that a change costs little. Counts are kept as a snapshot (`tallies`) and what each
//! commit adds to it (`deltas`). `shards`, `nodes` and `cluster` say who is there, who owns what, and what all share. The
//! statements are files under `sql/`; docs/stores/postgres.md is for those who run it.
//!
//! ```no_run
//! use punctual_postgres::{Config, Database, PostgresStore};
//!
//! let config = Config::new("postgres://punctual:secret@localhost/tasks?sslmode=verify-full");
//! let store = PostgresStore::open(config)?;
//! println!("{store}"); // PostgreSQL 15.13 at localhost:5432/tasks, schema punctual; …
//! # Ok::<_, punctual_postgres::OpenError>(())
//! ```

mod aside;
mod background;
mod check;
mod column;
mod commit;
mod contents;
mod courier;
mod draft;
mod error;
mod layout;
mod membership;
mod migrate;
mod number;
mod pool;
mod read;
mod server;
mod session;
mod statement;
mod store;
mod target;
mod tls;
mod vacuum;

pub use punctual_database::{Config, Contents, Database, Migrated, OpenError, ShardContents, Status};
pub use store::PostgresStore;
