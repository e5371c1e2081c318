//! Bells and time under the model checker.
//!
//! Time stands still until a scene lets it [pass]. So a wake-up that is lost is a deadlock, which the checker
//! finds, and not a wait that ends a second later by itself.

use std::ops::Add;
use std::panic::Location;
use std::sync::{Arc, LockResult, Mutex as Uninterrupted, MutexGuard as Looking, PoisonError};
use std::time::Duration;

use shuttle::sync::MutexGuard;
use shuttle::thread::yield_now;

/// What is so in one run of a scene. Its lock is the system's: nobody is interrupted while holding it.
struct World {
    now: Duration,
    sleepers: Vec<Sleeper>,
    ids: u64,
    mute: Option<&'static str>,
}

/// Who waits on a bell, but not for ever.
struct Sleeper {
    id: u64,
    until: Duration,
    bell: Arc<shuttle::sync::Condvar>,
}

/// Some day, so that there is a time before it.
const BEGINNING: Duration = Duration::from_secs(1_700_000_000);

shuttle::lazy_static! {
    static ref WORLD: Uninterrupted<World> =
        Uninterrupted::new(World { now: BEGINNING, sleepers: Vec::new(), ids: 0, mute: None });
}

fn world() -> Looking<'static, World> {
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The time since 1970 in this run.
pub fn now() -> Duration {
    world().now
}

/// Lets time pass, and wakes those whose wait is over by then.
pub fn pass(time: Duration) {
    world().now += time;
    loop {
        let over: Vec<_> = {
            let world = world();
            world.sleepers.iter().filter(|one| one.until <= world.now).map(|one| Arc::clone(&one.bell)).collect()
        };
        if over.is_empty() {
            return;
        }
        // One that is only about to sleep would not hear a single ring.
        over.iter().for_each(|bell| bell.notify_all());
        yield_now();
    }
}

/// Sabotage: the bells made in this file of the node are not heard from now on.
pub fn mute(file: &'static str) {
    world().mute = Some(file);
}

/// A bell, as [`std::sync::Condvar`].
pub(crate) struct Condvar {
    bell: Arc<shuttle::sync::Condvar>,
    made_in: &'static str,
}

impl Default for Condvar {
    #[track_caller]
    fn default() -> Condvar {
        Condvar::new()
    }
}

type Waited<'a, T> = LockResult<(MutexGuard<'a, T>, ())>;

impl Condvar {
    #[track_caller]
    pub fn new() -> Condvar {
        Condvar { bell: Arc::new(shuttle::sync::Condvar::new()), made_in: Location::caller().file() }
    }

    pub fn notify_one(&self) {
        if !self.is_mute() {
            self.bell.notify_one();
        }
    }

    pub fn notify_all(&self) {
        if !self.is_mute() {
            self.bell.notify_all();
        }
    }

    fn is_mute(&self) -> bool {
        world().mute.is_some_and(|file| self.made_in.ends_with(file))
    }

    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.bell.wait(guard)
    }

    pub fn wait_timeout<'a, T>(&self, guard: MutexGuard<'a, T>, time: Duration) -> Waited<'a, T> {
        let id = {
            let mut world = world();
            world.ids += 1;
            let (id, until) = (world.ids, world.now.saturating_add(time));
            world.sleepers.push(Sleeper { id, until, bell: Arc::clone(&self.bell) });
            id
        };
        let guard = self.bell.wait(guard).unwrap_or_else(PoisonError::into_inner);
        world().sleepers.retain(|one| one.id != id);
        Ok((guard, ()))
    }

    pub fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        time: Duration,
        mut goes_on: impl FnMut(&mut T) -> bool,
    ) -> Waited<'a, T> {
        let until = now().saturating_add(time);
        while goes_on(&mut guard) && now() < until {
            let left = until.saturating_sub(now());
            guard = self.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok((guard, ()))
    }
}

/// An instant, as [`std::time::Instant`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(Duration);

impl Instant {
    pub fn now() -> Instant {
        Instant(now())
    }

    pub fn elapsed(&self) -> Duration {
        now().saturating_sub(self.0)
    }

    pub fn saturating_duration_since(&self, earlier: Instant) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, time: Duration) -> Instant {
        Instant(self.0 + time)
    }
}
