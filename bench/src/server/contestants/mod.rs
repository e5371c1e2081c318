//! The contestants: how each is started on a directory and a port, and what a connection to it can do. All do the
//! same three things; the measurements know no more of them than this.

mod postgres;
mod punctual;
mod redis;
mod resp;

use std::io;
use std::path::{Path, PathBuf};

use super::machine;

pub use redis::keep_moving;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Punctual,
    RedisEverySecond,
    RedisAlways,
    Postgres,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Punctual, Kind::RedisEverySecond, Kind::RedisAlways, Kind::Postgres];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Punctual => "punctual",
            Kind::RedisEverySecond => "redis-everysec",
            Kind::RedisAlways => "redis-always",
            Kind::Postgres => "postgres",
        }
    }

    pub fn heading(self) -> &'static str {
        match self {
            Kind::Punctual => "Punctual",
            Kind::RedisEverySecond => "Redis, synced every second",
            Kind::RedisAlways => "Redis, synced always",
            Kind::Postgres => "PostgreSQL",
        }
    }

    /// The program, installed if it is a peer's and missing.
    pub fn program(self) -> Result<PathBuf, String> {
        match self {
            Kind::Punctual => punctual::program(),
            Kind::RedisEverySecond | Kind::RedisAlways => machine::program("redis-server", redis::program),
            Kind::Postgres => machine::program("postgresql", postgres::program),
        }
    }

    /// Makes an empty directory ready for the first start.
    pub fn prepare(self, program: &Path, directory: &Path) -> io::Result<()> {
        match self {
            Kind::Postgres => postgres::prepare(program, directory),
            Kind::Punctual | Kind::RedisEverySecond | Kind::RedisAlways => Ok(()),
        }
    }

    pub fn command(self, program: &Path, directory: &Path, port: u16) -> Vec<String> {
        match self {
            Kind::Punctual => punctual::command(program, directory, port),
            Kind::RedisEverySecond => redis::command(program, directory, port, "everysec"),
            Kind::RedisAlways => redis::command(program, directory, port, "always"),
            Kind::Postgres => postgres::command(program, directory, port),
        }
    }

    /// What is done once over the wire when the server answers for the first time; fails while it does not answer.
    pub async fn furnish(self, port: u16) -> io::Result<()> {
        match self {
            Kind::Punctual => punctual::is_ready(port).await,
            Kind::RedisEverySecond | Kind::RedisAlways => redis::is_ready(port).await,
            Kind::Postgres => postgres::furnish(port).await,
        }
    }

    pub async fn connect(self, port: u16) -> io::Result<Client> {
        Ok(match self {
            Kind::Punctual => Client::Punctual(punctual::Client::connect(port).await?),
            Kind::RedisEverySecond | Kind::RedisAlways => Client::Redis(redis::Client::connect(port).await?),
            Kind::Postgres => Client::Postgres(Box::new(postgres::Client::connect(port).await?)),
        })
    }

    pub fn needs_a_mover(self) -> bool {
        matches!(self, Kind::RedisEverySecond | Kind::RedisAlways)
    }
}

/// One connection.
pub enum Client {
    Punctual(punctual::Client),
    Redis(redis::Client),
    Postgres(Box<postgres::Client>),
}

impl Client {
    /// Tasks in one request, each due at a time in milliseconds since 1970; back when the server has confirmed them. A
    /// single one goes the way that single ones go.
    pub async fn schedule(&mut self, due_ms: &[u64]) -> io::Result<()> {
        match (self, due_ms) {
            (Client::Punctual(client), [due_ms]) => client.schedule(*due_ms).await,
            (Client::Punctual(client), _) => client.schedule_many(due_ms).await,
            (Client::Redis(client), _) => client.schedule_many(due_ms).await,
            (Client::Postgres(client), [due_ms]) => client.schedule(*due_ms).await,
            (Client::Postgres(client), _) => client.schedule_many(due_ms).await,
        }
    }

    /// Waits for due tasks; gives the due times that their bodies, now in hand, open with. May come back with none.
    pub async fn take(&mut self, at_most: usize) -> io::Result<Vec<u64>> {
        match self {
            Client::Punctual(client) => client.take(at_most).await,
            Client::Redis(client) => client.take(at_most).await,
            Client::Postgres(client) => client.take(at_most).await,
        }
    }

    /// Acknowledges all that was taken last.
    pub async fn acknowledge(&mut self) -> io::Result<()> {
        match self {
            Client::Punctual(client) => client.acknowledge().await,
            Client::Redis(client) => client.acknowledge().await,
            Client::Postgres(client) => client.acknowledge().await,
        }
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("the directory's name is a text").to_owned()
}
