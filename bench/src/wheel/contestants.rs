//! The contestants behind one trait, each driven the way its documentation asks for.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use punctual_wheel::{Handle, Wheel};
use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::time::Instant;
use tokio_util::time::{DelayQueue, delay_queue};

use super::HORIZON_MS;

pub trait Timers {
    const NAME: &'static str;
    type Key: Copy;

    fn new() -> Self;
    fn insert(&mut self, at: u64, value: u64) -> Self::Key;
    fn cancel(&mut self, key: Self::Key);
    /// From now on all timers are due.
    fn let_time_pass(&mut self) {}
    fn expire(&mut self) -> Option<u64>;
}

pub struct PunctualWheel(Wheel<u64>);

impl Timers for PunctualWheel {
    const NAME: &'static str = "punctual-wheel";
    type Key = Handle;

    fn new() -> Self {
        PunctualWheel(Wheel::new(0))
    }

    fn insert(&mut self, at: u64, value: u64) -> Handle {
        self.0.insert(at, value)
    }

    fn cancel(&mut self, handle: Handle) {
        self.0.cancel(handle);
    }

    fn expire(&mut self) -> Option<u64> {
        self.0.pop(HORIZON_MS).map(|(_, value)| value)
    }
}

/// On a paused clock that jumps once all is inserted, so that nothing is waited for. The runtime is entered once,
/// as in a task: only the queue's own work is measured.
pub struct TokioUtil {
    queue: DelayQueue<u64>,
    start: Instant,
    runtime: &'static Runtime,
    _context: EnterGuard<'static>,
}

impl Timers for TokioUtil {
    const NAME: &'static str = "tokio-util DelayQueue";
    type Key = delay_queue::Key;

    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        // A guard borrows its runtime; the few runtimes of a benchmark may stay.
        let runtime: &'static Runtime = Box::leak(Box::new(runtime));
        let _context = runtime.enter();
        TokioUtil { queue: DelayQueue::new(), start: Instant::now(), runtime, _context }
    }

    fn insert(&mut self, at: u64, value: u64) -> delay_queue::Key {
        self.queue.insert_at(value, self.start + Duration::from_millis(at))
    }

    fn cancel(&mut self, key: delay_queue::Key) {
        self.queue.remove(&key);
    }

    fn let_time_pass(&mut self) {
        self.runtime.block_on(tokio::time::advance(Duration::from_millis(HORIZON_MS + 1)));
    }

    fn expire(&mut self) -> Option<u64> {
        match self.queue.poll_expired(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(expired) => expired.map(delay_queue::Expired::into_inner),
            Poll::Pending => unreachable!("everything is due"),
        }
    }
}

/// A binary heap cannot remove from its middle: the cancelled are noted, and skipped when they come up.
pub struct Heap {
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    cancelled: Vec<bool>,
}

impl Timers for Heap {
    const NAME: &'static str = "BinaryHeap, lazy cancel";
    type Key = u64;

    fn new() -> Self {
        Heap { heap: BinaryHeap::new(), cancelled: Vec::new() }
    }

    fn insert(&mut self, at: u64, value: u64) -> u64 {
        self.heap.push(Reverse((at, value)));
        self.cancelled.push(false);
        value
    }

    fn cancel(&mut self, value: u64) {
        self.cancelled[value as usize] = true;
    }

    fn expire(&mut self) -> Option<u64> {
        while let Some(Reverse((_, value))) = self.heap.pop() {
            if !self.cancelled[value as usize] {
                return Some(value);
            }
        }
        None
    }
}

pub struct Tree(BTreeSet<(u64, u64)>);

impl Timers for Tree {
    const NAME: &'static str = "BTreeSet";
    type Key = (u64, u64);

    fn new() -> Self {
        Tree(BTreeSet::new())
    }

    fn insert(&mut self, at: u64, value: u64) -> (u64, u64) {
        self.0.insert((at, value));
        (at, value)
    }

    fn cancel(&mut self, key: (u64, u64)) {
        self.0.remove(&key);
    }

    fn expire(&mut self) -> Option<u64> {
        self.0.pop_first().map(|(_, value)| value)
    }
}
