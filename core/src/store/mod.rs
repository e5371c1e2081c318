//! The store contract: time-ordered rows, per shard.
//!
//! Everything that is kept has a key and a time, so a store keeps rows in time order and knows
//! nothing of tasks. All of the delay queue's logic stands above this contract and is written
//! once. The crate `punctual-conformance` is the suite that every store must pass. [`Timeline`],
//! [`Index`] and [`Ownership`] are what more than one store is built of.

mod index;
mod ownership;
mod row;
mod tally;
mod timeline;

use bytes::Bytes;
pub use index::Index;
pub use ownership::Ownership;
pub use row::{Change, Key, Place, Position, Row, Table};
pub use tally::{Tally, TallyKind};
pub use timeline::Timeline;

use crate::name::Name;
use crate::time::{Millis, Timestamp};

/// A slice of all tasks: the unit of order, ownership and parallel work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u16);

/// Rises with each change of a shard's owner; writes with an old one are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

/// Whether a read brings the rows' bodies along; without, they come back empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bodies {
    /// The bodies are wanted.
    With,
    /// The states are enough.
    Without,
}

/// A read in time order.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The table to read.
    pub table: Table,
    /// The first position to read.
    pub from: Position,
    /// The time to stop before; [`Timestamp::NEVER`] leaves out only rows without a time.
    pub until: Timestamp,
    /// Only rows of this topic.
    pub topic: Option<Name>,
    /// At most so many rows.
    pub limit: usize,
    /// Whether bodies are wanted.
    pub bodies: Bodies,
}

/// A read of the rows that share a group, in the order of their numbers.
#[derive(Clone, Debug)]
pub struct Find {
    /// The table to read.
    pub table: Table,
    /// The group.
    pub group: Name,
    /// The first number to read.
    pub from_seq: u64,
    /// At most so many rows.
    pub limit: usize,
    /// Whether bodies are wanted.
    pub bodies: Bodies,
}

/// A read against time order: the latest rows first. Rows without a time are left out.
#[derive(Clone, Debug)]
pub struct ScanBack {
    /// The table to read.
    pub table: Table,
    /// The position to begin before: what stands there is not read.
    pub before: Position,
    /// The earliest time to read.
    pub from: Timestamp,
    /// Only rows of this topic.
    pub topic: Option<Name>,
    /// At most so many rows.
    pub limit: usize,
    /// Whether bodies are wanted.
    pub bodies: Bodies,
}

/// A read of the rows that share a group, against the order of their numbers.
#[derive(Clone, Debug)]
pub struct FindBack {
    /// The table to read.
    pub table: Table,
    /// The group.
    pub group: Name,
    /// The number to begin before: the row that has it is not read.
    pub before_seq: u64,
    /// At most so many rows.
    pub limit: usize,
    /// Whether bodies are wanted.
    pub bodies: Bodies,
}

/// The changes of one step of one shard: all of it becomes durable, or nothing.
///
/// A batch names each row and each tally at most once, so a store may apply it in any order.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The shard that changes.
    pub shard: ShardId,
    /// The fence under which the writer owns it.
    pub fence: Fence,
    /// What happens to the rows.
    pub changes: Vec<Change>,
    /// What is added to the tallies.
    pub tallies: Vec<(Tally, i64)>,
}

/// The answer to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The shard is the claimer's, under this fence.
    Granted(Fence),
    /// Another node owns it.
    Held {
        /// The owner.
        by: Name,
        /// The end of its lease on the shard, by the store's clock.
        until: Timestamp,
    },
}

/// Who owns a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The shard.
    pub shard: ShardId,
    /// The node that owns it.
    pub node: Name,
    /// The fence under which it does.
    pub fence: Fence,
    /// The end of its lease on the shard, by the store's clock.
    pub until: Timestamp,
}

/// The writer does not own the shard any more; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the writer no longer owns the shard: fence {} is in force", current.0)]
pub struct Fenced {
    /// The fence that is in force now.
    pub current: Fence,
}

/// What can go wrong with a store, by what the caller should do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The caller lost the shard: drop its state and claim it again.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// The store did not answer. A commit may have happened or not: drop the shard's state,
    /// claim it again and read what is there.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The store cannot vouch for its data any more: stop answering.
    #[error("the store has stopped: {0}")]
    Poisoned(String),
}

