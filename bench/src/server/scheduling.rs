//! How many schedules a second are confirmed, one at a time or in batches, none due while it is measured.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::contestants::Client;
use super::crew::Crew;
use super::machine;
use super::running::Running;
use super::task::far_due;

/// How many tasks are in one request where they come in batches, and over how many connections these come.
pub const BATCH: usize = 500;
pub const BATCH_CONNECTIONS: usize = 8;

/// Not counted: the first requests find cold caches and, in PostgreSQL, statements without a plan.
const WARMING: Duration = Duration::from_millis(500);

pub struct Load {
    pub connections: usize,
    /// How many tasks are in one request.
    pub together: usize,
    pub lasting: Duration,
    /// Ends it before its time.
    pub at_most: u64,
}

pub struct Rate {
    pub a_second: f64,
    pub server_cores: f64,
    pub load_cores: f64,
}

pub async fn rate(running: &Running, load: &Load) -> io::Result<Rate> {
    let clients = running.connect(load.connections).await?;
    let (_, clients) = schedule(clients, load.together, WARMING, load.at_most / 10, far_due).await?;
    let cpu = (running.cpu(), machine::own_cpu());
    let started = Instant::now();
    let (scheduled, _) = schedule(clients, load.together, load.lasting, load.at_most, far_due).await?;
    let took = started.elapsed().as_secs_f64();
    Ok(Rate {
        a_second: scheduled as f64 / took,
        server_cores: running.cpu().saturating_sub(cpu.0).as_secs_f64() / took,
        load_cores: (machine::own_cpu() - cpu.1).as_secs_f64() / took,
    })
}

/// Schedules over all connections until a time or a number is reached; gives how many it were, and the connections back.
pub async fn schedule(
    clients: Vec<Client>,
    together: usize,
    lasting: Duration,
    at_most: u64,
    due: impl Fn() -> u64 + Clone + Send + 'static,
) -> io::Result<(u64, Vec<Client>)> {
    let begun = Arc::new(AtomicU64::new(0));
    let mut crew = Crew::new();
    let started = Instant::now();
    for mut client in clients {
        let (begun, due) = (begun.clone(), due.clone());
        crew.add(async move {
            let mut confirmed = 0;
            while started.elapsed() < lasting && begun.fetch_add(together as u64, Relaxed) < at_most {
                let due: Vec<u64> = (0..together).map(|_| due()).collect();
                client.schedule(&due).await?;
                confirmed += together as u64;
            }
            Ok((confirmed, client))
        });
    }
    let (confirmed, clients): (Vec<u64>, _) = crew.finish().await?.into_iter().unzip();
    Ok((confirmed.into_iter().sum(), clients))
}
