//! Runs Punctual's shards: a whole delay center in this process.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use punctual_core::{Choice, Millis, Name, Reserve, Task};
//! use punctual_memory::MemoryStore;
//! use punctual_node::{Node, NodeConfig, SystemClock, block_on};
//!
//! let clock = Arc::new(SystemClock);
//! let store = Arc::new(MemoryStore::new(clock.clone()));
//! let node = Node::start(NodeConfig::new(Name::new("here")?), store, clock)?;
//! let handle = node.handle();
//!
//! block_on(async {
//!     let orders = Name::new("orders")?;
//!     let task = Task::new(orders.clone(), "close order 7").after(Duration::from_millis(50));
//!     let scheduled = handle.schedule(task).await?;
//!
//!     // Wait up to 10 seconds for whatever comes due.
//!     let until = handle.now().plus(Millis::from_secs(10));
//!     let consumer = Name::new("worker-1")?;
//!     let (queues, choice) = (vec![orders], Choice::default());
//!     let deliveries = handle.reserve(Reserve { queues, max: 1, lease: None, until, consumer, choice }).await?;
//!     let delivery = &deliveries[0];
//!     assert_eq!(delivery.id, scheduled.id);
//!     assert_eq!(delivery.body, "close order 7");
//!     assert!(handle.now() >= delivery.due);
//!
//!     // Without this it would be handed out again when the lease is over.
//!     handle.acknowledge(delivery.lease.clone()).await?;
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! })?;
//! node.stop();
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! How it works:
//! ```text
//!  Handle ──► Inbox ──► Runner ──► Pipeline ──► Committer ──► answer
//!    │      one each   one thread   all wait   one thread:      │
//!    │     per shard   per shard    in one     one commit for   │
//!    │                    │         place      all that waits   │
//!    └──► Board ◄─────────┘                                     │
//!         waiting consumers, across shards  ◄───────────────────┘
//! ```
//! **Invariant**: nothing leaves before it is durable. **Invariant**: nothing is guessed; when the
//! store does not say what happened, neither does the node: it drops the shard's memory, says that
//! the outcome is unknown, and opens the shard again from what the store has.

pub mod access;
mod acts;
mod administrator;
mod archive;
mod aside;
mod beats;
mod block_on;
mod board;
mod caller;
mod changes;
mod claims;
mod clock;
mod committer;
mod config;
mod deletions;
mod errands;
mod error;
mod handle;
mod ids;
mod inbox;
mod inquiries;
mod lending;
mod level;
mod limits;
mod listing;
mod node;
mod numbers;
mod outgoing;
mod ownership;
mod pace;
mod parting;
mod passing;
mod peers;
mod places;
mod rates;
mod readers;
mod rounds;
mod runner;
mod shards;
mod shared;
mod stats;
mod store_clock;
mod sweeps;
#[cfg(not(shuttle))]
mod sync;
#[cfg(shuttle)]
pub mod sync;
mod tracer;
mod turn;
mod watch;

pub use punctual_center::{
    Act, Acts, Buckets, CannotUndo, Card, Consumer, Consumers, Gauges, Grain, Happened, Pulse, Series, Slot, Spread,
    SweepRecord, Timing, Work,
};

pub use archive::{Archive, ArchiveStats};
pub use block_on::block_on;
pub use clock::{DoubtingClock, SystemClock};
pub use config::{LEVELS, NodeConfig};
pub use error::{Error, StartError};
pub use handle::{
    AllHolders, AllWork, Awaited, Cause, Counted, Found, Handle, LineCursor, LinePage, Names, NodeView, ShardView,
    Situation, Slots, SweepView,
};
pub use listing::{BadCursor, Cursor, TaskPage};
pub use node::Node;
pub use numbers::Number;
pub use outgoing::Hold;
pub use punctual_core::shard_of;
pub use rounds::{BadEventId, EventId, EventRound};
pub use shards::known_shards;
pub use stats::{Distribution, Stats};
pub use store_clock::StoreClock;
pub use tracer::{SPANS, Took, Tracer};
pub use watch::{Watch, Watched};
