//! A shard's inbox: where requests wait, and where its runner sleeps.
//!
//! One lock for everything a runner waits for, so that it takes all of it at once and is woken by a
//! system call only if it sleeps. Requests are bounded. What the node itself has to tell is not:
//! it is bounded by what was taken in before, and must get through for the rest to go on.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use punctual_core::store::Fence;
use punctual_core::{Clock, Command, Request, Timestamp};

use crate::caller::Caller;
use crate::error::Error;
use crate::lock::lock;

pub(crate) struct Inbox {
    state: Mutex<State>,
    bell: Condvar,
    /// How many requests may wait.
    room: usize,
}

struct State {
    requests: Vec<Request<Caller>>,
    /// The node's own requests, which come before the others and have no bound.
    errands: Vec<Request<Caller>>,
    /// Somebody waits on the board for what this shard has.
    look: bool,
    /// The fence under which the shard runs; word of older ones comes too late.
    fence: Fence,
    /// When the shard's claim was made or renewed.
    claimed_at: Instant,
    /// The latest step that is durable.
    committed: u64,
    /// The latest step whose answers are out.
    answered: u64,
    /// The store has failed this shard.
    failed: Option<String>,
    door: Door,
    rest: Rest,
}

enum Door {
    Open,
    /// The shard is not here for now.
    Down(String),
    /// What is there is finished, but work on many rows is not waited for longer than this.
    Stopping(Instant),
}

/// For how long work on many rows may hold up the end.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a runner sleeps for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Awake,
    /// Anything.
    Idle,
    /// A commit, or bad news.
    Commit,
}

/// What a runner knows before it sleeps.
pub(crate) struct Plan {
    /// When it wants to be woken; [`Timestamp::ZERO`] means that it has more to do at once.
    pub wake: Timestamp,
    /// The latest step it has handed to the committer.
    pub sent: u64,
    /// The latest step it knows to be settled.
    pub settled: u64,
    /// How many steps may be unsettled.
    pub in_flight: u64,
    /// How many requests it takes.
    pub step: usize,
    /// How soon a step of the wall clock has to be noticed.
    pub recheck: Duration,
}

/// What a runner has to do now.
pub(crate) enum Turn {
    /// Take a step; the given one is durable.
    Step(Vec<Request<Caller>>, u64),
    /// Drop the shard: the store has failed it.
    Failed(String),
    /// All is done and durable, and the node is stopping.
    Stop,
}

impl Inbox {
    /// The inbox of a shard that runs under this fence, claimed at this time.
    pub fn new(room: usize, fence: Fence, claimed_at: Instant) -> Inbox {
        let state = State {
            requests: Vec::new(),
            errands: Vec::new(),
            look: false,
            fence,
            claimed_at,
            committed: 0,
            answered: 0,
            failed: None,
            door: Door::Open,
            rest: Rest::Awake,
        };
        Inbox { state: Mutex::new(state), bell: Condvar::new(), room }
    }

    /// Puts a request in, if there is room.
    pub fn push(&self, command: Command, caller: Caller) -> Result<(), Error> {
        let mut state = lock(&self.state);
        state.check_door()?;
        if state.requests.len() >= self.room {
            return Err(Error::Overloaded);
        }
        state.requests.push(Request { command, reply: caller });
        self.wake(state);
        Ok(())
    }

    /// Puts requests in as long as there is room, or all of them if the bound does not apply; gives
    /// back the others and why.
    pub fn push_all(
        &self,
        mut requests: Vec<Request<Caller>>,
        is_bounded: bool,
    ) -> Option<(Vec<Request<Caller>>, Error)> {
        let mut state = lock(&self.state);
        if let Err(error) = state.check_door() {
            return Some((requests, error));
        }
        let room = if is_bounded { self.room.saturating_sub(state.requests.len()) } else { usize::MAX };
        let rest = (requests.len() > room).then(|| requests.split_off(room));
        state.requests.append(&mut requests);
        self.wake(state);
        rest.map(|rest| (rest, Error::Overloaded))
    }

    /// Puts in what the node itself has to tell, also while it is stopping. If the shard is not
    /// here, it is dropped: what comes of that is looked after by timers in the shard.
    pub fn tell(&self, command: Command, caller: Caller) {
        let mut state = lock(&self.state);
        if !matches!(state.door, Door::Down(_)) {
            state.errands.push(Request { command, reply: caller });
            self.wake(state);
        }
    }

    /// Somebody waits on the board for what this shard has.
    pub fn look(&self) {
        let mut state = lock(&self.state);
        state.look = true;
        self.wake(state);
    }

    /// A step is durable, and so are all before it.
    pub fn committed(&self, fence: Fence, step: u64) {
        let mut state = lock(&self.state);
        if state.fence == fence {
            state.committed = step;
            // A runner that sleeps for anything else need not know yet.
            if state.rest == Rest::Commit {
                self.wake_anyway(state);
            }
        }
    }

    /// The answers of a step are out, and so are those of all before it.
    pub fn answered(&self, fence: Fence, step: u64) {
        let mut state = lock(&self.state);
        if state.fence == fence {
            state.answered = step;
            if matches!(state.door, Door::Stopping(_)) {
                self.wake_anyway(state);
            }
        }
    }

    /// The store has failed the shard that ran under this fence.
    pub fn failed(&self, fence: Fence, why: &str) {
        let mut state = lock(&self.state);
        if state.fence == fence && state.failed.is_none() {
            state.failed = Some(why.to_owned());
            self.wake_anyway(state);
        }
    }

