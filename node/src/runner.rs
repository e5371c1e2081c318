//! A shard's runner: the thread on which its steps are taken, one after the other.
//!
//! A step takes all that waits. While the committer makes it durable the next one forms, up to a
//! few: then the runner waits, and the next batch grows by itself.

use std::sync::Arc;
use std::time::Duration;

use punctual_core::store::{Claim, Fence, ShardId};
use punctual_core::{OpenError, Shard, ShardConfig};

use crate::caller::Caller;
use crate::config::NodeConfig;
use crate::inbox::{Inbox, Turn};
use crate::shared::Shared;
use crate::sync::Instant;
use crate::turn::Running;

/// The first wait before a lost shard is claimed again, and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// The configuration of one of the shards: each has its own seed, and all know how many they are and
/// whether there is an archive that takes their history.
pub(crate) fn shard_config(config: &NodeConfig, shard: ShardId) -> ShardConfig {
    let apart = u64::from(shard.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let keeps_history = config.shard.keeps_history || config.archive.is_some();
    ShardConfig { shards: config.shards, keeps_history, seed: config.shard.seed ^ apart, ..config.shard.clone() }
}

/// Runs a shard until the node stops.
pub(crate) fn run(shared: &Arc<Shared>, shard: Shard<Caller>, fence: Fence) {
    let mut runner = Runner { shared, id: shard.id(), inbox: shared.inbox(shard.id()), fence };
    let mut shard = Some(shard);
    while let Some(opened) = shard.take() {
        match runner.work(Running::new(opened, runner.fence, &shared.config)) {
            Ok(()) => return runner.release(),
            Err(why) => shard = runner.open_again(why),
        }
    }
}

struct Runner<'a> {
    shared: &'a Shared,
    id: ShardId,
    inbox: &'a Inbox,
    fence: Fence,
}

impl Runner<'_> {
    /// Takes turns until the node stops. Comes back with a reason if the shard's memory cannot be trusted any more.
    fn work(&self, mut running: Box<Running>) -> Result<(), String> {
        loop {
            let turn;
            (running, turn) = self.inbox.next(&*self.shared.clock, running);
            let (requests, news) = match turn {
                Turn::Step(requests, news) => (requests, news),
                Turn::Failed(why) => return Err(why),
                Turn::Stop => return Ok(()),
            };
            if let Err(error) = running.turn(self.shared, requests, news) {
                self.shared.heed(&error);
                // What was sent before is not touched by this, and may still become durable.
                self.inbox.settle(running.plan.sent, running.plan.settled);
                return Err(error.to_string());
            }
        }
    }

    /// Tells everybody that the shard is gone, and gets it back; `None` if the node stops before.
    fn open_again(&mut self, mut why: String) -> Option<Shard<Caller>> {
        let mut wait = BACKOFF.0;
        loop {
            self.shared.refuse_all(self.id, &why);
            if !self.inbox.stay_down(wait) {
                return None;
            }
            wait = (wait * 2).min(BACKOFF.1);
            if self.shared.poisoned().is_some() {
                continue;
            }
            match self.claim() {
                Ok(shard) => return Some(shard),
                Err(again) => why = again,
            }
        }
    }

    fn claim(&mut self) -> Result<Shard<Caller>, String> {
        let Shared { store, clock, config, .. } = self.shared;
        let claimed_at = Instant::now();
        let claim = store.claim(self.id, &config.name, config.ownership);
        let fence = match claim.map_err(|error| self.note(error))? {
            Claim::Granted(fence) => fence,
            Claim::Held { by, until } => return Err(format!("{:?} is owned by node {by} until {until}", self.id)),
        };
        let shard = Shard::open(self.id, fence, shard_config(config, self.id), clock.now(), &**store);
        let shard = shard.map_err(|error| self.note(error))?;
        self.shared.learn_queues(self.id).map_err(|error| self.note(error))?;
        self.fence = fence;
        self.shared.expect_shard(self.id);
        self.inbox.come_up(fence, claimed_at);
        Ok(shard)
    }

    fn note(&self, error: impl Into<OpenError>) -> String {
        let error = error.into();
        if let OpenError::Store(error) = &error {
            self.shared.heed(error);
        }
        error.to_string()
    }

    /// Gives the shard back. If that fails, its lease ends by itself.
    fn release(&self) {
        _ = self.shared.store.release(self.id, self.fence);
    }
}
