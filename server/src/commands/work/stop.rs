//! When a worker stops: by a signal, after so many deliveries, or when nothing is ready any more.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use punctual_client::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::super::output::note;

/// How long nothing may come before the queues are looked at. What is ready comes at once.
const QUIET: Duration = Duration::from_millis(500);

/// How long nothing must come if the queues may not be looked at with this token.
const QUIET_UNSEEN: u32 = 4;

/// What is passed on to the commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Come to an end.
    Terminate,
    /// End now.
    Kill,
}

/// When a worker stops. Shared by all that may stop it, and all that must know.
#[derive(Debug)]
pub struct Stop {
    limit: u64,
    begun: AtomicU64,
    running: AtomicUsize,
    /// Why the command cannot be run at all.
    hopeless: OnceLock<String>,
    asked: watch::Sender<bool>,
    /// How many signals came.
    signals: watch::Sender<u32>,
}

impl Stop {
    pub fn new(limit: Option<u64>) -> Stop {
        Stop {
            limit: limit.unwrap_or(u64::MAX),
            begun: AtomicU64::new(0),
            running: AtomicUsize::new(0),
            hopeless: OnceLock::new(),
            asked: watch::Sender::new(false),
            signals: watch::Sender::new(0),
        }
    }

    /// Whether one more delivery may be begun; the last one stops the worker.
    pub fn begin(&self) -> bool {
        let before = self.begun.fetch_add(1, Ordering::Relaxed);
        if before.saturating_add(1) >= self.limit {
            self.now();
        }
        let may = before < self.limit;
        if may {
            self.running.fetch_add(1, Ordering::Relaxed);
        }
        may
    }

    /// A delivery that was begun is over.
    pub fn end(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// Stops the worker.
    pub fn now(&self) {
        self.asked.send_replace(true);
    }

    /// Stops the worker, because the command cannot be run for any delivery.
    pub fn give_up(&self, why: String) {
        let _ = self.hopeless.set(why);
        self.now();
    }

    /// Why the command cannot be run at all, if so.
    pub fn hopeless(&self) -> Option<&str> {
        self.hopeless.get().map(String::as_str)
    }

    /// Whether commands were asked to end.
    pub fn is_signalled(&self) -> bool {
        *self.signals.borrow() > 0
    }

    /// Comes when the worker is to stop.
    pub async fn asked(self: Arc<Stop>) {
        // The sender lives as long as this does.
        let _ = self.asked.subscribe().wait_for(|asked| *asked).await;
    }

    /// Begins to listen to signals. Commands that have not ended so long after the first one are killed.
    pub fn listen(self: &Arc<Stop>, grace: Duration) -> io::Result<()> {
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let stop = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                let heard = tokio::select! {
                    heard = interrupt.recv() => heard,
                    heard = terminate.recv() => heard,
                };
                if heard.is_none() {
                    return;
                }
                let before = *stop.signals.borrow();
                let running = stop.running.load(Ordering::Relaxed);
                match (before, running) {
                    (_, 0) => {}
                    (0, _) => note(format_args!("stopping: waiting for {running} running; signal again to kill them")),
                    _ => note("killing the running commands"),
                }
                stop.now();
                stop.signals.send_replace(before.saturating_add(1));
                if before == 0 {
                    tokio::spawn(Arc::clone(&stop).kill_after(grace));
                }
            }
        });
        Ok(())
    }

    async fn kill_after(self: Arc<Stop>, grace: Duration) {
        tokio::time::sleep(grace).await;
        if self.running.load(Ordering::Relaxed) > 0 {
            note(format_args!("killing the commands still running after {grace:?}"));
            self.signals.send_modify(|signals| *signals = (*signals).max(2));
        }
    }

    /// What commands are to be told from now on.
    pub fn calls(&self) -> Calls {
        Calls { signals: self.signals.subscribe(), told: 0 }
    }

    /// Stops the worker when nothing runs and nothing is ready. That nothing comes is no proof: the server
    /// may be away.
    pub async fn when_empty(self: Arc<Stop>, client: Client, queues: Vec<String>) {
        let mut quiet_for = 0;
        let mut begun = self.begun.load(Ordering::Relaxed);
        loop {
            tokio::time::sleep(QUIET).await;
            let now = self.begun.load(Ordering::Relaxed);
            if now != begun || self.running.load(Ordering::Relaxed) > 0 {
                (begun, quiet_for) = (now, 0);
                continue;
            }
            quiet_for += 1;
            match ready(&client, &queues).await {
                Ready::Nothing => return self.now(),
                Ready::Unseen if quiet_for >= QUIET_UNSEEN => return self.now(),
                Ready::Unseen | Ready::Some => {}
                Ready::Unknown => quiet_for = 0,
            }
        }
    }
}

/// What is ready in the queues.
enum Ready {
    Nothing,
    Some,
    /// The server answers, but this token may not look.
    Unseen,
    /// The server does not answer.
    Unknown,
}

async fn ready(client: &Client, queues: &[String]) -> Ready {
    for queue in queues {
        match client.queue(queue).await {
            Ok(None) => {}
            Ok(Some(queue)) if queue.ready == 0 => {}
            Ok(Some(_)) => return Ready::Some,
            Err(error) if error.problem().is_some_and(|problem| problem.status == 403) => return Ready::Unseen,
            Err(_) => return Ready::Unknown,
        }
    }
    Ready::Nothing
}

/// What one command is to be told.
pub struct Calls {
    signals: watch::Receiver<u32>,
    told: u32,
}

impl Calls {
    /// The next call; it may never come.
    pub async fn next(&mut self) -> Call {
        let told = self.told;
        match self.signals.wait_for(|signals| *signals > told).await.map(|signals| *signals) {
            Ok(signals) => {
                self.told = signals;
                if signals == 1 { Call::Terminate } else { Call::Kill }
            }
            Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_limit_are_begun() {
        let stop = Stop::new(Some(2));
        assert!(stop.begin());
        assert!(!*stop.asked.borrow());
        assert!(stop.begin());
        assert!(*stop.asked.borrow());
        assert!(!stop.begin());
    }

    #[test]
    fn a_command_that_cannot_be_run_is_told_even_if_it_was_the_last() {
        let stop = Stop::new(Some(1));
        assert!(stop.begin());
        stop.give_up("gone".into());
        assert_eq!(stop.hopeless(), Some("gone"));
    }

    #[tokio::test]
    async fn the_first_signal_asks_and_the_second_kills() {
        let stop = Stop::new(None);
        let mut calls = stop.calls();
        stop.signals.send_replace(1);
        assert_eq!(calls.next().await, Call::Terminate);
        stop.signals.send_replace(2);
        assert_eq!(calls.next().await, Call::Kill);
        // A command that begins late is told at once.
        assert_eq!(stop.calls().next().await, Call::Kill);
    }
}
