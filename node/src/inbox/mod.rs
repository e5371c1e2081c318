//! A shard's inbox: where requests wait, and where its runner sleeps.
//!
//! One lock for everything a runner waits for, so that it takes all of it at once and is woken by a
//! system call only if it sleeps. Requests are bounded. What the node itself has to tell is not:
//! it is bounded by what was taken in before, and must get through for the rest to go on.

mod lending;
mod moving;
mod resting;

use lending::CALLERS_STEP;
pub(crate) use lending::Next;
pub(crate) use moving::Purpose;
pub(crate) use resting::{Turn, sleep_until};

use std::time::Duration;

use punctual_core::store::{Fence, Tenure};
use punctual_core::{Millis, Request};

use crate::aside::Work;
use crate::caller::Caller;
use crate::config::NodeConfig;
use crate::error::Error;
use crate::sync::{Condvar, Instant, Mutex, MutexGuard, lock};
use crate::turn::Running;

pub(crate) struct Inbox {
    state: Mutex<Contents>,
    bell: Condvar,
    /// How many requests may wait.
    room: usize,
    /// Whether callers may borrow the shard.
    lends: bool,
}

/// What a shard hears of its steps before the next one.
pub(crate) struct News {
    /// The latest that is durable.
    pub settled: u64,
    /// Those whose deliveries reach their consumers later than was thought, and by how much.
    pub late: Vec<(u64, Millis)>,
}

struct Contents {
    requests: Vec<Request<Caller>>,
    /// The node's own requests, which come before the others and have no bound.
    errands: Vec<Request<Caller>>,
    /// Somebody waits on the board for what this shard has.
    look: bool,
    /// The fence under which the shard runs; word of older ones comes too late.
    fence: Fence,
    /// When the shard was claimed, or the node's beat last showed that it still is.
    claimed_at: Instant,
    /// The shard's latest commit that the store has confirmed, under this fence or another one.
    confirmed: u64,
    /// The latest step that is durable.
    committed: u64,
    /// The latest step whose answers are out.
    answered: u64,
    /// Which deliveries leave late, as far as the shard has not heard of it.
    late: Vec<(u64, Millis)>,
    /// The store has failed this shard.
    failed: Option<String>,
    /// What is to be done with the shard that its memory must not know of.
    aside: Option<Aside>,
    intake: Intake,
    /// Whether the shard runs under the fence: it is neither down nor away, nor on its way.
    is_up: bool,
    /// The shard is to be claimed with this fence.
    called: Option<Fence>,
    rest: Rest,
    /// The shard, while its runner rests.
    at_rest: Option<Box<Running>>,
    /// A caller has promised to take the next turn.
    is_promised: bool,
    /// When a caller took a turn last, others came with requests of their own.
    has_company: bool,
}

/// What is to be done with a shard that its memory must not know of.
struct Aside {
    purpose: Purpose,
    /// Until when work on many rows is waited for.
    until: Instant,
}

enum Intake {
    Open,
    /// The shard is at another node, or at none: what comes goes on to where it is.
    Away,
    /// The shard is not here for now.
    Down(String),
    /// What is there is finished, but work on many rows is not waited for longer than this.
    Stopping(Instant),
}

/// Requests that an inbox does not take.
pub(crate) struct Turned {
    pub requests: Vec<Request<Caller>>,
    /// What they hear; nothing if they are to be passed on to where the shard is.
    pub why: Option<Error>,
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
    /// The shard, which a caller has borrowed.
    Lent,
}

