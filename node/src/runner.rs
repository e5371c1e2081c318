//! A shard's runner: the thread on which its steps are taken, one after the other.
//!
//! A step takes all that waits. While the committer makes it durable the next one forms, up to a
//! few: then the runner waits, and the next batch grows by itself.

use std::sync::Arc;
use std::time::Duration;

use punctual_core::store::{Claim, Fence, Incarnation, Roll, ShardId, Tenure, Terms};
use punctual_core::{OpenError, Shard, ShardConfig};

use punctual_center::{Asking, Place};

use crate::aside::Work;
use crate::beats::taken_name;
use crate::caller::Caller;
use crate::claims::held_by_another;
use crate::config::NodeConfig;
use crate::error::Error;
use crate::inbox::{Inbox, Purpose, Turn};
use crate::shared::Shared;
use crate::sync::Instant;
use crate::turn::Running;

/// The first wait before a lost shard is claimed again, and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// How many of the changes that a batch may have are for one of the kinds of what changes rows in a step: requests,
/// deliveries that are handed out, and work on many rows.
pub(crate) fn share_of(changes: usize) -> usize {
    (changes / 3).max(1)
}

/// The configuration of one of the shards: each has its own seed, and all know how many they are, on which terms the
/// store works and whether there is an archive that takes their history.
pub(crate) fn shard_config(config: &NodeConfig, terms: &Terms, shard: ShardId) -> ShardConfig {
    let apart = u64::from(shard.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ShardConfig {
        shards: config.shards,
        keeps_history: config.shard.keeps_history || config.archive.is_some(),
        hand_outs: config.shard.hand_outs.min(share_of(terms.batch_changes)),
        seed: config.shard.seed ^ apart,
        ..config.shard.clone()
    }
}

/// Runs a shard, whenever it is here, until the node stops.
pub(crate) fn run(shared: &Arc<Shared>, id: ShardId, mut shard: Option<Shard<Caller>>) {
    let fence = shard.as_ref().map_or(Fence::default(), |shard| shard.tenure().fence);
    let mut runner = Runner { shared, id, inbox: shared.inbox(id), fence };
    while let Some(opened) = shard.take().or_else(|| runner.come()) {
        match runner.work(Running::new(opened, runner.fence, &shared.config, &shared.store.terms())) {
            End::Stopped => return runner.release(),
            End::Failed(why) => shard = runner.open_again(why),
            End::SetAside(tenure, Purpose::Work(work)) => shard = runner.make_way(tenure, work),
            End::SetAside(_, Purpose::HandOver(to)) => shard = runner.hand_over(&to),
        }
    }
}

/// Why a runner lets go of a shard.
enum End {
    /// The node stops, and all is done.
    Stopped,
    /// The shard's memory cannot be trusted any more.
    Failed(String),
    /// Something is to be done with the shard that its memory must not know of. All it sent is durable and answered.
    SetAside(Tenure, Purpose),
}

struct Runner<'a> {
    shared: &'a Shared,
    id: ShardId,
    inbox: &'a Inbox,
    fence: Fence,
}

