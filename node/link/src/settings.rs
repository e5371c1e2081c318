//! What the server decides about links.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::{ClientConfig, ServerConfig};

use crate::credentials::Credentials;

/// How a node links with others.
#[derive(Clone, Debug)]
pub struct Settings {
    /// By what the nodes know each other.
    pub credentials: Credentials,
    /// The version of this node's software, to be shown.
    pub software: String,
    /// The levels of what is stored that this node can read and write.
    pub levels: RangeInclusive<u32>,
    /// The versions of the links' language that this node speaks.
    pub versions: RangeInclusive<u32>,
    /// Encryption, of all links or of none.
    pub tls: Option<Tls>,
    /// How long things take.
    pub pace: Pace,
    /// How much may wait on a link that this node dialled.
    pub ask_room: Room,
    /// How much may wait on a link that another node dialled.
    pub answer_room: Room,
}

impl Settings {
    /// The usual ones.
    pub fn new(credentials: Credentials, software: impl Into<String>, levels: RangeInclusive<u32>) -> Settings {
        Settings {
            credentials,
            software: software.into(),
            levels,
            versions: 1..=1,
            tls: None,
            pace: Pace::default(),
            ask_room: Room { bytes: 16 << 20, messages: 16 << 10 },
            answer_room: Room { bytes: 64 << 20, messages: 64 << 10 },
        }
    }
}

/// How a link is encrypted at either end. Who may link is decided by the secret all the same; certificates of both ends
/// are asked for if these say so.
#[derive(Clone)]
pub struct Tls {
    /// For links that this node dials. The name it asks for is the host of the other node's address.
    pub dialling: Arc<ClientConfig>,
    /// For links that others dial.
    pub answering: Arc<ServerConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// How long things take.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Between two pings of an asker.
    pub ping: Duration,
    /// A link on which nothing comes for so long is closed.
    pub silence: Duration,
    /// For a connection to come up and both ends to know each other.
    pub greeting: Duration,
    /// Before dialling again after a link broke; twice as long after each failure.
    pub first_wait: Duration,
    /// At most so long.
    pub longest_wait: Duration,
    /// Before dialling again whoever refuses: that does not pass by itself.
    pub refused_wait: Duration,
    /// For what waits to be written when links are closed.
    pub farewell: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            ping: Duration::from_secs(1),
            silence: Duration::from_secs(3),
            greeting: Duration::from_secs(3),
            first_wait: Duration::from_millis(50),
            longest_wait: Duration::from_secs(1),
            refused_wait: Duration::from_secs(5),
            farewell: Duration::from_secs(1),
        }
    }
}

/// How much may wait to be written.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// In bytes. One message that is longer waits alone.
    pub bytes: usize,
    /// In messages, at most 65,536.
    pub messages: usize,
}
