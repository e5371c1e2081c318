//! Where servers are measured beside each other: the same work over the loopback, each a private process with its data
//! on disk, in turns, one at a time. This process is the load; it runs on one thread for all. What the work is, and
//! who takes part, each comparison says for itself.

pub mod crew;
pub mod machine;
pub mod plan;
pub mod postgres;
pub mod process;
pub mod punctual;
pub mod rate;
pub mod running;
pub mod tally;
pub mod task;
pub mod wire;

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::memory;
use plan::Plan;
use process::Process;

/// How a contestant is started on a directory and a port, and reached.
pub trait Contestant: Copy + 'static {
    /// One connection.
    type Client;

    /// In the order of the table.
    const ALL: &'static [Self];

    fn name(self) -> &'static str;

    fn heading(self) -> &'static str;

    /// The program, installed if it is a peer's and missing.
    fn program(self) -> Result<PathBuf, String>;

    /// The option that makes the program say its version.
    fn version_option(self) -> &'static str {
        "--version"
    }

    /// Makes an empty directory ready for the first start.
    fn prepare(self, _program: &Path, _directory: &Path) -> io::Result<()> {
        Ok(())
    }

    fn command(self, program: &Path, directory: &Path, port: u16) -> Vec<String>;

    /// What is done once over the wire when the server answers for the first time; fails while it does not answer.
    async fn furnish(self, port: u16) -> io::Result<()>;

    /// Fails while a server that was started again does not do its work.
    async fn is_back(self, port: u16) -> io::Result<()>;

    async fn connect(self, port: u16) -> io::Result<Self::Client>;

    /// The memory of the server in bytes.
    fn memory(self, process: &Process) -> u64 {
        process.resident()
    }
}

/// Runs a whole comparison between the facts about the machine. It prints its own tables.
pub fn run<K: Contestant, S>(
    plan: &Plan<K, S>,
    comparison: impl Future<Output = io::Result<()>>,
) -> Result<(), String> {
    memory::stop_counting();
    println!("{}", machine::description());
    let mut versions: Vec<String> = Vec::new();
    for kind in &plan.kinds {
        versions.push(machine::version(&kind.program()?, kind.version_option()));
    }
    versions.dedup();
    println!("{}", versions.join("; "));
    println!("a small write and fdatasync take {} before the run\n", millis(machine::sync_latency(&plan.directory)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("there is no runtime: {error}"))?;
    let ended = runtime.block_on(async {
        tokio::select! {
            () = interrupted() => Err((130, "interrupted".to_owned())),
            ended = comparison => ended.map_err(|error| (1, error.to_string())),
        }
    });
    drop(runtime);
    if let Err((code, why)) = ended {
        // All servers are gone by now and their directories too.
        eprintln!("{why}");
        std::process::exit(code);
    }
    println!("a small write and fdatasync take {} after the run\n", millis(machine::sync_latency(&plan.directory)));
    Ok(())
}

async fn interrupted() {
    let mut interrupt = signal(SignalKind::interrupt()).expect("signals can be listened to");
    let mut terminate = signal(SignalKind::terminate()).expect("signals can be listened to");
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// Round by round, not one contestant after the other: a slow moment of the disk then meets all of them. Gives what
/// was measured, for each contestant; the first error ends it.
pub async fn turns<K: Contestant, S, T, E, Turn: Future<Output = Result<T, E>>>(
    plan: &Plan<K, S>,
    rounds: usize,
    turn: impl Fn(K) -> Turn,
) -> Result<Vec<Vec<T>>, E> {
    let mut measured: Vec<Vec<T>> = plan.kinds.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (kind, results) in plan.kinds.iter().zip(&mut measured) {
            results.push(turn(*kind).await?);
        }
    }
    Ok(measured)
}

pub fn median(mut results: Vec<f64>) -> Option<f64> {
    results.sort_unstable_by(f64::total_cmp);
    results.get(results.len() / 2).copied()
}

/// A path as a word of a command.
pub fn text(path: &Path) -> String {
    path.to_str().expect("the directory's name is a text").to_owned()
}

fn millis(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1e3)
}
