//! Who is measured on which database, and what a connection to each can do. All get the same bodies, and have them
//! durable as their database is set before they confirm.

mod maria;
mod pgmq;
mod punctual;
mod raw;

use std::io;

use punctual_node::Node;

use super::engine::{Engine, Kind};
use crate::server::contestants::{postgres as table, redis as sorted_set};

pub use punctual::{Keeping, start};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contestant {
    /// The store through a whole node in this process.
    Punctual,
    /// The same bytes put into the same tables, with nothing around it.
    Raw,
    /// PGMQ's tables and statements.
    Pgmq,
    /// A table of tasks and SKIP LOCKED, the way many begin: what is done is deleted, and nothing is kept of it.
    Table,
    /// A sorted set, a list, and a script that moves what is due from one to the other.
    SortedSet,
    /// A peer that has a runner of its own.
    Script(Script),
}

/// A peer from npm, which runs in a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    GraphileWorker,
    PgBoss,
    BullMq,
}

impl Contestant {
    /// In the order of the table.
    pub fn on(kind: Kind) -> &'static [Contestant] {
        use Contestant::{Pgmq, Punctual, Raw, Script as Peer, SortedSet, Table};
        match kind {
            Kind::Postgres => &[Punctual, Raw, Pgmq, Table, Peer(Script::GraphileWorker), Peer(Script::PgBoss)],
            Kind::Maria => &[Punctual, Raw],
            Kind::RedisAlways | Kind::RedisEverySecond => &[Punctual, SortedSet, Peer(Script::BullMq)],
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Contestant::Punctual => "punctual",
            Contestant::Raw => "raw",
            Contestant::Pgmq => "pgmq",
            Contestant::Table => "table",
            Contestant::SortedSet => "sorted-set",
            Contestant::Script(script) => script.name(),
        }
    }

    pub fn heading(self) -> &'static str {
        match self {
            Contestant::Punctual => "Punctual",
            Contestant::Raw => "raw inserts",
            Contestant::Pgmq => "PGMQ's statements",
            Contestant::Table => "table, SKIP LOCKED",
            Contestant::SortedSet => "sorted set, mover",
            Contestant::Script(script) => script.heading(),
        }
    }

    /// Makes what it needs in an empty database.
    pub async fn furnish(self, engine: &Engine) -> io::Result<()> {
        match self {
            Contestant::Pgmq => pgmq::furnish(&engine.url()).await,
            Contestant::Table => table::furnish(engine.port()).await,
            Contestant::Punctual | Contestant::Raw | Contestant::SortedSet | Contestant::Script(_) => Ok(()),
        }
    }

    pub async fn connect(self, engine: &Engine, node: Option<&Node>) -> io::Result<Client> {
        Ok(match (self, engine, node) {
            (Contestant::Punctual, _, Some(node)) => Client::Punctual(punctual::Client::new(node.handle())),
            (Contestant::Raw, Engine::Postgres(_), _) => {
                Client::Raw(Box::new(raw::Client::connect(&engine.url()).await?))
            }
            (Contestant::Raw, Engine::Maria(_), _) => Client::RawMaria(maria::Client::connect(&engine.url()).await?),
            (Contestant::Pgmq, ..) => Client::Pgmq(Box::new(pgmq::Client::connect(&engine.url()).await?)),
            (Contestant::Table, ..) => Client::Table(Box::new(table::Client::connect(engine.port()).await?)),
            (Contestant::SortedSet, ..) => Client::SortedSet(sorted_set::Client::connect(engine.port()).await?),
            _ => return Err(io::Error::other(format!("{} takes no connections here", self.heading()))),
        })
    }
}

impl Script {
    pub fn name(self) -> &'static str {
        match self {
            Script::GraphileWorker => "graphile-worker",
            Script::PgBoss => "pg-boss",
            Script::BullMq => "bullmq",
        }
    }

    pub fn heading(self) -> &'static str {
        match self {
            Script::GraphileWorker => "graphile-worker",
            Script::PgBoss => "pg-boss",
            Script::BullMq => "BullMQ",
        }
    }
}

/// Moves what is due, for a contestant that leaves this to its users, until it is aborted.
pub async fn attend(contestant: Contestant, port: u16) -> io::Result<()> {
    match contestant {
        Contestant::SortedSet => sorted_set::keep_moving(port).await,
        _ => Ok(()),
    }
}

/// One connection, or one caller of a node.
pub enum Client {
    Punctual(punctual::Client),
    Raw(Box<raw::Client>),
    RawMaria(maria::Client),
    Pgmq(Box<pgmq::Client>),
    Table(Box<table::Client>),
    SortedSet(sorted_set::Client),
}

impl Client {
    /// Tasks in one call, each due at a time in milliseconds since 1970; back when they are confirmed.
    pub async fn schedule(&mut self, due_ms: &[u64]) -> io::Result<()> {
        match (self, due_ms) {
            (Client::Punctual(client), _) => client.schedule(due_ms).await,
            (Client::Raw(client), _) => client.insert(due_ms).await,
            (Client::RawMaria(client), _) => client.insert(due_ms).await,
            (Client::Pgmq(client), _) => client.send(due_ms).await,
            (Client::Table(client), [due_ms]) => client.schedule(*due_ms).await,
            (Client::Table(client), _) => client.schedule_many(due_ms).await,
            (Client::SortedSet(client), _) => client.schedule_many(due_ms).await,
        }
    }

    /// Waits for due tasks; gives the due times that their bodies, now in hand, open with. May come back with none.
    pub async fn take(&mut self, at_most: usize) -> io::Result<Vec<u64>> {
        match self {
            Client::Punctual(client) => client.take(at_most).await,
            Client::Pgmq(client) => client.take(at_most).await,
            Client::Table(client) => client.take(at_most).await,
            Client::SortedSet(client) => client.take(at_most).await,
            Client::Raw(_) | Client::RawMaria(_) => Err(io::Error::other("raw inserts are all there is")),
        }
    }

    /// Acknowledges all that was taken last.
    pub async fn acknowledge(&mut self) -> io::Result<()> {
        match self {
            Client::Punctual(client) => client.acknowledge().await,
            Client::Pgmq(client) => client.acknowledge().await,
            Client::Table(client) => client.acknowledge().await,
            Client::SortedSet(client) => client.acknowledge().await,
            Client::Raw(_) | Client::RawMaria(_) => Err(io::Error::other("raw inserts are all there is")),
        }
    }
}