impl Inbox {
    /// The inbox of a shard that is held like this since this time, or that is away.
    pub fn new(config: &NodeConfig, held: Option<(Tenure, Instant)>) -> Inbox {
        let (tenure, claimed_at) = held.unwrap_or_else(|| (Tenure::default(), Instant::now()));
        let state = Contents {
            requests: Vec::new(),
            errands: Vec::new(),
            look: false,
            fence: tenure.fence,
            claimed_at,
            confirmed: tenure.serial,
            committed: 0,
            answered: 0,
            late: Vec::new(),
            failed: None,
            aside: None,
            intake: if held.is_some() { Intake::Open } else { Intake::Away },
            is_up: held.is_some(),
            called: None,
            rest: Rest::Awake,
            at_rest: None,
            is_promised: false,
            has_company: false,
        };
        // With several shards the committer joins what they have to write, and other nodes bring requests whose callers
        // are not here.
        let lends = config.callers_step && config.shards == 1 && config.links.is_none();
        Inbox { state: Mutex::new(state), bell: Condvar::new(), room: config.inbox, lends }
    }

    /// Puts a request in, if there is room.
    pub fn push(&self, request: Request<Caller>) -> Result<Next, Turned> {
        let mut state = lock(&self.state);
        if let Err(why) = state.intake.takes() {
            return Err(Turned { requests: vec![request], why });
        }
        if state.requests.len() >= self.room {
            return Err(Turned { requests: vec![request], why: Some(Error::Overloaded) });
        }
        state.requests.push(request);
        Ok(self.call(state))
    }

    /// Puts requests in as long as there is room, or all of them if the bound does not apply; on an error gives
    /// back those that are not in.
    pub fn push_all(&self, mut requests: Vec<Request<Caller>>, is_bounded: bool) -> Result<Next, Turned> {
        let mut state = lock(&self.state);
        if let Err(why) = state.intake.takes() {
            return Err(Turned { requests, why });
        }
        let room = if is_bounded { self.room.saturating_sub(state.requests.len()) } else { usize::MAX };
        let is_little = requests.len() <= CALLERS_STEP;
        let rest = (requests.len() > room).then(|| requests.split_off(room));
        state.requests.append(&mut requests);
        if is_little && rest.is_none() {
            return Ok(self.call(state));
        }
        self.wake(state);
        rest.map_or(Ok(Next::Runner), |requests| Err(Turned { requests, why: Some(Error::Overloaded) }))
    }

    /// Puts in what the node itself has to tell, also while it is stopping. If the shard is not here for now, it is
    /// dropped: what comes of that is looked after by timers in the shard. If it is elsewhere, it comes back.
    pub fn tell(&self, errand: Request<Caller>) -> Option<Request<Caller>> {
        let mut state = lock(&self.state);
        match state.intake {
            Intake::Open | Intake::Stopping(_) => {
                state.errands.push(errand);
                self.wake(state);
                None
            }
            Intake::Down(_) => None,
            Intake::Away => Some(errand),
        }
    }

    /// Somebody waits on the board for what this shard has.
    pub fn look(&self) -> Next {
        let mut state = lock(&self.state);
        state.look = true;
        self.call(state)
    }

