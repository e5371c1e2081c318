//! Punctual's HTTP door: JSON under `/v1`.
//!
//! A door is thin: it parses, calls the node, translates the answer. No rule about tasks is in here.
//!
//! ```text
//! listen ─► answer ─► host ─► gate ─► routes/* ─► translate/* ─► node ─► translate/* ─► JSON, or a Fault
//! sockets,  packing,  meant   who     one file    wire types                            problem details
//! limits    logging   for us  may     per noun    to core's
//! ```
//! **Invariant**: whatever comes in, the answer is the one asked for or a problem that says what is
//! wrong and what to do. **Invariant**: a client that is slow, silent or broken costs one bounded connection.
//!
//! ```no_run
//! use punctual_http::{App, serve};
//! use punctual_socket::Listener;
//! use tokio::net::TcpListener;
//! use tokio::sync::watch;
//!
//! async fn until_ctrl_c(app: App, mut pressed: watch::Receiver<bool>) -> std::io::Result<()> {
//!     let listener = Listener::Tcp(TcpListener::bind("127.0.0.1:7400").await?);
//!     let door = serve(listener, None, app, pressed.clone());
//!     _ = pressed.wait_for(|pressed| *pressed).await;
//!     // It ends when all who are in have been answered.
//!     Ok(door.await?)
//! }
//! ```

mod answer;
mod app;
mod condition;
mod cursor;
mod deed;
mod fault;
mod gate;
mod host;
mod input;
mod joined;
mod lease;
mod listen;
mod openapi;
mod output;
mod parsable;
mod pulse;
mod routes;
mod stall;
mod trace;
mod translate;
mod undo;
mod unpack;

pub use punctual_console::Console;

pub use app::{App, Exposition, Limits, MetricsSource, MoveRefused, Mover};
pub use host::Hosts;
pub use listen::serve;
pub use openapi::document;
pub use pulse::Pulses;
pub use translate::task_info;
