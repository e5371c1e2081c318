//! The connections at work at the same time. The first that fails fails all; when the crew is dropped, all stop.

use std::future::Future;
use std::io;

use tokio::task::{JoinError, JoinSet};

pub struct Crew<T> {
    members: JoinSet<io::Result<T>>,
}

impl<T: Send + 'static> Crew<T> {
    pub fn new() -> Crew<T> {
        Crew { members: JoinSet::new() }
    }

    pub fn add(&mut self, work: impl Future<Output = io::Result<T>> + Send + 'static) {
        self.members.spawn(work);
    }

    /// Waits until all have done their work.
    pub async fn finish(mut self) -> io::Result<Vec<T>> {
        let mut results = Vec::new();
        while let Some(ended) = self.members.join_next().await {
            results.push(outcome(ended)?);
        }
        Ok(results)
    }

    /// Waits for something else while they work; who ends well before is not missed.
    pub async fn work_until(&mut self, event: impl Future<Output = ()>) -> io::Result<()> {
        tokio::pin!(event);
        loop {
            tokio::select! {
                () = &mut event => return Ok(()),
                Some(ended) = self.members.join_next() => drop(outcome(ended)?),
            }
        }
    }
}

fn outcome<T>(ended: Result<io::Result<T>, JoinError>) -> io::Result<T> {
    match ended {
        Ok(result) => result,
        Err(panicked) if panicked.is_panic() => std::panic::resume_unwind(panicked.into_panic()),
        Err(cancelled) => Err(io::Error::other(cancelled)),
    }
}