    /// Lets the runner look around although nobody asks for anything.
    pub fn wake_up(&self) {
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

    /// Deliveries of a step that is about to be said to be durable leave so much later than was thought. Says whether
    /// the next step will write that down: not if the shard is lost, or likely to be, since no beat has counted for
    /// the time of a lease.
    pub fn is_late(&self, fence: Fence, step: u64, late: Millis, lease: Duration) -> bool {
        let mut state = lock(&self.state);
        let stands = state.fence == fence && state.failed.is_none() && state.claimed_at.elapsed() < lease;
        if stands && state.is_up {
            state.late.push((step, late));
            state.look = true;
            self.wake(state);
            return true;
        }
        false
    }

    /// The answers of a step are out, and so are those of all before it.
    pub fn answered(&self, fence: Fence, step: u64) {
        let mut state = lock(&self.state);
        if state.fence == fence {
            state.answered = step;
            if matches!(state.intake, Intake::Stopping(_)) || state.aside.is_some() {
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

    /// The store has confirmed a commit.
    pub fn confirmed(&self, fence: Fence, serial: u64) {
        let mut state = lock(&self.state);
        if state.fence == fence {
            state.confirmed = serial;
        }
    }

    /// The fence under which the shard runs and when it was last seen to be in force, if it runs.
    pub fn claim(&self) -> Option<(Fence, Instant)> {
        let state = lock(&self.state);
        state.is_up.then_some((state.fence, state.claimed_at))
    }

    /// The fence was in force at this time.
    pub fn seen_in_force(&self, fence: Fence, at: Instant) {
        let mut state = lock(&self.state);
        if state.fence == fence {
            state.claimed_at = at;
        }
    }

    /// No more requests are taken; the runner finishes what is there.
    pub fn stop(&self) {
        let mut state = lock(&self.state);
        state.intake = Intake::Stopping(Instant::now() + PATIENCE);
        self.wake_anyway(state);
    }

    /// No step begins any more, and when all that was sent is answered, this is done; then the shard goes on. Requests
    /// wait meanwhile. Work on many rows is finished first, if that does not take long.
    pub fn set_aside(&self, work: Work) -> Result<(), Error> {
        let mut state = lock(&self.state);
        state.intake.takes().map_err(|why| why.unwrap_or_else(|| Error::nothing_done("the shard is not here")))?;
        if state.aside.is_some() {
            return Err(Error::Overloaded);
        }
        state.aside = Some(Aside { purpose: Purpose::Work(work), until: Instant::now() + PATIENCE });
        self.wake_anyway(state);
        Ok(())
    }

    /// Whether requests are taken, here or where the shard is.
    pub fn ready(&self) -> Result<(), Error> {
        lock(&self.state).intake.takes().or_else(|why| why.map_or(Ok(()), Err))
    }

    /// Whether requests are to be passed on: the shard is not here.
    pub fn is_away(&self) -> bool {
        matches!(lock(&self.state).intake, Intake::Away)
    }

    /// How many requests wait.
    pub fn len(&self) -> usize {
        lock(&self.state).requests.len()
    }

    /// Wakes the runner, unless it could not begin a step.
    fn wake(&self, state: MutexGuard<'_, Contents>) {
        if state.rest == Rest::Idle {
            self.wake_anyway(state);
        }
    }

    fn wake_anyway(&self, mut state: MutexGuard<'_, Contents>) {
        let was_asleep = std::mem::replace(&mut state.rest, Rest::Awake) != Rest::Awake;
        drop(state);
        if was_asleep {
            self.bell.notify_one();
        }
    }
}

impl Contents {
    /// All that waits, the node's own requests first.
    fn take_waiting(&mut self) -> Vec<Request<Caller>> {
        let mut waiting = std::mem::take(&mut self.errands);
        waiting.append(&mut self.requests);
        waiting
    }
}

impl Intake {
    /// Whether requests are taken, and what they hear if not: nothing if they are to be passed on.
    fn takes(&self) -> Result<(), Option<Error>> {
        match self {
            Intake::Open => Ok(()),
            Intake::Away => Err(None),
            Intake::Down(why) => Err(Some(Error::nothing_done(why))),
            Intake::Stopping(_) => Err(Some(Error::Stopping)),
        }
    }
}

impl Contents {
    fn news(&mut self, settled: u64) -> News {
        News { settled, late: std::mem::take(&mut self.late) }
    }

    fn waiting(&self) -> usize {
        self.requests.len() + self.errands.len()
    }

    fn has_work(&self) -> bool {
        self.look || !self.requests.is_empty() || !self.errands.is_empty()
    }

    /// Takes what waits, at most so many requests, and only one if they have more bytes than this.
    fn take(&mut self, most: usize, bytes: usize) -> Vec<Request<Caller>> {
        self.look = false;
        let mut taken = std::mem::take(&mut self.errands);
        let most = most.saturating_sub(taken.len());
        let mut left = bytes;
        let fitting = self.requests.iter().take(most).take_while(|request| {
            let fits = request.command.bytes() <= left;
            left = left.saturating_sub(request.command.bytes());
            fits
        });
        let most = fitting.count().max(1);
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
