//! PostgreSQL as a table of tasks, the usual way: consumers mark what is due with SKIP LOCKED and delete it when done,
//! and look again every few milliseconds while nothing is. As it comes, so every commit is synced.

use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;

use crate::arena::postgres::{self, take, texts};
use crate::arena::task::{Bodies, now_ms};
use crate::arena::text;

const TABLE: &str = "CREATE TABLE task (
    id    bigserial PRIMARY KEY,
    topic text      NOT NULL,
    due   bigint    NOT NULL,
    body  text      NOT NULL,
    taken boolean   NOT NULL DEFAULT false
);
CREATE INDEX task_due ON task (due) WHERE NOT taken;";

const SCHEDULE: &str = "INSERT INTO task (topic, due, body) VALUES ('orders', $1, $2)";

const SCHEDULE_MANY: &str = "INSERT INTO task (topic, due, body)
    SELECT 'orders', due, body FROM unnest($1::bigint[], $2::text[]) AS new (due, body)";

/// The ids go through an array because the planner may read the whole table for a join, not knowing how few they are.
const TAKE: &str = "UPDATE task SET taken = true WHERE id = ANY (ARRAY (
    SELECT id FROM task WHERE NOT taken AND due <= $1 ORDER BY due LIMIT $2 FOR UPDATE SKIP LOCKED
)) RETURNING id, body";

const ACKNOWLEDGE: &str = "DELETE FROM task WHERE id = ANY ($1)";

/// The newest that is installed.
pub fn program() -> Option<PathBuf> {
    let entries = fs::read_dir("/usr/lib/postgresql").ok()?;
    let version = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = entries.filter_map(|entry| Some(entry.ok()?.path())).max_by_key(version)?;
    Some(newest.join("bin/postgres")).filter(|program| program.is_file())
}

pub fn prepare(program: &Path, directory: &Path) -> io::Result<()> {
    let mut initdb = vec![text(&program.with_file_name("initdb"))];
    initdb.extend(["-A", "trust", "-U", "postgres", "--no-sync", "-D"].map(str::to_owned));
    initdb.push(text(&directory.join("d")));
    if rustix::process::geteuid().is_root() {
        let passwd = fs::read_to_string("/etc/passwd")?;
        let fields = passwd.lines().find_map(|line| line.strip_prefix("postgres:x:"));
        let ids: Vec<u32> =
            fields.into_iter().flat_map(|fields| fields.split(':')).map_while(|id| id.parse().ok()).collect();
        let [user, group] = ids[..] else { return Err(io::Error::other("there is no user postgres")) };
        chown(directory, Some(user), Some(group))?;
    }
    let command = as_its_user(initdb);
    let output = Command::new(&command[0]).args(&command[1..]).current_dir("/").output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("initdb: {}", String::from_utf8_lossy(&output.stderr)))),
    }
}

pub fn command(program: &Path, directory: &Path, port: u16) -> Vec<String> {
    let mut command =
        vec![text(program), "-D".to_owned(), text(&directory.join("d")), "-p".to_owned(), port.to_string()];
    command.extend(["-c".to_owned(), "listen_addresses=127.0.0.1".to_owned()]);
    command.extend(["-c".to_owned(), format!("unix_socket_directories={}", text(directory))]);
    as_its_user(command)
}

/// It refuses to run as root.
fn as_its_user(command: Vec<String>) -> Vec<String> {
    if !rustix::process::geteuid().is_root() {
        return command;
    }
    let setpriv = ["setpriv", "--pdeathsig", "KILL", "--reuid=postgres", "--regid=postgres", "--init-groups"];
    setpriv.map(str::to_owned).into_iter().chain(command).collect()
}

pub async fn furnish(port: u16) -> io::Result<()> {
    connect(port).await?.batch_execute(TABLE).await.map_err(io::Error::other)
}

pub struct Client {
    client: tokio_postgres::Client,
    schedule: Statement,
    schedule_many: Statement,
    take: Statement,
    acknowledge: Statement,
    bodies: Bodies,
    taken: Vec<i64>,
}

impl Client {
    pub async fn connect(port: u16) -> io::Result<Client> {
        let client = connect(port).await?;
        let prepare = async |statement: &str| client.prepare(statement).await.map_err(io::Error::other);
        Ok(Client {
            schedule: prepare(SCHEDULE).await?,
            schedule_many: prepare(SCHEDULE_MANY).await?,
            take: prepare(TAKE).await?,
            acknowledge: prepare(ACKNOWLEDGE).await?,
            bodies: Bodies::new(),
            taken: Vec::new(),
            client,
        })
    }

    pub async fn schedule(&mut self, due_ms: u64) -> io::Result<()> {
        let body = texts(&mut self.bodies, &[due_ms]);
        self.execute(&self.schedule, &[&(due_ms as i64), &body[0]]).await
    }

    pub async fn schedule_many(&mut self, due_ms: &[u64]) -> io::Result<()> {
        let bodies = texts(&mut self.bodies, due_ms);
        let due: Vec<i64> = due_ms.iter().map(|due| *due as i64).collect();
        self.execute(&self.schedule_many, &[&due, &bodies]).await
    }

    pub async fn take(&mut self, at_most: usize) -> io::Result<Vec<u64>> {
        let taken = take(&self.client, &self.take, || vec![now_ms() as i64, at_most as i64]).await?;
        self.taken = taken.numbers;
        Ok(taken.due_ms)
    }

    pub async fn acknowledge(&mut self) -> io::Result<()> {
        let taken = std::mem::take(&mut self.taken);
        self.execute(&self.acknowledge, &[&taken]).await
    }

    async fn execute(&self, statement: &Statement, values: &[&(dyn ToSql + Sync)]) -> io::Result<()> {
        self.client.execute(statement, values).await.map(drop).map_err(io::Error::other)
    }
}

async fn connect(port: u16) -> io::Result<tokio_postgres::Client> {
    postgres::connect(&format!("host=127.0.0.1 port={port} user=postgres dbname=postgres")).await
}