impl Runner<'_> {
    /// Takes turns as long as it can.
    fn work(&self, mut running: Box<Running>) -> End {
        loop {
            let turn;
            (running, turn) = self.inbox.next(&*self.shared.clock, running);
            let (requests, news) = match turn {
                Turn::Step(requests, news) => (requests, news),
                Turn::Failed(why) => return End::Failed(why),
                Turn::Aside(purpose) => return End::SetAside(running.shard.tenure(), purpose),
                Turn::Stop => return End::Stopped,
            };
            if let Err(error) = running.turn(self.shared, requests, news) {
                self.shared.heed(&error);
                // What was sent before is not touched by this, and may still become durable.
                self.inbox.settle(running.plan.sent, running.plan.settled);
                return End::Failed(error.to_string());
            }
        }
    }

    /// Does what is to be done while the shard is set aside, and opens it again. Consumers do not wait for it meanwhile.
    fn make_way(&mut self, tenure: Tenure, work: Work) -> Option<Shard<Caller>> {
        self.shared.forget_shard(self.id);
        let tell = work(tenure);
        self.inbox.forget_confirmed();
        let claimed = self.claim();
        tell();
        claimed.map_or_else(|why| self.open_again(why), Some)
    }

    /// Gives the shard to another node. If it is not known whether that has happened, the store says so later.
    fn hand_over(&mut self, to: &Incarnation) -> Option<Shard<Caller>> {
        self.shared.forget_shard(self.id);
        match self.shared.store.release(self.id, self.fence, Some(to)) {
            Ok(fence) => {
                self.shared.correct_place(self.id, fence, Some(to));
                self.shared.say_handed(to, self.id, fence);
                self.go_away();
                None
            }
            Err(error) => {
                let why = self.note(error);
                self.open_again(why)
            }
        }
    }

    /// The shard is elsewhere from now on, and so goes what waits for it.
    fn go_away(&self) {
        loop {
            let waiting = self.inbox.go_away();
            if waiting.is_empty() {
                return;
            }
            self.shared.pass_on(self.id, waiting);
        }
    }

    /// Waits until the shard is called here, and gets it; `None` if the node stops before.
    fn come(&mut self) -> Option<Shard<Caller>> {
        loop {
            let Some(fence) = self.inbox.stay_away() else {
                self.turn_away();
                return None;
            };
            let claimed_at = Instant::now();
            match self.claim_with(fence, claimed_at) {
                Ok(shard) => return Some(shard),
                Err(why) => {
                    // If it is to be here all the same, the next beat calls it again.
                    tracing::info!(shard = self.id.0, why, "a shard could not be taken");
                    self.shared.shard_left(self.id);
                    self.go_away();
                }
            }
        }
    }

    /// Tells those who waited for a shard that does not come any more that nothing was done: others may ask where it is.
    fn turn_away(&self) {
        for request in self.shared.deny_foreign(self.id, self.inbox.left_behind()) {
            self.shared.answer(request.reply, Err(Error::Stopping));
        }
    }

    /// Tells everybody that the shard is gone, and gets it back; `None` if the node stops before, or another one has it.
    fn open_again(&mut self, mut why: String) -> Option<Shard<Caller>> {
        let mut wait = BACKOFF.0;
        loop {
            if self.shared.peers.has_links() && matches!(self.shared.place(self.id), Place::At(_)) {
                self.shared.forget_shard(self.id);
                self.go_away();
                return None;
            }
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

    /// Claims the shard again if nobody else has it.
    fn claim(&mut self) -> Result<Shard<Caller>, String> {
        let claimed_at = Instant::now();
        let (asking, roll) = self.shared.beat().map_err(|error| self.note(error))?;
        if !self.shared.counts(&roll) {
            return Err(taken_name(self.shared));
        }
        let fence = self.fence_to_claim(asking, &roll)?;
        self.claim_with(fence, claimed_at)
    }

    fn fence_to_claim(&self, asking: Asking, roll: &Roll) -> Result<Fence, String> {
        let (shard, fence) = (self.id, roll.fence(self.id));
        if let Some((by, until)) = held_by_another(roll, shard, &self.shared.who) {
            self.shared.told_place(asking, shard, fence, Some(by));
            return Err(format!("{shard} is owned by node {} until {until}", by.node));
        }
        Ok(fence)
    }

    fn claim_with(&mut self, fence: Fence, claimed_at: Instant) -> Result<Shard<Caller>, String> {
        let Shared { store, clock, config, who, .. } = self.shared;
        let claims = store.claim(who, &[(self.id, fence)]).map_err(|error| self.note(error))?;
        let [Claim::Granted(tenure)] = claims[..] else {
            return Err(format!("{} was claimed by another node at the same time", self.id));
        };
        self.compare(tenure);
        self.shared.check_level().map_err(|error| self.note(error))?;
        // What the shard was set aside for may have brought it to where other terms hold.
        let terms = store.terms();
        self.shared.assign_lane(self.id, &terms);
        let config = shard_config(config, &terms, self.id);
        let shard = Shard::open(self.id, tenure, config, clock.now(), &**store);
        let shard = shard.map_err(|error| self.note(error))?;
        self.fence = tenure.fence;
        self.shared.expect_shard(self.id);
        self.shared.correct_place(self.id, tenure.fence, Some(&self.shared.who));
        self.inbox.come_up(shard.tenure(), claimed_at);
        Ok(shard)
    }

    /// Says so if the store does not have all that it confirmed.
    fn compare(&self, tenure: Tenure) {
        let confirmed = self.inbox.latest_confirmed();
        if tenure.serial < confirmed {
            let lost = confirmed - tenure.serial;
            self.shared.meter.lost(lost);
            tracing::error!(
                shard = self.id.0,
                lost,
                "the store has lost commits that it had confirmed, as after a failover to a copy that was behind: tasks of \
                 the last moments may be missing, and deliveries may come twice"
            );
        }
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
        _ = self.shared.store.release(self.id, self.fence, None);
    }
}