    /// The fence under which the shard runs and when its claim was last renewed, unless it is down.
    pub fn claim(&self) -> Option<(Fence, Instant)> {
        let state = lock(&self.state);
        (!matches!(state.door, Door::Down(_))).then_some((state.fence, state.claimed_at))
    }

    /// The shard's claim was renewed, at this time or after it.
    pub fn renewed(&self, fence: Fence, at: Instant) {
        let mut state = lock(&self.state);
        if state.fence == fence {
            state.claimed_at = at;
        }
    }

    /// No more requests are taken; the runner finishes what is there.
    pub fn stop(&self) {
        let mut state = lock(&self.state);
        state.door = Door::Stopping(Instant::now() + PATIENCE);
        self.wake_anyway(state);
    }

    /// Whether requests are taken.
    pub fn ready(&self) -> Result<(), Error> {
        lock(&self.state).check_door()
    }

    /// How many requests wait.
    pub fn len(&self) -> usize {
        lock(&self.state).requests.len()
    }

    /// Wakes the runner, unless it could not begin a step.
    fn wake(&self, state: MutexGuard<'_, State>) {
        if state.rest == Rest::Idle {
            self.wake_anyway(state);
        }
    }

    fn wake_anyway(&self, mut state: MutexGuard<'_, State>) {
        let was_asleep = std::mem::replace(&mut state.rest, Rest::Awake) != Rest::Awake;
        drop(state);
        if was_asleep {
            self.bell.notify_one();
        }
    }
}

/// What only the runner calls.
impl Inbox {
    /// Sleeps until there is something to do.
    pub fn next(&self, clock: &dyn Clock, plan: &Plan) -> Turn {
        let mut state = lock(&self.state);
        loop {
            if let Some(why) = state.failed.take() {
                return Turn::Failed(why);
            }
            let settled = plan.settled.max(state.committed);
            let may_step = plan.sent - settled < plan.in_flight;
            if may_step && state.has_work() {
                return Turn::Step(state.take(plan.step), settled);
            }
            let mut wait = None;
            if let Door::Stopping(until) = state.door {
                if may_step && plan.wake == Timestamp::ZERO && Instant::now() < until {
                    return Turn::Step(Vec::new(), settled);
                }
                if plan.sent <= plan.settled.max(state.answered) {
                    return Turn::Stop;
                }
                state.rest = Rest::Commit;
            } else if may_step {
                wait = sleep_until(plan.wake, clock);
                if wait == Some(Duration::ZERO) {
                    return Turn::Step(Vec::new(), settled);
                }
                state.rest = Rest::Idle;
            } else {
                state.rest = Rest::Commit;
            }
            state = self.rest(state, wait.map(|wait| wait.min(plan.recheck)));
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

    /// Takes no more requests until the shard is back; gives back those that waited.
    pub fn go_down(&self, why: &str) -> Vec<Request<Caller>> {
        let mut state = lock(&self.state);
        if !matches!(state.door, Door::Stopping(_)) {
            state.door = Door::Down(why.to_owned());
        }
        let mut waiting = std::mem::take(&mut state.errands);
        waiting.append(&mut state.requests);
        waiting
    }

    /// The shard is back, under another fence.
    pub fn come_up(&self, fence: Fence, claimed_at: Instant) {
        let mut state = lock(&self.state);
        state.fence = fence;
        state.claimed_at = claimed_at;
        state.committed = 0;
        state.answered = 0;
        state.failed = None;
        if !matches!(state.door, Door::Stopping(_)) {
            state.door = Door::Open;
        }
    }

    /// Sleeps for a time while the shard is down; says whether the node goes on.
    pub fn stay_down(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut state = lock(&self.state);
        while !matches!(state.door, Door::Stopping(_)) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            state.rest = Rest::Commit;
            state = self.rest(state, Some(left));
        }
        false
    }

    fn rest<'a>(&self, state: MutexGuard<'a, State>, wait: Option<Duration>) -> MutexGuard<'a, State> {
        let mut state = match wait {
            None => self.bell.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(wait) => self.bell.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0,
        };
        state.rest = Rest::Awake;
        state
    }
}

impl State {
    fn check_door(&self) -> Result<(), Error> {
        match &self.door {
            Door::Open => Ok(()),
            Door::Down(why) => Err(Error::nothing_done(why)),
            Door::Stopping(_) => Err(Error::Stopping),
        }
    }

    fn has_work(&self) -> bool {
        self.look || !self.requests.is_empty() || !self.errands.is_empty()
    }

    /// Takes what waits, at most so many requests.
    fn take(&mut self, most: usize) -> Vec<Request<Caller>> {
        self.look = false;
        let mut taken = std::mem::take(&mut self.errands);
        let most = most.saturating_sub(taken.len()).max(1);
        if self.requests.len() > most {
            let rest = self.requests.split_off(most);
            taken.append(&mut std::mem::replace(&mut self.requests, rest));
        } else if taken.is_empty() {
            taken = std::mem::take(&mut self.requests);
        } else {
            taken.append(&mut self.requests);
        }
        taken
    }
}

/// How long to sleep; `None` means until something happens.
///
/// Timestamps are whole milliseconds and the clock is finer: the sleep ends when the millisecond
/// turns, not up to one later. Should it end a little early, the next one is so much shorter.
pub(crate) fn sleep_until(wake: Timestamp, clock: &dyn Clock) -> Option<Duration> {
    match wake {
        Timestamp::NEVER => None,
        Timestamp::ZERO => Some(Duration::ZERO),
        wake => Some(Duration::from_micros((wake.as_millis() * 1_000).saturating_sub(clock.micros()))),
    }
}
