//! What a step of a shard did, as the auditor gets to know it.

use std::collections::BTreeMap;

use punctual_core::store::{Batch, Change, Fence, ShardId};
use punctual_core::{Answer, Command, Delivery, Millis, Name, Reply, Timestamp};

/// Tells one request from all others of a run.
pub type Tag = u64;

/// One step: what came in, what went out, and what the clock showed.
#[derive(Clone, Debug)]
pub struct StepRecord {
    /// The node that made it.
    pub node: usize,
    /// The shard it belongs to.
    pub shard: ShardId,
    /// The fence under which it is to be written.
    pub fence: Fence,
    /// The number of the step since the shard was opened.
    pub step: u64,
    /// The shard's time.
    pub now: Timestamp,
    /// The node's time: that of its clock, as far as it believes it.
    pub clock: Timestamp,
    /// How far the store's clock may be ahead of that at most.
    pub clock_width: Millis,
    /// The right time, if the clock has been right for long enough.
    pub truth: Option<Timestamp>,
    /// The requests, in their order.
    pub requests: Vec<(Tag, Command)>,
    /// When each of them was read.
    pub read_at: BTreeMap<Tag, Timestamp>,
    /// The answers by request; those to waiting consumers are among them.
    pub answers: BTreeMap<Tag, Reply>,
    /// The consumers behind the requests for deliveries.
    pub holders: BTreeMap<Tag, Name>,
    /// In runs in which nothing delays a hand-over: since when somebody has always waited for the
    /// queue that is watched for it.
    pub waited_since: Timestamp,
    /// By how much deliveries of earlier steps were handed over later than was thought, of which the shard has heard.
    pub late: Vec<Millis>,
    /// What is to be written.
    pub batch: Option<Batch>,
}

impl StepRecord {
    /// The changes to rows.
    pub fn changes(&self) -> &[Change] {
        self.batch.as_ref().map_or(&[], |batch| &batch.changes)
    }

    /// From when the lengths of time count that a request names.
    pub fn counts_from(&self, tag: Tag) -> Timestamp {
        self.read_at.get(&tag).map_or(self.now, |read_at| (*read_at).min(self.now.plus(self.clock_width)))
    }

    /// What is handed over in this step, with the request that gets it.
    pub fn deliveries(&self) -> impl Iterator<Item = (Tag, &Delivery)> {
        self.answers.iter().flat_map(|(tag, reply)| {
            let deliveries = match reply {
                Ok(Answer::Reserved(deliveries)) => deliveries.as_slice(),
                _ => &[],
            };
            deliveries.iter().map(|delivery| (*tag, delivery))
        })
    }

    /// Whether leases begin in this step, or begin anew.
    pub fn gives_leases(&self) -> bool {
        let extended = self.answers.values().any(|reply| matches!(reply, Ok(Answer::Extended(_))));
        extended || self.deliveries().next().is_some()
    }

    /// What consumers that waited are given, with the request that gets it.
    pub fn served(&self) -> impl Iterator<Item = (Tag, &Delivery)> {
        let asked = |tag: &Tag| self.requests.iter().any(|(asked, _)| asked == tag);
        self.deliveries().filter(move |(tag, _)| !asked(tag))
    }
}
