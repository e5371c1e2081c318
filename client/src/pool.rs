//! Connections to one server: over TCP, with or without TLS, or over a unix socket.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use tokio::net::UnixStream;
use tower_service::Service;

/// Shorter than servers keep idle connections, so that a request seldom meets one that is being closed.
const IDLE: Duration = Duration::from_secs(20);

/// The longest wait for a connection. A server that lives answers sooner, and repeating is better than waiting.
const CONNECT: Duration = Duration::from_secs(3);

/// The connections that are there, and how more are made.
#[derive(Debug)]
pub(crate) enum Pool {
    Net(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
    Unix(Client<Unix, Full<Bytes>>),
}

impl Pool {
    /// Over TCP; which connections are encrypted says their address.
    pub fn net(tls: ClientConfig, timeout: Duration) -> Pool {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT.min(timeout)));
        // An event stream may be silent for long; this notices when its other end is gone.
        tcp.set_keepalive(Some(Duration::from_secs(15)));
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
        Pool::Net(builder().build(connector.wrap_connector(tcp)))
    }

    /// Over this socket, whatever the address of a request says.
    pub fn unix(socket: &Path) -> Pool {
        Pool::Unix(builder().build(Unix(Arc::from(socket))))
    }

    pub fn request(&self, request: Request<Full<Bytes>>) -> ResponseFuture {
        match self {
            Pool::Net(pool) => pool.request(request),
            Pool::Unix(pool) => pool.request(request),
        }
    }
}

fn builder() -> Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_idle_timeout(IDLE).pool_timer(TokioTimer::new());
    builder
}

/// Makes connections over a unix socket.
#[derive(Clone, Debug)]
pub(crate) struct Unix(Arc<Path>);

impl Service<Uri> for Unix {
    type Response = TokioIo<UnixStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<UnixStream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let socket = Arc::clone(&self.0);
        Box::pin(async move { UnixStream::connect(socket).await.map(TokioIo::new) })
    }
}
