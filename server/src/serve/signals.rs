//! The signals that the server understands: SIGTERM and SIGINT to stop, SIGHUP to read files again, SIGUSR1 to take no more jobs.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// All signals that are listened to.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    user: Signal,
}

/// What a signal asks for.
pub enum Asked {
    /// To stop, by the signal of this name.
    Stop(&'static str),
    /// To read tokens and certificates again.
    Reload,
    /// To take no more jobs at doors that can be drained.
    Drain,
}

impl Signals {
    /// Begins to listen. From now on no signal ends the process by itself.
    pub fn new() -> Result<Signals, Failure> {
        let listen =
            |kind| signal(kind).map_err(|error| Failure::Failed(format!("cannot listen for signals: {error}")));
        Ok(Signals {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: listen(SignalKind::hangup())?,
            user: listen(SignalKind::user_defined1())?,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::Stop("SIGTERM"),
            _ = self.interrupt.recv() => Asked::Stop("SIGINT"),
            _ = self.hang_up.recv() => Asked::Reload,
            _ = self.user.recv() => Asked::Drain,
        }
    }

    /// Waits for one that says to stop.
    pub async fn next_stop(&mut self) -> &'static str {
        loop {
            if let Asked::Stop(signal) = self.next().await {
                return signal;
            }
        }
    }
}
