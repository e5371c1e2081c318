//! A PostgreSQL and some servers on it, as they are shipped.

use std::io;
use std::time::{Duration, Instant};

use punctual_engines::Postgres;
use punctual_node::shard_of;
use serde_json::{Value, json};

use super::caller::Caller;
use crate::arena::machine::free_port;
use crate::arena::process::Process;
use crate::arena::punctual;

/// What servers begin with on a database.
pub const SHARDS: u16 = 16;

/// As for the other measurements on it: no checkpoint falls into one.
const SETTINGS: &[&str] = &["shared_buffers=512MB", "max_wal_size=8GB", "checkpoint_timeout=1h", "max_connections=200"];

pub struct Center {
    pub postgres: Postgres,
    pub servers: Vec<Server>,
    directory: tempfile::TempDir,
}

pub struct Server {
    pub name: String,
    pub port: u16,
    pub process: Process,
}

impl Center {
    /// So many servers, of which each has its part.
    pub async fn start(servers: usize) -> io::Result<Center> {
        let postgres = Postgres::start_with(SETTINGS);
        let mut center = Center { postgres, servers: Vec::new(), directory: tempfile::tempdir()? };
        for number in 0..servers {
            let server = center.server(&format!("n{number}"))?;
            center.servers.push(server);
            center.settle().await?;
        }
        Ok(center)
    }

    fn server(&self, name: &str) -> io::Result<Server> {
        let program = punctual::program().map_err(io::Error::other)?;
        let directory = self.directory.path().join(name);
        std::fs::create_dir_all(&directory)?;
        let port = free_port();
        let mut command = punctual::command(&program, &directory, port);
        command.extend(["--store", &self.postgres.url(), "--node-name", name].map(str::to_owned));
        let process = Process::start(&command, &directory.join("log"))?;
        Ok(Server { name: name.to_owned(), port, process })
    }

    /// Starts a server again that was killed.
    pub fn revive(&mut self, number: usize) -> io::Result<()> {
        self.servers[number] = self.server(&self.servers[number].name.clone())?;
        Ok(())
    }

    /// Waits until all servers have their parts.
    pub async fn settle(&self) -> io::Result<()> {
        let least = usize::from(SHARDS) / self.servers.len();
        self.until("each server has its part", async |center| {
            for server in &center.servers {
                let owners = center.owners(server.port).await?;
                let part = |name: &str| owners.iter().filter(|owner| *owner == name).count();
                if !center.servers.iter().all(|server| part(&server.name) >= least) {
                    return Ok(false);
                }
            }
            Ok(true)
        })
        .await
    }

    /// Waits until something is so. Whoever does not answer yet is asked again.
    pub async fn until(&self, what: &str, is_so: impl AsyncFn(&Center) -> io::Result<bool>) -> io::Result<()> {
        let begun = Instant::now();
        loop {
            let seen = is_so(self).await;
            if matches!(seen, Ok(true)) {
                return Ok(());
            }
            if begun.elapsed() > Duration::from_secs(60) {
                return Err(io::Error::other(format!("not within a minute: {what} ({seen:?})")));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// By the shards' numbers: who has it, as a server knows.
    pub async fn owners(&self, port: u16) -> io::Result<Vec<String>> {
        let shards = Caller::connect(port).await?.get("/v1/shards").await?;
        let owner = |shard: &Value| shard["node"].as_str().unwrap_or_default().to_owned();
        Ok(shards["shards"].as_array().into_iter().flatten().map(owner).collect())
    }

    /// The shards that a server has.
    pub async fn part_of(&self, number: usize) -> io::Result<Vec<u16>> {
        let owners = self.owners(self.servers[number].port).await?;
        let name = &self.servers[number].name;
        Ok((0..SHARDS).filter(|shard| owners.get(usize::from(*shard)) == Some(name)).collect())
    }
}

/// Ids whose tasks are in one of these shards, each another one.
pub struct Ids {
    shards: Vec<u16>,
    last: u64,
}

impl Ids {
    pub fn new(shards: Vec<u16>) -> Ids {
        Ids { shards, last: 0 }
    }

    pub fn next(&mut self) -> String {
        loop {
            self.last += 1;
            let id = format!("{}-{}", self.last, fastrand::u32(..));
            if self.shards.contains(&shard_of("orders", &id, SHARDS).0) {
                return id;
            }
        }
    }
}

/// A task of 200 bytes.
pub fn task(id: &str, due_ms: u64) -> Value {
    json!({ "topic": "orders", "id": id, "at": due_ms, "text": format!("{due_ms:0>200}") })
}
