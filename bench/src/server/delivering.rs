//! How late deliveries are under a steady load, and how long a herd that is due at once takes.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::sync::Notify;
use tokio::time::{sleep, sleep_until, timeout};

use super::contestants::Client;
use super::crew::Crew;
use super::running::Running;
use super::scheduling::{BATCH, BATCH_CONNECTIONS, schedule};
use super::task::{now_ms, now_us};

const SCHEDULERS: usize = 16;
const CONSUMERS: usize = 16;

/// The delays of the steady load.
const DELAYS_MS: Range<u64> = 1_000..10_000;

/// How long after the last due time it is waited for what is missing.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the consumers have done together.
struct Tally {
    late_us: Mutex<Histogram<u64>>,
    acknowledged: AtomicU64,
    expected: u64,
    all: Notify,
}

/// Microseconds from the due time of each task until a consumer had its body in hand.
pub async fn lateness(running: &Running, rate: u64, lasting: Duration) -> io::Result<Histogram<u64>> {
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
    all_delivered(&mut crew, &tally, longest + PATIENCE).await?;
    let late = tally.late_us.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(late)
}

/// The time from the one millisecond in which all are due until the last was acknowledged.
pub async fn herd(running: &Running, tasks: u64, ahead: Duration) -> io::Result<Duration> {
    let due = now_ms() + ahead.as_millis() as u64;
    let clients = running.connect(BATCH_CONNECTIONS).await?;
    schedule(clients, BATCH, Duration::MAX, tasks, move || due).await?;
    if now_ms() + 500 > due {
        return Err(io::Error::other(format!("scheduling the herd took longer than {ahead:?}")));
    }
    let mut crew = Crew::new();
    let tally = add_consumers(running, &mut crew, tasks, BATCH).await?;
    sleep(Duration::from_millis(due.saturating_sub(now_ms() + 100))).await;
    all_delivered(&mut crew, &tally, PATIENCE).await?;
    Ok(Duration::from_micros(now_us() - due * 1_000))
}

async fn add_consumers(
    running: &Running,
    crew: &mut Crew<()>,
    expected: u64,
    at_most: usize,
) -> io::Result<Arc<Tally>> {
    let tally = Arc::new(Tally {
        late_us: Mutex::new(Histogram::new(3).expect("three digits are allowed")),
        acknowledged: AtomicU64::new(0),
        expected,
        all: Notify::new(),
    });
    running.attend(crew);
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
        {
            let mut late = tally.late_us.lock().unwrap_or_else(PoisonError::into_inner);
            for due in &due {
                let micros = now.checked_sub(due * 1_000).ok_or_else(|| io::Error::other("a task came early"))?;
                late.record(micros).map_err(io::Error::other)?;
            }
        }
        client.acknowledge().await?;
        let count = due.len() as u64;
        if tally.acknowledged.fetch_add(count, Relaxed) + count >= tally.expected {
            tally.all.notify_one();
        }
    }
}

async fn all_delivered(crew: &mut Crew<()>, tally: &Tally, at_most: Duration) -> io::Result<()> {
    match timeout(at_most, crew.work_until(tally.all.notified())).await {
        Ok(done) => done,
        Err(_) => {
            let missing = tally.expected - tally.acknowledged.load(Relaxed);
            Err(io::Error::other(format!("{missing} of {} have not come", tally.expected)))
        }
    }
}
