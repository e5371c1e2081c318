//! Many tasks that wait for a far time: what each costs in memory, and how soon the server is back after kill -9.

use std::io;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::running::Running;
use super::scheduling::{BATCH, BATCH_CONNECTIONS, schedule};
use super::task::far_due;

pub struct Pending {
    /// Bytes of memory for each task, beyond the empty server's.
    pub loaded: f64,
    /// The same after the restart.
    pub restarted: f64,
    pub back_after: Duration,
}

pub async fn pending(running: &mut Running, tasks: u64) -> io::Result<Pending> {
    // The same connections stay open while the memory is looked at: to PostgreSQL each is a process, and what only
    // processes of the past have touched is not counted.
    let clients = running.connect(BATCH_CONNECTIONS).await?;
    let empty = settled_memory(running).await;
    let each = |memory: u64| (memory as f64 - empty as f64) / tasks as f64;
    let (_, clients) = schedule(clients, BATCH, Duration::MAX, tasks, far_due).await?;
    let loaded = settled_memory(running).await;
    drop(clients);
    let back_after = running.kill_and_restart().await?;
    let _clients = running.connect(BATCH_CONNECTIONS).await?;
    let restarted = settled_memory(running).await;
    Ok(Pending { loaded: each(loaded), restarted: each(restarted), back_after })
}

/// The memory when nothing moves it any more: servers and their allocators give it back in their own time.
async fn settled_memory(running: &Running) -> u64 {
    const SAME_FOR: Duration = Duration::from_secs(12);
    const AT_MOST: Duration = Duration::from_secs(90);
    running.settle().await;
    let started = Instant::now();
    let mut seen = (running.memory(), started);
    while seen.1.elapsed() < SAME_FOR && started.elapsed() < AT_MOST {
        sleep(Duration::from_millis(500)).await;
        let memory = running.memory();
        if memory.abs_diff(seen.0) > 1 << 20 {
            seen = (memory, Instant::now());
        }
    }
    running.memory()
}
