//! A contestant that runs: a private process on a free port of the loopback, its data in a fresh directory. Dropping
//! it kills the process and removes the directory.

use std::fs;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::time::sleep;

use super::Contestant;
use super::machine;
use super::plan::Plan;
use super::process::Process;

/// How often it is asked whether it answers yet.
const ASKED_EVERY: Duration = Duration::from_millis(5);

pub struct Running<K> {
    pub kind: K,
    program: PathBuf,
    pub port: u16,
    // Before the directory, so that it has ended when that is removed.
    process: Process,
    directory: TempDir,
}

impl<K: Contestant> Running<K> {
    pub async fn start<S>(kind: K, plan: &Plan<K, S>) -> io::Result<Running<K>> {
        let program = kind.program().map_err(io::Error::other)?;
        let directory = tempfile::Builder::new().prefix("punctual-bench-").tempdir_in(&plan.directory)?;
        kind.prepare(&program, directory.path())?;
        let port = machine::free_port();
        let process = Process::start(&kind.command(&program, directory.path(), port), &directory.path().join("log"))?;
        let mut running = Running { kind, program, port, process, directory };
        running.until(async |kind, port| kind.furnish(port).await).await?;
        Ok(running)
    }

    /// Kills it with -9, starts it again on what it left, and gives the time from the start until it is at work
    /// again.
    pub async fn kill_and_restart(&mut self) -> io::Result<Duration> {
        self.process.kill();
        let command = self.kind.command(&self.program, self.directory.path(), self.port);
        let started = Instant::now();
        self.process = Process::start(&command, &self.log())?;
        self.until(async |kind, port| kind.is_back(port).await).await?;
        Ok(started.elapsed())
    }

    pub async fn connect(&self, connections: usize) -> io::Result<Vec<K::Client>> {
        let mut clients = Vec::with_capacity(connections);
        for _ in 0..connections {
            clients.push(self.kind.connect(self.port).await?);
        }
        Ok(clients)
    }

    /// The memory when nothing has moved it for a while: servers and their allocators give it back in their own time.
    pub async fn settled_memory(&self, same_for: Duration) -> u64 {
        const AT_MOST: Duration = Duration::from_secs(90);
        self.process.settle().await;
        let started = Instant::now();
        let mut seen = (self.memory(), started);
        while seen.1.elapsed() < same_for && started.elapsed() < AT_MOST {
            sleep(Duration::from_millis(500)).await;
            let memory = self.memory();
            if memory.abs_diff(seen.0) > 1 << 20 {
                seen = (memory, Instant::now());
            }
        }
        self.memory()
    }

    fn memory(&self) -> u64 {
        self.kind.memory(&self.process)
    }

    pub fn cpu(&self) -> Duration {
        self.process.cpu()
    }

    /// Asks again and again until it answers, or two minutes.
    async fn until<Asked: Future<Output = io::Result<()>>>(&mut self, ask: impl Fn(K, u16) -> Asked) -> io::Result<()> {
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
