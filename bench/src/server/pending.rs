//! Many tasks that wait for a far time: what each costs in memory, and how soon the server is back after kill -9.

use std::io;
use std::time::Duration;

use super::contestants::Kind;
use super::scheduling::{BATCH, BATCH_CONNECTIONS, schedule};
use crate::arena::running::Running;
use crate::arena::task::far_due;

/// How long the memory stays the same before it counts.
const SAME_FOR: Duration = Duration::from_secs(12);

pub struct Pending {
    /// Bytes of memory for each task, beyond the empty server's.
    pub loaded: f64,
    /// The same after the restart.
    pub restarted: f64,
    pub back_after: Duration,
}

pub async fn pending(running: &mut Running<Kind>, tasks: u64) -> io::Result<Pending> {
    // The same connections stay open while the memory is looked at: to PostgreSQL each is a process, and what only
    // processes of the past have touched is not counted.
    let clients = running.connect(BATCH_CONNECTIONS).await?;
    let empty = running.settled_memory(SAME_FOR).await;
    let each = |memory: u64| (memory as f64 - empty as f64) / tasks as f64;
    let (_, clients) = schedule(clients, BATCH, Duration::MAX, tasks, far_due).await?;
    let loaded = running.settled_memory(SAME_FOR).await;
    drop(clients);
    let back_after = running.kill_and_restart().await?;
    let _clients = running.connect(BATCH_CONNECTIONS).await?;
    let restarted = running.settled_memory(SAME_FOR).await;
    Ok(Pending { loaded: each(loaded), restarted: each(restarted), back_after })
}
