//! What the door works with, and its limits.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use punctual_console::Console;
use punctual_core::Scope;
use punctual_node::Handle;
use punctual_node::access::Access;
use punctual_wire::{MoveStore, StoreMove, StoreStats};

use crate::host::Hosts;
use crate::pulse::Pulses;

/// What the door works with.
#[derive(Clone)]
pub struct App {
    /// Where commands go.
    pub handle: Handle,
    /// Who may do what.
    pub access: Arc<Access>,
    /// Vouches for the leases that the door gives out. It must outlive a restart, as leases do.
    pub secret: [u8; 32],
    /// What a client may ask for.
    pub limits: Limits,
    /// The names under which the server may be asked.
    pub hosts: Hosts,
    /// The version of the server.
    pub version: &'static str,
    /// Writes the metrics.
    pub metrics: MetricsSource,
    /// What the store takes, and how it is reached.
    pub store_stats: Arc<dyn Fn() -> StoreStats + Send + Sync>,
    /// Who follows how the nodes are doing; the same for all listeners.
    pub pulses: Pulses,
    /// Moves the store.
    pub mover: Arc<dyn Mover>,
    /// What browsers get, unless it is switched off.
    pub console: Option<Console>,
}

/// Whoever moves the store into another one while the server runs. What it is asked may take seconds, and blocks.
pub trait Mover: Send + Sync {
    /// Begins, or joins the same move if it is under way.
    fn begin(&self, wanted: &MoveStore) -> Result<StoreMove, MoveRefused>;

    /// How far it is, or how it ended.
    fn look(&self) -> Option<StoreMove>;

    /// Gives it up.
    fn cancel(&self) -> Result<StoreMove, MoveRefused>;
}

/// Why a store is not moved, or its move not given up. Each says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveRefused {
    /// No store is named by what was said.
    Invalid(String),
    /// Another move is under way, or done.
    UnderWay(String),
    /// The other store cannot be reached, or not be moved into.
    Unusable(String),
    /// Shards have been moved already.
    TooLate(String),
    /// There is no move.
    NoMove,
}

/// Writes the metrics of topics and queues in a scope, and of the node if that is all of them.
pub type MetricsSource = Arc<dyn Fn(Scope, Exposition) -> BoxFuture<'static, String> + Send + Sync>;

/// A way to write metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' text format 0.0.4.
    Text,
}

/// What every request gets: one count up, one count down.
pub(crate) type Shared = Arc<App>;

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("handle", &self.handle).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// What a client may ask for. [`Limits::default`] fits most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's body, unpacked.
    pub request_bytes: usize,
    /// Header lines of a request.
    pub headers: usize,
    /// Bytes of a request's head.
    pub header_bytes: usize,
    /// How long a request's head may take to arrive; also how long a connection may be idle.
    pub header_time: Duration,
    /// How long a request's body may take to arrive, and how long a client may leave an answer unread.
    pub body_time: Duration,
    /// How long a consumer may wait for deliveries in one request.
    pub wait: Duration,
    /// How many connections there may be at once.
    pub connections: usize,
    /// How many tasks, actions or deliveries one request may have.
    pub batch: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            request_bytes: 16 << 20,
            headers: 64,
            header_bytes: 32 << 10,
            header_time: Duration::from_secs(30),
            body_time: Duration::from_secs(30),
            wait: Duration::from_secs(300),
            connections: 10_000,
            batch: 10_000,
        }
    }
}
