//! How a shard leaves for another node, and how it comes.

use std::time::Duration;

use punctual_core::Request;
use punctual_core::store::{Fence, Incarnation};

use super::{Aside, Inbox, Intake, Rest};
use crate::aside::Work;
use crate::caller::Caller;
use crate::sync::{Instant, lock};

/// For how long work on many rows may hold up a hand-over: whoever gets the shard goes on with it.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is to be done with a shard of which nothing is in memory or under way.
pub(crate) enum Purpose {
    /// This, and then the shard is opened again.
    Work(Work),
    /// It goes to this node.
    HandOver(Incarnation),
}

impl Inbox {
    /// No step begins any more, and when all that was sent is answered, the shard goes to another node. Says whether that
    /// can be: not if something else is to be done with it.
    pub fn hand_over(&self, to: Incarnation) -> bool {
        let mut state = lock(&self.state);
        let can_go = state.is_up && matches!(state.intake, Intake::Open) && state.aside.is_none();
        if can_go {
            state.aside = Some(Aside { purpose: Purpose::HandOver(to), until: Instant::now() + PATIENCE });
            self.wake_anyway(state);
        }
        can_go
    }

    /// Whether the shard is here, or on its way here.
    pub fn is_here(&self) -> bool {
        !matches!(lock(&self.state).intake, Intake::Away)
    }

    /// Calls a shard that is away: its runner claims it with this fence, and requests wait for it from now on. Says
    /// whether it was away.
    pub fn call_in(&self, fence: Fence) -> bool {
        let mut state = lock(&self.state);
        let is_away = matches!(state.intake, Intake::Away);
        if is_away {
            state.intake = Intake::Open;
            state.called = Some(fence);
            self.wake_anyway(state);
        }
        is_away
    }

    /// What came for a shard that was to come here, and does not, because the node stops. Only the runner calls this.
    pub fn left_behind(&self) -> Vec<Request<Caller>> {
        lock(&self.state).take_waiting()
    }

    /// Sleeps until the shard is called, and says with which fence; `None` if the node stops before. Only the runner
    /// calls this.
    pub fn stay_away(&self) -> Option<Fence> {
        let mut state = lock(&self.state);
        loop {
            if matches!(state.intake, Intake::Stopping(_)) {
                return None;
            }
            if let Some(fence) = state.called.take() {
                return Some(fence);
            }
            state.rest = Rest::Commit;
            state = self.rest(state, None);
        }
    }

    /// Lets the shard leave if nothing waits for it; else gives that back, to be passed on first, so that what comes later
    /// does not overtake it. Only the runner calls this.
    pub fn go_away(&self) -> Vec<Request<Caller>> {
        let mut state = lock(&self.state);
        state.is_up = false;
        state.aside = None;
        let waiting = state.take_waiting();
        if waiting.is_empty() && !matches!(state.intake, Intake::Stopping(_)) {
            state.intake = Intake::Away;
        }
        waiting
    }
}
