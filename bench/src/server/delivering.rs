//! How late deliveries are under a steady load, and how long a herd that is due at once takes.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::time::{sleep, sleep_until};

use super::contestants::{Client, Kind, attend};
use super::scheduling::{BATCH, BATCH_CONNECTIONS, schedule};
use crate::arena::crew::Crew;
use crate::arena::running::Running;
use crate::arena::tally::{PATIENCE, Tally};
use crate::arena::task::{now_ms, now_us};

const SCHEDULERS: usize = 16;
const CONSUMERS: usize = 16;

/// The delays of the steady load.
const DELAYS_MS: Range<u64> = 1_000..10_000;

/// Microseconds from the due time of each task until a consumer had its body in hand.
pub async fn lateness(running: &Running<Kind>, rate: u64, lasting: Duration) -> io::Result<Histogram<u64>> {
    // What comes within a millisecond is handed in together, so that scheduling does not compete for the cores.
    let together = (rate / 1_000).max(1);
    let requests = rate * lasting.as_secs() / together;
    let mut crew = Crew::new();
    let tally = add_consumers(running, &mut crew, requests * together, 100).await?;
    let schedulers = running.connect(SCHEDULERS).await?;
    let started = Instant::now();
    for (first, mut client) in (0..requests).zip(schedulers) {
        crew.add(async move {
            for request in (first..requests).step_by(SCHEDULERS) {
                sleep_until((started + lasting * request as u32 / requests as u32).into()).await;
                let due: Vec<u64> = (0..together).map(|_| now_ms() + fastrand::u64(DELAYS_MS)).collect();
                client.schedule(&due).await?;
            }
            let took = started.elapsed();
            if took > lasting + lasting / 20 {
                eprintln!("the load of {rate} a second was not reached: {took:.1?} instead of {lasting:.1?}");
            }
            Ok(())
        });
    }
    let longest = lasting + Duration::from_millis(DELAYS_MS.end);
    tally.all_finished(&mut crew, longest + PATIENCE).await?;
    Ok(tally.late_us())
}

/// The time from the one millisecond in which all are due until the last was acknowledged.
pub async fn herd(running: &Running<Kind>, tasks: u64, ahead: Duration) -> io::Result<Duration> {
    let due = now_ms() + ahead.as_millis() as u64;
    let clients = running.connect(BATCH_CONNECTIONS).await?;
    schedule(clients, BATCH, Duration::MAX, tasks, move || due).await?;
    if now_ms() + 500 > due {
        return Err(io::Error::other(format!("scheduling the herd took longer than {ahead:?}")));
    }
    let mut crew = Crew::new();
    let tally = add_consumers(running, &mut crew, tasks, BATCH).await?;
    sleep(Duration::from_millis(due.saturating_sub(now_ms() + 100))).await;
    tally.all_finished(&mut crew, PATIENCE).await?;
    Ok(Duration::from_micros(now_us() - due * 1_000))
}

async fn add_consumers(
    running: &Running<Kind>,
    crew: &mut Crew<()>,
    expected: u64,
    at_most: usize,
) -> io::Result<Arc<Tally>> {
    let tally = Tally::new(expected);
    attend(running, crew);
    for client in running.connect(CONSUMERS).await? {
        crew.add(consume(client, at_most, tally.clone()));
    }
    Ok(tally)
}

/// Takes and acknowledges for as long as it is let.
async fn consume(mut client: Client, at_most: usize, tally: Arc<Tally>) -> io::Result<()> {
    loop {
        let due = client.take(at_most).await?;
        let now = now_us();
        if due.is_empty() {
            continue;
        }
        let late = |due: &u64| now.checked_sub(due * 1_000).ok_or_else(|| io::Error::other("a task came early"));
        tally.came(due.iter().map(late))?;
        client.acknowledge().await?;
        tally.finished(due.len() as u64);
    }
}
