//! Many jobs that wait for a far time: what each costs in memory, and how soon the server is back after kill -9.

use std::io;
use std::time::Duration;

use super::connection::Census;
use super::contestants::Kind;
use super::flow::{Flow, WINDOW, Work};
use crate::arena::running::Running;

pub struct Pending {
    /// Bytes of memory for each job, beyond the empty server's.
    pub loaded: f64,
    /// The same after the restart, and how long that took; none if it forgets.
    pub restarted: Option<(f64, Duration)>,
}

pub async fn pending(running: &mut Running<Kind>, jobs: u64, settled: Duration) -> io::Result<Pending> {
    let empty = running.settled_memory(settled).await;
    let each = |memory: u64| (memory as f64 - empty as f64) / jobs as f64;
    let flow = Flow { connections: 1, in_flight: WINDOW, work: Work::Puts };
    let (_, mut connections) = flow.through(running.connect(1).await?, Duration::MAX, jobs).await?;
    let all = Census { delayed: jobs, ..Census::default() };
    connections[0].holds(&all).await?;
    let loaded = each(running.settled_memory(settled).await);
    drop(connections);
    if !running.kind.remembers() {
        return Ok(Pending { loaded, restarted: None });
    }
    let back_after = running.kill_and_restart().await?;
    let mut connections = running.connect(1).await?;
    connections[0].holds(&all).await?;
    let restarted = each(running.settled_memory(settled).await);
    Ok(Pending { loaded, restarted: Some((restarted, back_after)) })
}
