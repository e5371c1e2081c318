//! How many schedules a second are confirmed, one at a time or in batches, none due while it is measured.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::contestants::{Client, Kind};
use crate::arena::crew::Crew;
use crate::arena::rate::{Rate, WARMING};
use crate::arena::running::Running;
use crate::arena::task::far_due;

/// How many tasks are in one request where they come in batches, and over how many connections these come.
pub const BATCH: usize = 500;
pub const BATCH_CONNECTIONS: usize = 8;

pub struct Load {
    pub connections: usize,
    /// How many tasks are in one request.
    pub together: usize,
    pub lasting: Duration,
    /// Ends it before its time.
    pub at_most: u64,
}

pub async fn rate(running: &Running<Kind>, load: &Load) -> io::Result<Rate> {
    let clients = running.connect(load.connections).await?;
    let (_, clients) = schedule(clients, load.together, WARMING, load.at_most / 10, far_due).await?;
    let work = schedule(clients, load.together, load.lasting, load.at_most, far_due);
    let (rate, _clients) = Rate::of(running, work).await?;
    Ok(rate)
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
