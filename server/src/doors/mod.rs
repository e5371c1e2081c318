//! The ways in. A door is a crate of its own and one file here, which brings its settings, the node and the crate
//! together; everything else that is done with doors is done with all of them alike.
//!
//! ```text
//! Doorway                 ─► sockets              ─► Protocol              ─► served, drained, closed
//! what the settings say      before the store        once the node runs      OpenDoors
//! ```

mod beanstalk;
mod guard;
mod http;
mod open;
mod open_files;
mod sockets;

use std::sync::Arc;

use punctual_node::Handle;
use punctual_node::access::Access;
use punctual_socket::Listener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::config::{Address, Config};
use crate::failure::Failure;
use crate::metrics::{Meter, Metrics};
use crate::moving::LiveMover;
use crate::stores::OpenStore;
use crate::tls::Certificate;

use guard::Guard;
pub use guard::keep_strangers_out;
pub use open::OpenDoors;
pub use open_files::allow as allow_open_files;
pub use sockets::{Endpoint, bind};

/// All doors, in the order in which they are shown. One that is told to listen nowhere stays closed.
pub fn all(config: &Config) -> Vec<Doorway> {
    vec![http::doorway(config), beanstalk::doorway(config)]
}

/// A door as the settings describe it.
pub struct Doorway {
    /// Its protocol, and the section of its settings.
    name: &'static str,
    /// What its addresses begin with: its name, unless it is encrypted.
    scheme: &'static str,
    /// The setting that says where it listens.
    setting: &'static str,
    addresses: Vec<Address>,
    /// How many connections there may be at once, for each address.
    connections: usize,
    guard: Guard,
    ends: Ends,
    open: fn(&Inside<'_>) -> Result<Box<dyn Protocol>, Failure>,
}

/// When a door has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// Before the node stops: what its connections hold goes back while the node still takes it.
    BeforeTheNode,
    /// After it: the node answers those who wait when it stops.
    AfterTheNode,
}

/// What a door may work with.
pub struct Inside<'a> {
    pub config: &'a Config,
    pub handle: Handle,
    /// Who may do what.
    pub access: Arc<Access>,
    /// Vouches for leases.
    pub secret: [u8; 32],
    pub certificate: Option<Arc<Certificate>>,
    pub metrics: Arc<Metrics>,
    pub store: Arc<dyn OpenStore>,
    pub mover: Arc<LiveMover>,
}

/// What is spoken at an open door.
pub trait Protocol: Send + Sync {
    /// Lets connections in until `stop` turns true, and ends when all of them have.
    fn serve(&self, listener: Listener, stop: watch::Receiver<bool>) -> JoinHandle<()>;

    /// Takes no more jobs from now on, while everything else goes on. Whether it can do that.
    fn drain(&self) -> bool {
        false
    }

    /// Writes what it counts.
    fn meter(&self) -> Option<Meter> {
        None
    }

    /// What to tell people who start the server with this door at these endpoints.
    fn advice(&self, _endpoints: &[&Endpoint]) -> String {
        String::new()
    }
}
