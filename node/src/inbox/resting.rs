//! How a shard's runner waits for its next turn.

use std::sync::PoisonError;
use std::time::Duration;

use punctual_core::store::Tenure;
use punctual_core::{Clock, Request, Timestamp};

use super::{Aside, Contents, Inbox, Intake, News, Purpose, Rest};
use crate::caller::Caller;
use crate::sync::{Instant, MutexGuard, lock};
use crate::turn::{Plan, Running};

/// What a runner has to do now.
pub(crate) enum Turn {
    /// Take a step, with what is to be heard of those before.
    Step(Vec<Request<Caller>>, News),
    /// Drop the shard: the store has failed it.
    Failed(String),
    /// All is durable and answered: drop the shard, and do this.
    Aside(Purpose),
    /// All is done and durable, and the node is stopping.
    Stop,
}

/// What only the runner calls.
impl Inbox {
    /// Sleeps until there is something to do. Meanwhile callers may borrow the shard.
    pub fn next(&self, clock: &dyn Clock, running: Box<Running>) -> (Box<Running>, Turn) {
        let mut state = lock(&self.state);
        state.at_rest = Some(running);
        loop {
            let Some(running) = state.at_rest.take() else {
                state.rest = Rest::Lent;
                state = self.rest(state, None);
                continue;
            };
            let wait = match state.consider(clock, &running.plan) {
                Ok(turn) => return (running, turn),
                Err(wait) => wait,
            };
            state.at_rest = Some(running);
            state = self.rest(state, wait);
        }
    }

    /// Waits until all steps up to this one are durable, or the store has failed one of them.
    pub fn settle(&self, sent: u64, settled: u64) {
        let mut state = lock(&self.state);
        while state.failed.is_none() && settled.max(state.committed) < sent {
            state.rest = Rest::Commit;
            state = self.rest(state, None);
        }
    }

    /// Takes no more requests until the shard is back; gives back those that waited. It is not set aside any more.
    pub fn go_down(&self, why: &str) -> Vec<Request<Caller>> {
        let mut state = lock(&self.state);
        if !matches!(state.intake, Intake::Stopping(_)) {
            state.intake = Intake::Down(why.to_owned());
        }
        state.aside = None;
        state.is_up = false;
        state.take_waiting()
    }

    /// The shard's latest commit that the store has confirmed so far.
    pub fn latest_confirmed(&self) -> u64 {
        lock(&self.state).confirmed
    }

    /// The shard's commits are counted anew, as in another store.
    pub fn forget_confirmed(&self) {
        lock(&self.state).confirmed = 0;
    }

    /// The shard is back, under another fence.
    pub fn come_up(&self, tenure: Tenure, claimed_at: Instant) {
        let mut state = lock(&self.state);
        state.fence = tenure.fence;
        state.claimed_at = claimed_at;
        state.confirmed = tenure.serial;
        state.committed = 0;
        state.answered = 0;
        state.late.clear();
        state.failed = None;
        state.is_up = true;
        if !matches!(state.intake, Intake::Stopping(_)) {
            state.intake = Intake::Open;
        }
    }

    /// Sleeps for a time while the shard is down; says whether the node goes on.
    pub fn stay_down(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut state = lock(&self.state);
        while !matches!(state.intake, Intake::Stopping(_)) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            state.rest = Rest::Commit;
            state = self.rest(state, Some(left));
        }
        false
    }

    pub(super) fn rest<'a>(&self, state: MutexGuard<'a, Contents>, wait: Option<Duration>) -> MutexGuard<'a, Contents> {
        let mut state = match wait {
            None => self.bell.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(wait) => self.bell.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0,
        };
        state.rest = Rest::Awake;
        state
    }
}

impl Contents {
    /// What is to be done now, or how long to sleep.
    fn consider(&mut self, clock: &dyn Clock, plan: &Plan) -> Result<Turn, Option<Duration>> {
        if let Some(why) = self.failed.take() {
            return Ok(Turn::Failed(why));
        }
        let settled = plan.settled.max(self.committed);
        let may_step = match plan.sent - settled {
            0 => true,
            unsettled => unsettled < plan.in_flight && self.waiting() >= plan.worthwhile,
        };
        if let Some(aside) = self.aside.take_if(|_| !matches!(self.intake, Intake::Stopping(_))) {
            return self.make_way(aside, plan, may_step, settled);
        }
        if may_step && self.has_work() {
            return Ok(Turn::Step(self.take(plan.step, plan.step_bytes), self.news(settled)));
        }
        if let Intake::Stopping(until) = self.intake {
            // Nothing is done beside the end.
            self.aside = None;
            if may_step && plan.wake == Timestamp::ZERO && Instant::now() < until {
                return Ok(Turn::Step(Vec::new(), self.news(settled)));
            }
            if plan.sent <= plan.settled.max(self.answered) {
                return Ok(Turn::Stop);
            }
            self.rest = Rest::Commit;
            return Err(None);
        }
        if !may_step {
            self.rest = Rest::Commit;
            return Err(None);
        }
        let wait = sleep_until(plan.wake, clock.micros());
        if wait == Some(Duration::ZERO) {
            return Ok(Turn::Step(Vec::new(), self.news(settled)));
        }
        self.rest = Rest::Idle;
        Err(wait.map(|wait| wait.min(plan.recheck)))
    }

    /// The same for a shard that is to be set aside.
    fn make_way(&mut self, aside: Aside, plan: &Plan, may_step: bool, settled: u64) -> Result<Turn, Option<Duration>> {
        if plan.wake == Timestamp::ZERO && may_step && Instant::now() < aside.until {
            self.aside = Some(aside);
            return Ok(Turn::Step(Vec::new(), self.news(settled)));
        }
        if plan.sent <= plan.settled.max(self.answered) {
            return Ok(Turn::Aside(aside.purpose));
        }
        self.aside = Some(aside);
        self.rest = Rest::Commit;
        Err(None)
    }
}

/// How long to sleep at this time; `None` means until something happens.
///
/// Timestamps are whole milliseconds and the clock is finer: the sleep ends when the millisecond
/// turns, not up to one later. Should it end a little early, the next one is so much shorter.
pub(crate) fn sleep_until(wake: Timestamp, micros: u64) -> Option<Duration> {
    match wake {
        Timestamp::NEVER => None,
        Timestamp::ZERO => Some(Duration::ZERO),
        wake => Some(Duration::from_micros((wake.as_millis() * 1_000).saturating_sub(micros))),
    }
}
