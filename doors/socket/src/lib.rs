//! What doors listen on: TCP, or a unix socket, which is a file. A door need not know which.
//!
//! ```no_run
//! use punctual_socket::Listener;
//! use tokio::io::AsyncWriteExt;
//! use tokio::net::TcpListener;
//!
//! async fn greet() -> std::io::Result<()> {
//!     let listener = Listener::Tcp(TcpListener::bind("127.0.0.1:7400").await?);
//!     let (mut stream, peer) = listener.accept().await?;
//!     stream.write_all(format!("hello {peer}\n").as_bytes()).await
//! }
//! ```

mod stream;
mod unix;

use std::fmt;
use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, UnixListener};

pub use stream::Stream;
pub use unix::{SocketFile, UnixError, listen_unix};

/// A socket that is listening.
#[derive(Debug)]
pub enum Listener {
    /// On an address.
    Tcp(TcpListener),
    /// On a file, which goes first when this is dropped: after that somebody else may listen there.
    Unix(SocketFile, UnixListener),
}

/// Where a connection comes from, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// From this address.
    Address(SocketAddr),
    /// From this machine, over a unix socket.
    Unix,
}

impl Listener {
    /// The next connection. Nothing is lost if this is dropped.
    pub async fn accept(&self) -> io::Result<(Stream, Peer)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // Answers are short; waiting for more to send with them would only make them late.
                _ = stream.set_nodelay(true);
                Ok((Stream::Tcp(stream), Peer::Address(address)))
            }
            Listener::Unix(_, listener) => {
                listener.accept().await.map(|(stream, _)| (Stream::Unix(stream), Peer::Unix))
            }
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Address(address) => address.fmt(f),
            Peer::Unix => f.write_str("unix"),
        }
    }
}
