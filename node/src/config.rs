//! How a node works.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use punctual_center::{Card, Links};
use punctual_core::{Millis, Name, ShardConfig};

use crate::archive::Archive;
use crate::tracer::Tracer;

/// The levels of what is stored that this version reads and writes.
pub const LEVELS: RangeInclusive<u32> = 1..=1;

/// How a node works. [`NodeConfig::new`] gives the defaults.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The node's name. No two nodes on one store may bear the same: the second one waits until the lease of the first
    /// is over, as a restarted one does, and gives up if it is not.
    pub name: Name,
    /// The way to other nodes on the same store. Without, this one has to have all shards to itself.
    pub links: Option<Arc<dyn Links>>,
    /// The levels of what is stored that the node can read and write. Only tests have others than the usual ones.
    pub levels: RangeInclusive<u32>,
    /// What the node says of itself to others: where it is reached.
    pub card: Card,
    /// Into how many shards the tasks are divided. It belongs to the store's content: a task is
    /// looked for in the shard that this number and the hash of its topic and id give. The first
    /// start notes it there, and a start with another one is refused.
    pub shards: u16,
    /// How many requests may wait in each shard's inbox before more are refused as overload.
    pub inbox: usize,
    /// How many requests one step takes at most.
    pub step: usize,
    /// How many steps of a shard may wait for their commit while the next one forms. More would not
    /// be faster: what waits longer makes the next batch larger.
    pub in_flight: usize,
    /// Whether a caller who finds the node at rest takes the step itself, up to the commit, in its own thread: a
    /// lone request is answered sooner so, but its thread waits for the disk. For runtimes of several threads, and
    /// only heeded with one shard.
    pub callers_step: bool,
    /// How many bytes of answers may be under way together. Beyond it lists are refused as overload, and consumers get
    /// nothing but a short delivery each, until some have been read.
    pub answers_bytes: u64,
    /// How each shard works. Each gets a seed of its own from the one in here, and the number of
    /// shards from above.
    pub shard: ShardConfig,
    /// For how long a beat of the node counts; it beats six times in that time. A node that dies
    /// without saying goodbye leaves its shards to others, or to its next life, after this.
    pub ownership: Millis,
    /// How soon a step of the wall clock is noticed while nothing else happens.
    pub recheck: Duration,
    /// How many threads read from the store for those who only look.
    pub readers: usize,
    /// How many of their reads may wait before more are refused as overload.
    pub reads: usize,
    /// Where finished tasks go when their topic has kept them for its time. Without, they are removed then;
    /// with, they are removed as soon as they are there.
    pub archive: Option<Arc<dyn Archive>>,
    /// How often it is looked for finished tasks to archive.
    pub archive_every: Duration,
    /// How many topics, and how many queues, get series of their own: what happened to them by time, up to two days ago.
    /// Each may take 260 KB of memory.
    pub series: usize,
    /// Who makes spans of what happens. Without, nothing is told and no task carries a trace that did not come with it.
    pub tracer: Option<Arc<dyn Tracer>>,
}

impl NodeConfig {
    /// The defaults, for a node of this name.
    pub fn new(name: Name) -> NodeConfig {
        NodeConfig {
            name,
            links: None,
            levels: LEVELS,
            card: Card::default(),
            shards: 1,
            inbox: 1 << 14,
            step: 1_024,
            in_flight: 3,
            callers_step: false,
            answers_bytes: 256 << 20,
            shard: ShardConfig::default(),
            ownership: Millis::from_secs(3),
            recheck: Duration::from_secs(1),
            readers: 2,
            reads: 1_024,
            archive: None,
            archive_every: Duration::from_secs(10),
            series: 64,
            tracer: None,
        }
    }

    /// The same with so many shards.
    #[must_use]
    pub fn shards(mut self, shards: u16) -> NodeConfig {
        self.shards = shards;
        self
    }

    /// What contradicts itself, if anything does.
    pub(crate) fn check(&self) -> Result<(), String> {
        let at_least_one = [
            ("shards", usize::from(self.shards)),
            ("inbox", self.inbox),
            ("step", self.step),
            ("in_flight", self.in_flight),
            ("readers", self.readers),
            ("reads", self.reads),
        ];
        if let Some((what, _)) = at_least_one.into_iter().find(|(_, number)| *number == 0) {
            return Err(format!("`{what}` is 0: it must be at least 1"));
        }
        if self.ownership < Millis(6) {
            return Err("`ownership` is too short to be kept in time: use a second or more".into());
        }
        Ok(())
    }
}
