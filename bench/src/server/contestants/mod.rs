//! The contestants: how each is started on a directory and a port, and what a connection to it can do. All do the
//! same three things; the measurements know no more of them than this.

pub mod postgres;
mod punctual;
pub mod redis;
mod resp;

pub use punctual::{Client as HttpClient, answered};

use std::io;
use std::path::{Path, PathBuf};

use crate::arena::crew::Crew;
use crate::arena::process::Process;
use crate::arena::running::Running;
use crate::arena::task::far_due;
use crate::arena::{self, Contestant, machine};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Punctual,
    RedisEverySecond,
    RedisAlways,
    Postgres,
}

impl Contestant for Kind {
    type Client = Client;

    const ALL: &'static [Kind] = &[Kind::Punctual, Kind::RedisEverySecond, Kind::RedisAlways, Kind::Postgres];

    fn name(self) -> &'static str {
        match self {
            Kind::Punctual => "punctual",
            Kind::RedisEverySecond => "redis-everysec",
            Kind::RedisAlways => "redis-always",
            Kind::Postgres => "postgres",
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Kind::Punctual => "Punctual",
            Kind::RedisEverySecond => "Redis, synced every second",
            Kind::RedisAlways => "Redis, synced always",
            Kind::Postgres => "PostgreSQL",
        }
    }

    fn program(self) -> Result<PathBuf, String> {
        match self {
            Kind::Punctual => arena::punctual::program(),
            Kind::RedisEverySecond | Kind::RedisAlways => machine::program("redis-server", redis::program),
            Kind::Postgres => machine::program("postgresql", postgres::program),
        }
    }

    fn prepare(self, program: &Path, directory: &Path) -> io::Result<()> {
        match self {
            Kind::Postgres => postgres::prepare(program, directory),
            Kind::Punctual | Kind::RedisEverySecond | Kind::RedisAlways => Ok(()),
        }
    }

    fn command(self, program: &Path, directory: &Path, port: u16) -> Vec<String> {
        match self {
            Kind::Punctual => arena::punctual::command(program, directory, port),
            Kind::RedisEverySecond => redis::command(program, directory, port, "everysec"),
            Kind::RedisAlways => redis::command(program, directory, port, "always"),
            Kind::Postgres => postgres::command(program, directory, port),
        }
    }

    async fn furnish(self, port: u16) -> io::Result<()> {
        match self {
            Kind::Punctual => punctual::is_ready(port).await,
            Kind::RedisEverySecond | Kind::RedisAlways => redis::is_ready(port).await,
            Kind::Postgres => postgres::furnish(port).await,
        }
    }

    /// When it has confirmed another task.
    async fn is_back(self, port: u16) -> io::Result<()> {
        self.connect(port).await?.schedule(&[far_due()]).await
    }

    async fn connect(self, port: u16) -> io::Result<Client> {
        Ok(match self {
            Kind::Punctual => Client::Punctual(punctual::Client::connect(port).await?),
            Kind::RedisEverySecond | Kind::RedisAlways => Client::Redis(redis::Client::connect(port).await?),
            Kind::Postgres => Client::Postgres(Box::new(postgres::Client::connect(port).await?)),
        })
    }

    /// Of PostgreSQL all processes, what they share counted once.
    fn memory(self, process: &Process) -> u64 {
        match self {
            Kind::Postgres => process.proportional(),
            Kind::Punctual | Kind::RedisEverySecond | Kind::RedisAlways => process.resident(),
        }
    }
}

/// Does what a contestant leaves to its users when tasks fall due.
pub fn attend(running: &Running<Kind>, crew: &mut Crew<()>) {
    if matches!(running.kind, Kind::RedisEverySecond | Kind::RedisAlways) {
        crew.add(redis::keep_moving(running.port));
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
