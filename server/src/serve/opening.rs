//! Opening the store, and waiting for one that is not there yet: where everything is started together, a database often
//! comes up after those who use it.

use std::time::{Duration, Instant};

use punctual_wire::Span;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::signals::Signals;
use crate::failure::Failure;
use crate::stores::{Opened, Opening, Storage, Unopened};

/// How long to wait before the next attempt.
const PAUSE: Duration = Duration::from_millis(500);

/// Opens the store; `None` if a signal says to stop before it could be reached.
pub fn open(
    storage: &dyn Storage,
    opening: &Opening<'_>,
    runtime: &Runtime,
    signals: &mut Signals,
) -> Result<Option<Opened>, Failure> {
    let (begun, wait) = (Instant::now(), opening.config.store.wait);
    let mut told = String::new();
    loop {
        let why = match storage.open(opening) {
            Ok(opened) => return Ok(Some(opened)),
            Err(Unopened::Failed(failure)) => return Err(failure),
            Err(Unopened::Away(why)) => why,
        };
        if begun.elapsed() + PAUSE > wait.as_duration() {
            return Err(gave_up(&why, wait));
        }
        if told != why {
            tracing::warn!(why, "the store cannot be reached yet; trying again for `store.wait` ({wait})");
            told = why;
        }
        let stop = runtime.block_on(async { timeout(PAUSE, signals.next_stop()).await });
        if let Ok(signal) = stop {
            tracing::info!(signal, "stopping: the store was not reached, and nothing was started");
            return Ok(None);
        }
    }
}

fn gave_up(why: &str, wait: Span) -> Failure {
    Failure::Failed(format!("the store cannot be reached: {why}; gave up after `store.wait` ({wait})"))
}
