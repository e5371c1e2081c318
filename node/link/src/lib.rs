//! How nodes talk to each other: one connection for each asker, on which frames of messages go both ways.
//!
//! - [`TcpLinks`] implements [`punctual_center::Links`]: it lets others in, dials them, and carries what is said.
//! - `hello`, `greet` and `rebuff` are how two ends of a connection get to know each other, and why they may not want to.
//! - `frame` is how bytes are sealed on their way; [`encode`] and [`hear`] are how messages become bytes and come back.
//!
//! Nothing in here knows what a message is about, except that nobody may be left waiting for one that is not understood.

mod admit;
mod carry;
mod credentials;
mod dial;
mod forms;
mod frame;
mod greet;
mod hello;
mod line;
mod links;
mod meter;
mod outbox;
mod rebuff;
mod settings;
mod shared;

pub use credentials::Credentials;
pub use dial::PeerStatus;
pub use forms::{Garbled, Heard, Unclear, encode, hear};
pub use frame::{Forged, Frame, Sealing};
pub use hello::{Hello, Introduction};
pub use links::TcpLinks;
pub use meter::{RoundTrip, Traffic};
pub use rebuff::Rebuff;
pub use settings::{Pace, Room, Settings, Tls};