/// Why a store takes no more for now. What it holds stays, and can be read and changed. Each says what to
/// do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hardship {
    /// There is no room. It goes by itself when rows are removed, or more room is made.
    NoRoom(String),
    /// What has to be written cannot be, for another reason than room.
    Failing(String),
}

impl Hardship {
    /// Why, and what to do about it.
    pub fn why(&self) -> &str {
        match self {
            Hardship::NoRoom(why) | Hardship::Failing(why) => why,
        }
    }
}

/// How much room a store has for what shards do, which is told to them before each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Room {
    /// For everything.
    #[default]
    Enough,
    /// Not for new tasks, nor for a history. What was taken in before goes its way.
    Little,
    /// For nothing that makes rows longer or more: only what ends them, or leaves them as they are, goes on as ever.
    None,
}

impl Room {
    /// What a hardship leaves, if nothing else is known.
    pub fn under(hardship: Option<&Hardship>) -> Room {
        match hardship {
            Some(Hardship::NoRoom(_)) => Room::Little,
            Some(Hardship::Failing(_)) | None => Room::Enough,
        }
    }
}

/// The durable, ordered home of the shards' rows. Calls block until they are done.
///
/// **Reads** see exactly what was committed. They may come from any thread.
///
/// **Rows**: a key stands at most once among the tables `Live`, `Dead` and `History` of a shard,
/// and at most once in `Settings`. A row's number (`seq`) is unique within its shard and never
/// changes; time order is the order of (`at`, `seq`).
pub trait Store: Send + Sync {
    /// Takes a shard for a time: granted if nobody owns it, the owner's lease is over, or the
    /// owner bears the same name (it has restarted). The fence is higher than any before.
    fn claim(&self, shard: ShardId, node: &Name, lease: Millis) -> Result<Claim, StoreError>;

    /// Lengthens the lease on a shard to end `lease` from now; also one that is over, if nobody
    /// else has claimed the shard since.
    fn renew(&self, shard: ShardId, fence: Fence, lease: Millis) -> Result<(), StoreError>;

    /// Gives a shard back, so that another node need not wait for the end of the lease. The
    /// fence is refused from then on.
    fn release(&self, shard: ShardId, fence: Fence) -> Result<(), StoreError>;

    /// All shards that have an owner, in order, also those whose lease is over.
    fn owners(&self) -> Result<Vec<Owner>, StoreError>;

    /// The rows under these keys, each from whichever table of `Live`, `Dead` and `History` has
    /// it, in the order of the keys.
    fn get(&self, shard: ShardId, keys: &[Key], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError>;

    /// The live rows at these positions, in the order of the positions.
    fn fetch(&self, shard: ShardId, positions: &[Position], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError>;

    /// The rows with these numbers, each from whichever table of `Live`, `Dead` and `History` has it,
    /// in the order of the numbers.
    fn numbered(&self, shard: ShardId, numbers: &[u64], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError>;

    /// The rows of a table from a position on, in time order.
    fn scan(&self, shard: ShardId, scan: &Scan) -> Result<Vec<Row>, StoreError>;

    /// The rows of a group, by their numbers.
    fn find(&self, shard: ShardId, find: &Find) -> Result<Vec<Row>, StoreError>;

    /// The rows of a table before a position, against time order.
    fn scan_back(&self, shard: ShardId, back: &ScanBack) -> Result<Vec<Row>, StoreError>;

    /// The rows of a group before a number, against the order of the numbers.
    fn find_back(&self, shard: ShardId, back: &FindBack) -> Result<Vec<Row>, StoreError>;

    /// All tallies of a shard that are not zero, in order.
    fn tallies(&self, shard: ShardId) -> Result<Vec<(Tally, i64)>, StoreError>;

    /// Makes the batches durable, each wholly or, under an old fence, not at all; answers in
    /// their order. Several batches of one shard happen in their order. On an error a first part
    /// of each shard's batches may have happened.
    ///
    /// A fence is in force from the claim that granted it until the next claim or its release, also
    /// when the lease is over; any other is refused, also where no shard was ever claimed.
    fn commit(&self, batches: Vec<Batch>) -> Result<Vec<Result<(), Fenced>>, StoreError>;

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
