//! Lending a shard whose runner rests to callers, who take the next turn themselves.

use punctual_core::{Request, Timestamp};

use super::{Contents, Inbox, Intake, News, Rest};
use crate::caller::Caller;
use crate::sync::{MutexGuard, lock};
use crate::turn::Running;

/// Up to how many requests at once a caller steps itself: more work is better shared with the committer.
pub(super) const CALLERS_STEP: usize = 64;

/// Who takes the next turn.
#[must_use]
#[derive(Clone, Copy)]
pub(crate) enum Next {
    /// The runner, or a caller who has promised it before.
    Runner,
    /// Whoever hears this.
    Caller {
        /// Others are about to come, and had better be let in first.
        has_company: bool,
    },
}

/// The shard in the hands of a caller who takes a turn; it goes back also in a panic.
pub(crate) struct BorrowedShard<'a> {
    inbox: &'a Inbox,
    running: Option<Box<Running>>,
    /// When the runner wakes by itself.
    wake: Timestamp,
}

impl BorrowedShard<'_> {
    pub fn running(&mut self) -> &mut Running {
        self.running.as_mut().expect("it is given back at the end")
    }

    /// The shard's memory cannot be trusted any more.
    pub fn fail(&self, why: &str) {
        lock(&self.inbox.state).failed.get_or_insert_with(|| why.to_owned());
    }
}

impl Drop for BorrowedShard<'_> {
    fn drop(&mut self) {
        let running = self.running.take().expect("it is given back here only");
        let mut state = lock(&self.inbox.state);
        let is_early = running.plan.wake < self.wake;
        let is_wanted = state.rest == Rest::Lent || state.has_work() || state.failed.is_some() || is_early;
        state.has_company |= state.has_work();
        state.at_rest = Some(running);
        if is_wanted {
            self.inbox.wake_anyway(state);
        }
    }
}

impl Inbox {
    /// Leaves the next turn to the caller if the runner rests, and to the runner else.
    pub(super) fn call(&self, mut state: MutexGuard<'_, Contents>) -> Next {
        if state.is_promised && state.rest == Rest::Idle {
            return Next::Runner;
        }
        if self.lends && state.rest == Rest::Idle {
            state.is_promised = true;
            return Next::Caller { has_company: state.has_company };
        }
        self.wake(state);
        Next::Runner
    }

    /// Lends the shard to a caller who has promised to take the turn, with what waits and what is to be heard of steps before,
    /// unless the runner was faster.
    pub fn borrow(&self) -> Option<(BorrowedShard<'_>, Vec<Request<Caller>>, News)> {
        let mut state = lock(&self.state);
        let may_turn = state.rest == Rest::Idle && state.has_work() && state.failed.is_none() && state.aside.is_none();
        if !may_turn || !matches!(state.intake, Intake::Open) {
            return None;
        }
        // While a commit is under way the next turn had better be a large one.
        let committed = state.committed;
        let running = state.at_rest.take_if(|running| running.plan.sent <= running.plan.settled.max(committed))?;
        let settled = running.plan.settled.max(committed);
        let (wake, requests) = (running.plan.wake, state.take(running.plan.step, running.plan.step_bytes));
        state.has_company = requests.len() > 1;
        let news = state.news(settled);
        Some((BorrowedShard { inbox: self, running: Some(running), wake }, requests, news))
    }

    /// The caller who has promised to take a turn has done so, or never will.
    pub fn release_from_duty(&self) {
        let mut state = lock(&self.state);
        state.is_promised = false;
        if state.has_work() {
            self.wake(state);
        }
    }

    /// Whether nothing waits.
    pub fn is_quiet(&self) -> bool {
        !lock(&self.state).has_work()
    }
}
