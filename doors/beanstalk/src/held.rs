//! What a connection has reserved.
//!
//! It is what the connection remembers, and may be out of date: a lease may have ended. The shard
//! decides then, by the lease's token.

use std::collections::{BTreeSet, HashMap};

use punctual_core::{Delivery, Lease, Millis, RowId, Timestamp};

/// A job that the connection has reserved.
#[derive(Clone, Debug)]
pub(crate) struct HeldJob {
    pub row: RowId,
    pub lease: Lease,
    /// How long a lease lasts from when the client hears of it.
    lease_time: Millis,
    until: Timestamp,
}

#[derive(Default)]
pub(crate) struct Held {
    jobs: HashMap<u64, HeldJob>,
    /// By the ends of their leases.
    ends: BTreeSet<(Timestamp, u64)>,
}

impl Held {
    /// The client hears of a job now. The shard reckons a lease's end before it knows how long the commit takes, so it
    /// may lie later than the client was promised; what the client is warned of is the promise.
    pub fn insert(&mut self, id: u64, delivery: &Delivery, now: Timestamp) {
        let row = RowId { key: delivery.lease.key.clone(), number: delivery.number };
        let until = delivery.until.min(now.plus(delivery.lease_time));
        let job = HeldJob { row, lease: delivery.lease.clone(), lease_time: delivery.lease_time, until };
        self.remove(id);
        self.ends.insert((job.until, id));
        self.jobs.insert(id, job);
    }

    pub fn get(&self, id: u64) -> Option<&HeldJob> {
        self.jobs.get(&id)
    }

    pub fn remove(&mut self, id: u64) {
        if let Some(job) = self.jobs.remove(&id) {
            self.ends.remove(&(job.until, id));
        }
    }

    /// The lease ends then from now on; as in [`Held::insert`], not later than the client was promised.
    pub fn extended(&mut self, id: u64, until: Timestamp, now: Timestamp) {
        if let Some(job) = self.jobs.get_mut(&id) {
            self.ends.remove(&(job.until, id));
            job.until = until.min(now.plus(job.lease_time));
            self.ends.insert((job.until, id));
        }
    }

    /// The end of the lease that ends first, without those that have ended and those of the jobs that are `leaving`,
    /// which are in order.
    pub fn soonest(&mut self, now: Timestamp, leaving: &[u64]) -> Option<Timestamp> {
        while let Some((_, id)) = self.ends.first().copied().filter(|(until, _)| *until <= now) {
            self.remove(id);
        }
        let stays = |(_, id): &&(Timestamp, u64)| leaving.binary_search(id).is_err();
        self.ends.iter().find(stays).map(|(until, _)| *until)
    }

    /// All leases in the order in which they were got, to be given back: tokens rise.
    pub fn into_leases(self) -> Vec<Lease> {
        let mut leases: Vec<Lease> = self.jobs.into_values().map(|job| job.lease).collect();
        leases.sort_by_key(|lease| lease.token);
        leases
    }
}
