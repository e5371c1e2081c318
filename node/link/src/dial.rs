//! Links to others: dialled, and dialled again whenever they break.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use punctual_center::{Ears, Peer};
use punctual_core::store::Incarnation;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::carry::Stream;
use crate::greet::{self, Met};
use crate::line::Line;
use crate::meter::{RoundTrip, add};
use crate::rebuff::Trouble;
use crate::settings::Settings;
use crate::shared::Shared;

/// How it stands with the link to another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// The other node.
    pub peer: Peer,
    /// Whether there is a link to it.
    pub is_up: bool,
    /// How often there was one before.
    pub breaks: u64,
    /// How long it takes there and back, once that was measured.
    pub round_trip: Option<RoundTrip>,
    /// Why there is none.
    pub trouble: Option<String>,
}

/// What is known of the link to another node, for those who ask.
pub(crate) struct Dialled {
    pub(crate) who: Incarnation,
    /// Where the node is. Ends the link when it is dropped.
    pub(crate) address: watch::Sender<String>,
    pub(crate) task: AbortHandle,
    pub(crate) watched: Arc<Mutex<Watched>>,
}

#[derive(Default)]
pub(crate) struct Watched {
    line: Option<Arc<Line>>,
    links: u64,
    trouble: Option<String>,
}

impl Dialled {
    /// The node is there now: if that is somewhere else, it is dialled anew.
    pub(crate) fn is_at(&self, address: &str) {
        self.address.send_if_modified(|known| {
            let is_new = known != address;
            address.clone_into(known);
            is_new
        });
    }

    pub(crate) fn status(&self) -> PeerStatus {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let line = watched.line.as_ref();
        PeerStatus {
            peer: Peer { who: self.who.clone(), address: self.address.borrow().clone() },
            is_up: line.is_some(),
            breaks: watched.links - u64::from(line.is_some()),
            round_trip: line.and_then(|line| line.round_trip()),
            trouble: watched.trouble.clone(),
        }
    }
}

/// Keeps a link to another node.
pub(crate) struct Dialler {
    pub(crate) shared: Arc<Shared>,
    pub(crate) me: Incarnation,
    pub(crate) ears: Arc<dyn Ears>,
    pub(crate) who: Incarnation,
    /// Where the node is; gone when there is to be no link to it any more.
    pub(crate) address: watch::Receiver<String>,
    pub(crate) watched: Arc<Mutex<Watched>>,
}

impl Dialler {
    pub(crate) async fn run(self) {
        let pace = self.shared.settings.pace;
        let mut wait = pace.first_wait;
        let mut changes = self.address.clone();
        while changes.has_changed().is_ok() {
            let address = changes.borrow_and_update().clone();
            let reached = tokio::select! {
                _ = changes.changed() => continue,
                reached = timeout(pace.greeting, self.reach(&address)) => reached.unwrap_or(Err(Trouble::TooSlow)),
            };
            let pause = match reached {
                Ok((stream, met)) => {
                    wait = pace.first_wait;
                    let stop = async { drop(changes.changed().await) };
                    self.link(stream, met, stop).await;
                    wait
                }
                Err(trouble) => {
                    self.note(&trouble);
                    wait = (wait * 2).min(pace.longest_wait);
                    if trouble.is_lasting() { pace.refused_wait } else { wait }
                }
            };
            tokio::select! {
                _ = changes.changed() => {}
                () = sleep(jittered(pause)) => {}
            }
        }
    }

    async fn reach(&self, address: &str) -> Result<(Box<dyn Stream>, Met), Trouble> {
        let mut stream = connect(address, &self.shared.settings).await?;
        let met = greet::dial(&mut stream, &self.shared.settings, &self.me, &self.who).await?;
        Ok((stream, met))
    }

    async fn link(&self, stream: Box<dyn Stream>, met: Met, stop: impl Future<Output = ()>) {
        let greeting = met.greeting.clone();
        let line = self.shared.enter(greeting.who.clone(), true);
        self.watch(|watched| {
            watched.line = Some(Arc::clone(&line));
            watched.links += 1;
            watched.trouble = None;
        });
        tracing::info!(node = %self.who.node, "linked");
        self.ears.linked(line.id, &greeting);
        let ears = &self.ears;
        let hand_over = |messages| ears.told(line.id, messages);
        let unsent = self.shared.carry(&line, stream, met, stop, hand_over).await;
        self.watch(|watched| {
            watched.line = None;
            watched.trouble = line.lost().map(ToString::to_string);
        });
        self.ears.unlinked(line.id, unsent);
    }

    /// Says once in the log why there is no link, and again when that changes.
    fn note(&self, trouble: &Trouble) {
        let words = trouble.to_string();
        if trouble.is_lasting() {
            add(&self.shared.meter.rebuffs, 1);
        }
        let is_new = self.watch(|watched| watched.trouble.replace(words.clone()).as_ref() != Some(&words));
        if is_new {
            let address = self.address.borrow().clone();
            tracing::warn!(node = %self.who.node, address, "no link: {words}");
        }
    }

    fn watch<T>(&self, change: impl FnOnce(&mut Watched) -> T) -> T {
        change(&mut self.watched.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn connect(address: &str, settings: &Settings) -> io::Result<Box<dyn Stream>> {
    let stream = TcpStream::connect(address).await?;
    // Frames are put together here; waiting for more would only make them late.
    stream.set_nodelay(true)?;
    let Some(tls) = &settings.tls else { return Ok(Box::new(stream)) };
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']']);
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    Ok(Box::new(TlsConnector::from(Arc::clone(&tls.dialling)).connect(name, stream).await?))
}

/// At least half of it, so that nodes that lost each other together do not dial together for ever.
fn jittered(wait: Duration) -> Duration {
    let share = getrandom::u32().unwrap_or(u32::MAX);
    wait / 2 + (wait / 2).mul_f64(f64::from(share) / f64::from(u32::MAX))
}
