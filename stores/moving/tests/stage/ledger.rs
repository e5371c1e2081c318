//! What was scheduled, handed out and done while a store is moved: nothing may be lost, early, or done twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use punctual_chance::Chance;
use punctual_core::{Choice, Clock, Millis, Name, Reserve, Task};
use punctual_node::{Handle, Node, block_on};

/// What happened, as those know it who asked for it.
#[derive(Default)]
pub struct Ledger {
    /// When each task may be handed out first.
    pub scheduled: Mutex<BTreeMap<String, u64>>,
    done: Mutex<BTreeSet<String>>,
    /// Those that may be done: the answer was lost.
    maybe_done: Mutex<BTreeSet<String>>,
    next: AtomicU64,
    is_over: AtomicBool,
}

const LEASE: u64 = 400;

impl Ledger {
    fn schedule(&self, handle: &Handle, clock: &dyn Clock, mut chance: Chance) {
        while !self.is_over.load(Ordering::SeqCst) {
            let id = self.next.fetch_add(1, Ordering::SeqCst).to_string();
            let delay = chance.below(150);
            let due = clock.now().as_millis() + delay;
            let body = vec![7; chance.magnitude(1, 20_000) as usize];
            let task =
                Task::new(Name::stored("orders"), body).id(Name::stored(&id)).after(Duration::from_millis(delay));
            if block_on(handle.schedule(task)).is_ok() {
                self.scheduled.lock().unwrap().insert(id, due);
            }
            thread::sleep(Duration::from_micros(500));
        }
    }

    fn consume(&self, handle: &Handle, clock: &dyn Clock) {
        while !self.is_over.load(Ordering::SeqCst) {
            self.take_some(handle, clock, 100);
        }
    }

    /// Takes some deliveries and does them; says how many.
    fn take_some(&self, handle: &Handle, clock: &dyn Clock, wait: u64) -> usize {
        let reserve = Reserve {
            queues: vec![Name::stored("orders")],
            max: 5,
            lease: Some(Millis(LEASE)),
            until: clock.now().plus(Millis(wait)),
            consumer: Name::stored("consumer"),
            choice: Choice::default(),
        };
        let Ok(deliveries) = block_on(handle.reserve(reserve)) else { return 0 };
        let now = clock.now().as_millis();
        for delivery in &deliveries {
            let id = delivery.id.as_str();
            assert!(!self.done.lock().unwrap().contains(id), "{id} was done already");
            let due = self.scheduled.lock().unwrap().get(id).copied();
            assert!(due.is_none_or(|due| due <= now), "{id} is early");
            if block_on(handle.acknowledge(delivery.lease.clone())).is_ok() {
                self.done.lock().unwrap().insert(id.to_owned());
            } else {
                self.maybe_done.lock().unwrap().insert(id.to_owned());
            }
        }
        deliveries.len()
    }

    /// Lets some act while something happens.
    pub fn while_in_use<T>(&self, node: &Node, clock: &dyn Clock, seed: u64, work: impl FnOnce() -> T) -> T {
        self.is_over.store(false, Ordering::SeqCst);
        let (handle, mut chance) = (node.handle(), Chance::new(seed));
        thread::scope(|scope| {
            for _ in 0..2 {
                let chance = chance.fork();
                scope.spawn(|| self.schedule(&handle, clock, chance));
                scope.spawn(|| self.consume(&handle, clock));
            }
            let done = work();
            self.is_over.store(true, Ordering::SeqCst);
            done
        })
    }

    /// Requires that everything that was scheduled is done in the end.
    pub fn settle(&self, handle: &Handle, clock: &dyn Clock) {
        let begun = Instant::now();
        let missing = || {
            let (done, maybe) = (self.done.lock().unwrap(), self.maybe_done.lock().unwrap());
            let is_missing = |id: &&String| !done.contains(*id) && !maybe.contains(*id);
            self.scheduled.lock().unwrap().keys().filter(is_missing).cloned().collect::<Vec<_>>()
        };
        while !missing().is_empty() {
            self.take_some(handle, clock, 50);
            assert!(begun.elapsed() < Duration::from_secs(60), "lost: {:?}", missing());
        }
    }
}
