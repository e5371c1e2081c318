//! A contestant that runs: a private process on a free port of the loopback, its data in a fresh directory. Dropping
//! it kills the process and removes the directory.

use std::fs;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::time::sleep;

use super::contestants::{Client, Kind, keep_moving};
use super::crew::Crew;
use super::machine;
use super::plan::Plan;
use super::process::Process;
use super::task;

/// How often it is asked whether it answers yet.
const ASKED_EVERY: Duration = Duration::from_millis(5);

pub struct Running {
    pub kind: Kind,
    program: PathBuf,
    port: u16,
    // Before the directory, so that it has ended when that is removed.
    process: Process,
    directory: TempDir,
}

impl Running {
    pub async fn start(kind: Kind, plan: &Plan) -> io::Result<Running> {
        let program = kind.program().map_err(io::Error::other)?;
        let directory = tempfile::Builder::new().prefix("punctual-bench-").tempdir_in(&plan.directory)?;
        kind.prepare(&program, directory.path())?;
        let port = machine::free_port();
        let process = Process::start(&kind.command(&program, directory.path(), port), &directory.path().join("log"))?;
        let mut running = Running { kind, program, port, process, directory };
        running.until(async |kind, port| kind.furnish(port).await).await?;
        Ok(running)
    }

    /// Kills it with -9, starts it again on what it left, and gives the time from the start until it has confirmed
    /// another task.
    pub async fn kill_and_restart(&mut self) -> io::Result<Duration> {
        self.process.kill();
        let command = self.kind.command(&self.program, self.directory.path(), self.port);
        let started = Instant::now();
        self.process = Process::start(&command, &self.log())?;
        self.until(async |kind, port| kind.connect(port).await?.schedule(&[task::far_due()]).await).await?;
        Ok(started.elapsed())
    }

    pub async fn connect(&self, connections: usize) -> io::Result<Vec<Client>> {
        let mut clients = Vec::with_capacity(connections);
        for _ in 0..connections {
            clients.push(self.kind.connect(self.port).await?);
        }
        Ok(clients)
    }

    /// Does what the contestant leaves to its users when tasks fall due.
    pub fn attend(&self, crew: &mut Crew<()>) {
        if self.kind.needs_a_mover() {
            crew.add(keep_moving(self.port));
        }
    }

    /// The memory of the server in bytes; of PostgreSQL all processes, what they share counted once.
    pub fn memory(&self) -> u64 {
        match self.kind {
            Kind::Postgres => self.process.proportional(),
            Kind::Punctual | Kind::RedisEverySecond | Kind::RedisAlways => self.process.resident(),
        }
    }

    pub fn cpu(&self) -> Duration {
        self.process.cpu()
    }

    pub async fn settle(&self) {
        self.process.settle().await;
    }

    /// Asks again and again until it answers, or two minutes.
    async fn until<Asked: Future<Output = io::Result<()>>>(
        &mut self,
        ask: impl Fn(Kind, u16) -> Asked,
    ) -> io::Result<()> {
        let started = Instant::now();
        loop {
            let Err(error) = ask(self.kind, self.port).await else { return Ok(()) };
            if self.process.has_ended() || started.elapsed() > Duration::from_secs(120) {
                let log = fs::read_to_string(self.log()).unwrap_or_default();
                let tail: Vec<&str> = log.lines().rev().take(10).collect();
                let tail: Vec<&str> = tail.into_iter().rev().collect();
                return Err(io::Error::other(format!("it does not answer: {error}; its log:\n{}", tail.join("\n"))));
            }
            sleep(ASKED_EVERY).await;
        }
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }
}
