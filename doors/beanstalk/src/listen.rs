//! Sockets: accepting connections, bounding them, and ending them in order.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use punctual_socket::Listener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::connection::{Connection, Visitor};
use crate::door::Door;

/// How long connections may take to end once the door closes: to finish what they began, and to give back what they hold.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long clients wait while what was held before the start is given back. More of it goes back beside them.
const WELCOME: Duration = Duration::from_secs(1);

/// Serves until `stop` turns true. Then nobody is let in any more, and it ends when everybody's jobs are on
/// their way back.
///
/// It is spawned here, so that all of it is compiled in this crate and with its settings: where a future is first polled
/// decides that.
pub fn serve(listener: Listener, door: Arc<Door>, stop: watch::Receiver<bool>) -> JoinHandle<()> {
    tokio::spawn(attend(listener, door, stop))
}

async fn attend(listener: Listener, door: Arc<Door>, mut stop: watch::Receiver<bool>) {
    let cleaning = tokio::spawn(clean_up(Arc::clone(&door)));
    _ = tokio::time::timeout(WELCOME, cleaning).await;
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
                    if let Err(error) = Connection::new(&door, visitor, stop).run().await {
                        tracing::debug!(%error, "a connection ended early");
                    }
                    drop((place, open));
                });
            }
            Err(error) => {
                // Most likely there are too many open files. Those who are in are served; others wait.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop((open, listener));
    if tokio::time::timeout(FAREWELL, all_closed.recv()).await.is_err() {
        // They begin nothing any more and wait for no client: it is the node that takes long.
        tracing::warn!(
            "some connections did not end in time; the jobs they hold are given back as soon as the node gets to it"
        );
    }
}

async fn clean_up(door: Arc<Door>) {
    match door.give_back_after_crash().await {
        Ok(0) => {}
        Ok(jobs) => tracing::info!(jobs, "jobs that were reserved when the server stopped are ready again"),
        Err(error) => {
            tracing::warn!(%error, "jobs that were reserved when the server stopped stay reserved until their time is up");
        }
    }
}
