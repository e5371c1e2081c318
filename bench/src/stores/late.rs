//! How late deliveries are under a steady load.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::time::sleep_until;

use super::contestants::Client;
use super::stage::Stage;
use crate::arena::crew::Crew;
use crate::arena::tally::{PATIENCE, Tally};
use crate::arena::task::{now_ms, now_us};

const SCHEDULERS: usize = 16;
const CONSUMERS: usize = 16;
const AT_MOST: usize = 100;
const DELAYS_MS: Range<u64> = 500..4_000;

/// Microseconds from the due time of each task until a consumer had its body in hand.
pub async fn lateness(stage: &Stage, rate: u64, lasting: Duration) -> io::Result<Histogram<u64>> {
    // What comes within a millisecond is handed in together, so that scheduling does not compete for the cores.
    let together = (rate / 1_000).max(1);
    let requests = (rate * lasting.as_millis() as u64 / 1_000 / together).max(1);
    let tally = Tally::new(requests * together);
    let mut crew = Crew::new();
    for client in stage.connect(CONSUMERS).await? {
        crew.add(consume(client, tally.clone()));
    }
    let schedulers = stage.connect(SCHEDULERS).await?;
    let started = Instant::now();
    for (first, mut client) in (0..requests).zip(schedulers) {
        crew.add(async move {
            for request in (first..requests).step_by(SCHEDULERS) {
                sleep_until((started + lasting.mul_f64(request as f64 / requests as f64)).into()).await;
                let due: Vec<u64> = (0..together).map(|_| now_ms() + fastrand::u64(DELAYS_MS)).collect();
                client.schedule(&due).await?;
            }
            let took = started.elapsed();
            if first == 0 && took > lasting + lasting / 20 {
                eprintln!("the load of {rate} a second was not reached: {took:.1?} instead of {lasting:.1?}");
            }
            Ok(())
        });
    }
    let longest = lasting + Duration::from_millis(DELAYS_MS.end);
    tally.all_finished(&mut crew, longest + PATIENCE).await?;
    Ok(tally.late_us())
}

/// Takes and acknowledges for as long as it is let.
async fn consume(mut client: Client, tally: Arc<Tally>) -> io::Result<()> {
    loop {
        let due = client.take(AT_MOST).await?;
        let now = now_us();
        tally.came(due.iter().map(|due| Ok(now.saturating_sub(due * 1_000))))?;
        client.acknowledge().await?;
        tally.finished(due.len() as u64);
    }
}
