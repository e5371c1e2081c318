//! A blocking queue whose values can be taken once their delay is over: the wheel with a clock and waiting threads.
//! Of the threads that wait, one leads: it alone sleeps until the earliest value is due, the others until it goes.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "waiting for real time is what this queue is for; the wheel beneath stays without a clock"
)]

use std::error::Error;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::wheel::Wheel;

/// A queue of values that each become available after a delay, shared between threads by reference.
///
/// Values come out in the order in which they become due, never early, with a resolution of one millisecond.
///
/// # Examples
/// ```
/// use std::thread;
/// use std::time::Duration;
/// use punctual_wheel::DelayQueue;
///
/// let queue = DelayQueue::new();
/// thread::scope(|scope| {
///     scope.spawn(|| {
///         queue.put("second", Duration::from_millis(20)).unwrap();
///         queue.put("first", Duration::from_millis(10)).unwrap();
///     });
///     assert_eq!(queue.take(), Some("first"));
///     assert_eq!(queue.take(), Some("second"));
/// });
/// assert_eq!(queue.poll(), None);
/// ```
pub struct DelayQueue<T> {
    state: Mutex<Timed<T>>,
    changed: Condvar,
    /// The wheel counts its milliseconds from here.
    epoch: Instant,
}

struct Timed<T> {
    wheel: Wheel<T>,
    /// The ticket of the thread that waits for the earliest value, if there is one.
    leader: Option<u64>,
    next_ticket: u64,
    closed: bool,
}

impl<T> DelayQueue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        let state = Timed { wheel: Wheel::new(0), leader: None, next_ticket: 0, closed: false };
        DelayQueue { state: Mutex::new(state), changed: Condvar::new(), epoch: Instant::now() }
    }

    /// Puts a value in, to be taken after the delay. A closed queue refuses and gives the value back.
    pub fn put(&self, value: T, delay: Duration) -> Result<(), Closed<T>> {
        self.put_after(value, self.epoch.elapsed().saturating_add(delay))
    }

    /// Puts a value in, to be taken from that instant on. A closed queue refuses and gives the value back.
    pub fn put_at(&self, value: T, at: Instant) -> Result<(), Closed<T>> {
        self.put_after(value, at.saturating_duration_since(self.epoch))
    }

    fn put_after(&self, value: T, since_epoch: Duration) -> Result<(), Closed<T>> {
        // Up to the next whole millisecond, while the clock is read down: a value is never early.
        let at = u64::try_from(since_epoch.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let mut state = self.lock();
        if state.closed {
            return Err(Closed(value));
        }
        let earliest = state.wheel.next_at().is_none_or(|next| at < next);
        state.wheel.insert(at, value);
        if earliest {
            // The leader sleeps too long now. Whoever wakes leads anew; nobody else needs to.
            state.leader = None;
            self.changed.notify_one();
        }
        Ok(())
    }

    /// Takes the earliest value, waiting until it is due. Returns `None` once the queue is closed.
    pub fn take(&self) -> Option<T> {
        self.wait(None)
    }

    /// Takes the earliest value if it is due, without waiting.
    pub fn poll(&self) -> Option<T> {
        let now = self.now();
        self.lock().wheel.pop(now).map(|(_, value)| value)
    }

    /// Takes the earliest value, waiting for it no longer than the timeout. Returns `None` then, and
    /// once the queue is closed.
    pub fn poll_for(&self, timeout: Duration) -> Option<T> {
        // A timeout beyond what the clock can tell is no timeout.
        self.wait(Instant::now().checked_add(timeout))
    }

    /// How many values are in the queue, due or not.
    pub fn len(&self) -> usize {
        self.lock().wheel.len()
    }

    /// Whether the queue has no values, due or not.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes the queue and returns all values that were left in it, due or not, earliest first.
    ///
    /// From now on [`put`](DelayQueue::put) is refused and [`take`](DelayQueue::take) returns `None`,
    /// also to the threads that wait in it. So each value is either taken or returned here.
    pub fn close(&self) -> Vec<T> {
        let mut state = self.lock();
        state.closed = true;
        self.changed.notify_all();
        state.wheel.advance(u64::MAX).map(|(_, value)| value).collect()
    }

    fn wait(&self, deadline: Option<Instant>) -> Option<T> {
        let mut state = self.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        let taken = loop {
            if state.closed {
                return None;
            }
            let now = self.now();
            if let Some((_, value)) = state.wheel.pop(now) {
                break Some(value);
            }
            let patience = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if patience == Some(Duration::ZERO) {
                break None;
            }
            let next_at = state.wheel.next_at().filter(|_| state.leader.is_none());
            if next_at.is_some() {
                state.leader = Some(ticket);
            }
            let until_due = next_at.map(|at| self.until(at));
            let pause = until_due.into_iter().chain(patience).min();
            state = self.pause(state, pause);
            if state.leader == Some(ticket) {
                state.leader = None;
            }
        };
        // Whoever goes hands over: without a leader nobody would wait for the next value.
        if state.leader.is_none() && !state.wheel.is_empty() {
            self.changed.notify_one();
        }
        taken
    }

    /// Waits for a change, at most for the given time.
    fn pause<'a>(&self, state: MutexGuard<'a, Timed<T>>, longest: Option<Duration>) -> MutexGuard<'a, Timed<T>> {
        match longest {
            Some(longest) => {
                let woken = self.changed.wait_timeout(state, longest);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Whole milliseconds since the epoch.
    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn until(&self, at: u64) -> Duration {
        Duration::from_millis(at).saturating_sub(self.epoch.elapsed())
    }

    /// No foreign code runs under the lock and each change is whole, so a panic elsewhere leaves the state sound.
    fn lock(&self) -> MutexGuard<'_, Timed<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for DelayQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for DelayQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayQueue").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// The queue is closed; here is the value that was to be put in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Closed<T>(pub T);

impl<T> fmt::Debug for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closed").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the delay queue is closed")
    }
}

impl<T> Error for Closed<T> {}
