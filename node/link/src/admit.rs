//! Links that others dial: let in, if they belong to the same center and mean this node.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use punctual_center::Ears;
use punctual_core::store::Incarnation;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::carry::Stream;
use crate::greet::{self, Met};
use crate::meter::add;
use crate::rebuff::{Lost, Trouble};
use crate::settings::Settings;
use crate::shared::Shared;

/// So many connections may be about to be links at a time. Those that wait wait in the system's queue.
const STRANGERS: usize = 64;

/// Lets others in.
pub(crate) struct Porter {
    pub(crate) shared: Arc<Shared>,
    pub(crate) me: Incarnation,
    pub(crate) ears: Arc<dyn Ears>,
    pub(crate) stop: watch::Receiver<()>,
}

impl Porter {
    /// Until it is to stop; then until all links that it let in are gone.
    pub(crate) async fn run(self, listener: TcpListener) {
        let porter = Arc::new(self);
        let strangers = Arc::new(Semaphore::new(STRANGERS));
        let mut stop = porter.stop.clone();
        let mut links = JoinSet::new();
        loop {
            while links.try_join_next().is_some() {}
            let next = async {
                let permit = Arc::clone(&strangers).acquire_owned().await.map_err(io::Error::other)?;
                Ok::<_, io::Error>((permit, listener.accept().await?))
            };
            let accepted = tokio::select! {
                _ = stop.changed() => break,
                accepted = next => accepted,
            };
            match accepted {
                Ok((permit, (stream, from))) => {
                    let porter = Arc::clone(&porter);
                    links.spawn(async move {
                        let met = porter.meet(stream, from).await;
                        drop(permit);
                        if let Some((stream, met)) = met {
                            porter.link(stream, met).await;
                        }
                    });
                }
                // Out of files, most likely: some come free with time.
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        }
        drop(listener);
        while links.join_next().await.is_some() {}
    }

    async fn meet(&self, stream: TcpStream, from: SocketAddr) -> Option<(Box<dyn Stream>, Met)> {
        let settings = &self.shared.settings;
        let meeting = async {
            let mut stream = welcome(stream, settings).await?;
            let met = greet::answer(&mut stream, settings, &self.me).await?;
            Ok((stream, met))
        };
        let mut stop = self.stop.clone();
        let met = tokio::select! {
            _ = stop.changed() => return None,
            met = timeout(settings.pace.greeting, meeting) => met.unwrap_or(Err(Trouble::TooSlow)),
        };
        met.inspect_err(|trouble| {
            if trouble.is_lasting() {
                add(&self.shared.meter.rebuffs, 1);
            }
            // Nodes that should know better are worth a warning; of strangers there may be any number.
            match trouble {
                Trouble::Refused(_) | Trouble::RefusedThere(..) => tracing::warn!(%from, "no link: {trouble}"),
                _ => tracing::debug!(%from, "no link: {trouble}"),
            }
        })
        .ok()
    }

    async fn link(&self, stream: Box<dyn Stream>, met: Met) {
        let greeting = met.greeting.clone();
        // Its other end is gone, or it would not have dialled again.
        self.shared.end_those_of(&greeting.who, Lost::Replaced);
        let line = self.shared.enter(greeting.who.clone(), false);
        self.ears.joined(line.id, &greeting);
        let hand_over = |messages| self.ears.asked(line.id, messages);
        let mut stop = self.stop.clone();
        let stopped = async { drop(stop.changed().await) };
        drop(self.shared.carry(&line, stream, met, stopped, hand_over).await);
        self.ears.left(line.id);
    }
}

async fn welcome(stream: TcpStream, settings: &Settings) -> io::Result<Box<dyn Stream>> {
    stream.set_nodelay(true)?;
    let Some(tls) = &settings.tls else { return Ok(Box::new(stream)) };
    Ok(Box::new(TlsAcceptor::from(Arc::clone(&tls.answering)).accept(stream).await?))
}
