//! The store contract: time-ordered rows, per shard.
//!
//! Everything that is kept has a key and a time, so a store keeps rows in time order and knows
//! nothing of tasks. All of the delay queue's logic stands above this contract and is written
//! once. The crate `punctual-conformance` is the suite that every store must pass. [`Timeline`],
//! [`Index`], [`Members`], [`Tallies`] and [`StoredRow`] are what more than one store is built of.
//!
//! The contract is made for a store behind a network, where a call costs a round trip, an answer can be lost, and a node
//! can be cut off without knowing it:
//! - a step reads all that it needs in one [`read`](Store::read), and is told if it is not the owner any more;
//! - a commit has a number, so that it can be tried again without happening twice;
//! - one [`beat`](Store::beat) keeps all shards of a node, however many they are.

mod batch;
mod index;
mod members;
mod membership;
mod read;
mod row;
mod stored_row;
mod tally;
mod tally_bytes;
mod timeline;
mod trouble;

use std::fmt;

use bytes::Bytes;

pub use batch::{Batch, Terms};
pub use index::Index;
pub use members::Members;
pub use membership::{Beat, Claim, Entry, Fence, Held, Incarnation, Outdated, Present, Roll, Tenure};
pub use read::{Bodies, Find, FindBack, Found, Look, Page, Scan, ScanBack, Want};
pub use row::{Change, Key, Place, Position, Row, Table};
pub use stored_row::StoredRow;
pub use tally::{Tally, TallyKind};
pub use tally_bytes::{Tallies, UnreadableTallies};
pub use timeline::Timeline;
pub use trouble::{Hardship, Refusal, Room, StoreError};

/// A slice of all tasks: the unit of order, ownership and parallel work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u16);

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shard {}", self.0)
    }
}

/// The durable, ordered home of the shards' rows. Calls block until they are done, and every call ends: a store that is
/// asked over a network has a patience, after which it says [`StoreError::Unavailable`].
///
/// **Rows**: a key stands at most once among the tables `Live`, `Dead` and `History` of a shard,
/// and at most once in `Settings`. A row's number (`seq`) is unique within its shard and never
/// changes; time order is the order of (`at`, `seq`).
///
/// **Ownership**: a fence is in force from the claim that granted it until the next claim or its release, also when the
/// lease of its node is over: the lease says when it is polite to claim, the fence says what is true.
pub trait Store: Send + Sync {
    /// Notes that a node is there, and says who else is. The beat does not count, and the roll shows why, if another
    /// life of the same node has a lease that is not over.
    fn beat(&self, beat: &Beat) -> Result<Roll, StoreError>;

    /// Takes shards, each if the fence in force is still the one that the claimer has seen; answers in their order.
    /// Whose turn it is, is for the claimer to judge by the roll. An answer that was lost has still granted what it
    /// granted: the claimer learns that from its next beat, and claims again.
    fn claim(&self, who: &Incarnation, wanted: &[(ShardId, Fence)]) -> Result<Vec<Claim>, StoreError>;

    /// Gives a shard back, to a node or to whoever comes first. The fence is refused from then on; the one that is in
    /// force instead, to be claimed with, comes back.
    fn release(&self, shard: ShardId, fence: Fence, to: Option<&Incarnation>) -> Result<Fence, StoreError>;

    /// An entry of the cluster.
    fn cluster_get(&self, key: &str) -> Result<Option<Entry>, StoreError>;

    /// Writes an entry of the cluster, if it is still at the revision that the writer has seen, zero if it saw none.
    /// Gives the new revision.
    fn cluster_put(&self, key: &str, seen: u64, value: &[u8]) -> Result<Result<u64, Outdated>, StoreError>;

    /// Reads for the shard's owner; answers in the order of the wants.
    ///
    /// The store looks at fence and serial after it has looked at the rows: if the fence is in force then, nobody else
    /// can have written what was read. What was committed up to the serial is seen; what was sent after it, maybe.
    /// Refused under another fence, and as [`Refusal::Lost`] if the store has not come so far.
    fn read(&self, shard: ShardId, tenure: Tenure, wants: &[Want<'_>]) -> Result<Vec<Found>, StoreError>;

    /// Reads for anybody, of any shards; answers in the order of the wants. Each sees what was committed at some instant
    /// during the call. See [`Look`] for one thing at a time.
    fn look(&self, wants: &[(ShardId, Want<'_>)]) -> Result<Vec<Found>, StoreError>;

    /// Makes the batches durable, each wholly or, if it is refused, not at all; answers in their order. Several batches
    /// of one shard happen in their order. On an error a first part of each shard's batches may have happened, and may
    /// still happen until the store has answered a claim.
    ///
    /// A batch is refused under any fence but the one in force, also where no shard was ever claimed. What is there
    /// already, by its serial, happens no second time.
    fn commit(&self, batches: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError>;

    /// How the store is best worked with.
    fn terms(&self) -> Terms {
        Terms::default()
    }

    /// What keeps the store from taking more, if anything does. Asked before every new task, so it has to
    /// be cheap: no more than a look at what is known anyway.
    ///
    /// It is a word of warning, and commits go on. What makes room is made of changes too
    /// (acknowledging, cancelling, removing), and so is what the shards insert by themselves, so a
    /// store says that it is full while it still has room for those.
    fn hardship(&self) -> Option<Hardship> {
        None
    }

    /// How much room there is. Asked before every step, so it has to be as cheap. A store that says [`Room::None`]
    /// has room left for the steps that are on their way.
    fn room(&self) -> Room {
        Room::under(self.hardship().as_ref())
    }
}

impl Row {
    /// The row as a read without bodies gives it.
    #[must_use]
    pub fn without_body(mut self) -> Row {
        self.body = Bytes::new();
        self
    }
}
