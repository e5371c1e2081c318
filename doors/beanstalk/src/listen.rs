//! Sockets: accepting connections, bounding them, and ending them in order.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use punctual_core::Lease;
use punctual_socket::Listener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::connection::{Connection, Visitor};
use crate::door::Door;

/// How long connections may take to end once the door closes: to finish what they began, and to give back what they hold.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long clients wait while what was held before the start is given back. More of it goes back beside them.
const WELCOME: Duration = Duration::from_secs(1);

/// How soon it is tried again to give something back that is out of reach.
const AGAIN: Duration = Duration::from_millis(500);

/// Serves until `stop` turns true. Then nobody is let in any more, and it ends when everybody's jobs are on
/// their way back.
///
/// It is spawned here, so that all of it is compiled in this crate and with its settings: where a future is first polled
/// decides that.
pub fn serve(listener: Listener, door: Arc<Door>, stop: watch::Receiver<bool>) -> JoinHandle<()> {
    tokio::spawn(attend(listener, door, stop))
}

async fn attend(listener: Listener, door: Arc<Door>, mut stop: watch::Receiver<bool>) {
    let mut cleaning = tokio::spawn(clean_up(Arc::clone(&door)));
    _ = tokio::time::timeout(WELCOME, &mut cleaning).await;
    let places = Arc::new(Semaphore::new(door.limits.connections));
    // Dropped by the last connection, which tells that all have ended.
    let (open, mut all_closed) = tokio::sync::mpsc::channel::<Infallible>(1);
    loop {
        let place = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            place = Arc::clone(&places).acquire_owned() => place.expect("the semaphore is never closed"),
        };
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let visitor = Visitor::new(&door, stream);
                let (door, stop, open) = (Arc::clone(&door), stop.clone(), open.clone());
                tokio::spawn(async move {
                    let left = Connection::new(&door, visitor, stop).run().await;
                    drop((place, open));
                    door.give_back(left).await;
                });
            }
            Err(error) => {
                // Most likely there are too many open files. Those who are in are served; others wait.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    cleaning.abort();
    drop((open, listener));
    if tokio::time::timeout(FAREWELL, all_closed.recv()).await.is_err() {
        // They begin nothing any more and wait for no client: it is the node that takes long.
        tracing::warn!(
            "some connections did not end in time; the jobs they hold are given back as soon as the node gets to it"
        );
    }
}

/// Gives back what an earlier run left, as soon as whoever has it can be reached.
async fn clean_up(door: Arc<Door>) {
    let mut told = String::new();
    loop {
        let why = match door.give_back_after_crash().await {
            Ok(0) => return,
            Ok(jobs) => {
                return tracing::info!(jobs, "jobs that were reserved when the server stopped are ready again");
            }
            Err(error) => error.to_string(),
        };
        if told != why {
            tracing::warn!(why, "jobs that were reserved when the server stopped cannot be given back yet");
            told = why;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

impl Door {
    /// Gives leases back as soon as whoever has them can be reached.
    async fn give_back(&self, mut leases: Vec<Lease>) {
        while !leases.is_empty() {
            tokio::time::sleep(AGAIN).await;
            leases = self.handle.abandon(leases).await;
        }
    }
}
