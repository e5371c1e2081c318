//! Sockets: accepting connections, bounding them, and ending them in order.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use punctual_socket::{Listener, Peer, Stream};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::answer::Answering;
use crate::app::{App, Limits};
use crate::stall::Stalling;

/// How long connections may take to end once the door closes.
const FAREWELL: Duration = Duration::from_secs(10);

/// Serves until `stop` turns true. Then nobody is let in any more, and it ends when all who are
/// in have been answered, or ten seconds later. Over a unix socket nothing is encrypted: it does not leave the machine.
///
/// It is spawned here, so that all of it is compiled in this crate and with its settings: where a future is first polled
/// decides that.
pub fn serve(
    listener: Listener,
    tls: Option<Arc<ServerConfig>>,
    app: App,
    stop: watch::Receiver<bool>,
) -> JoinHandle<()> {
    tokio::spawn(attend(listener, tls, app, stop))
}

async fn attend(listener: Listener, tls: Option<Arc<ServerConfig>>, app: App, mut stop: watch::Receiver<bool>) {
    let limits = app.limits;
    let places = Arc::new(Semaphore::new(limits.connections));
    let answering = Answering::new(app);
    let tls = tls.map(TlsAcceptor::from);
    // Dropped by the last connection, which tells that all have ended.
    let (open, mut all_closed) = tokio::sync::mpsc::channel::<Infallible>(1);
    loop {
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place.expect("the semaphore is never closed"),
            () = stopped(&mut stop) => break,
        };
        let (stream, peer) = tokio::select! {
            accepted = accept(&listener) => accepted,
            () = stopped(&mut stop) => break,
        };
        let visit =
            Visit { answering: answering.clone(), limits, stop: stop.clone(), _place: place, _open: open.clone() };
        tokio::spawn(visit.welcome(stream, tls.clone(), peer));
    }
    drop(open);
    drop(listener);
    if tokio::time::timeout(FAREWELL, all_closed.recv()).await.is_err() {
        tracing::warn!("some connections did not end in time and were closed");
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, which is an end too.
    _ = stop.wait_for(|stop| *stop).await;
}

async fn accept(listener: &Listener) -> (Stream, Peer) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                // Most likely there are too many open files. Those who are in are served; others wait.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// One connection, from its first byte to its last.
struct Visit {
    answering: Answering,
    limits: Limits,
    stop: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
    _open: tokio::sync::mpsc::Sender<Infallible>,
}

impl Visit {
    async fn welcome(self, stream: Stream, tls: Option<TlsAcceptor>, peer: Peer) {
        match tls.filter(|_| peer != Peer::Unix) {
            None => self.answer(stream, peer).await,
            Some(tls) => match tokio::time::timeout(self.limits.header_time, tls.accept(stream)).await {
                Ok(Ok(stream)) => self.answer(stream, peer).await,
                Ok(Err(error)) => tracing::debug!(%peer, %error, "the TLS handshake failed"),
                Err(_) => tracing::debug!(%peer, "the TLS handshake timed out"),
            },
        }
    }

    async fn answer(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, peer: Peer) {
        let stream = TokioIo::new(Stalling::new(stream, self.limits.body_time));
        let service = service_fn(|request| self.answering.answer(request));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.header_time)
            .max_headers(self.limits.headers)
            .max_header_size(self.limits.header_bytes)
            .serve_connection(stream, service);
        let mut connection = pin!(connection);
        let mut stop = self.stop.clone();
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stopped(&mut stop) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%peer, %error, "a connection ended early");
        }
    }
}
