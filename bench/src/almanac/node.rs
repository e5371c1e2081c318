//! A node on the almanac, and on the memory store for comparison: tasks are scheduled, reserved and acknowledged
//! through its handle, by several callers at once, as a sync serves all who wait for it. The callers run in the same process
//! and are counted with it.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use punctual_core::store::Store;
use punctual_core::{Choice, Millis, Name, Reserve, Task};
use punctual_memory::MemoryStore;
use punctual_node::{Handle, Node, NodeConfig, SystemClock, block_on};

use super::contestants::almanac_store;
use super::meter::Meter;
use super::report::tell;
use super::system;

pub const CALLERS: usize = 4;
const BATCH: usize = 256;
const DAY: u64 = 24 * 3_600_000;

pub fn run(directory: &Path, rows: usize) {
    let lives = (rows / 10).clamp(100_000, 400_000);
    row("whole lives, memory store", &live(Arc::new(MemoryStore::new(Arc::new(SystemClock))), 0, lives).1);
    let (_, meter) = live(almanac_store(&directory.join("empty")), 0, lives);
    row("whole lives, almanac, empty", &meter);
    let (scheduled, meter) = live(almanac_store(&directory.join("filled")), rows, lives);
    row("schedules over 30 days, almanac", &scheduled);
    row("whole lives, almanac, with these pending", &meter);
}

fn row(label: &str, meter: &Meter) {
    tell("node", 0, label, [meter.rate(), meter.cores()]);
}

/// Schedules so many tasks for later, then lets so many live.
fn live(store: Arc<dyn Store>, pending: usize, lives: usize) -> (Meter, Meter) {
    let node = Node::start(NodeConfig::new(name("bench")), store, Arc::new(SystemClock)).expect("the node starts");
    let mut scheduling = Meter::default();
    scheduling.window(pending, |_| {
        callers(&node, |handle, random| schedule(handle, random, pending / CALLERS, DAY..31 * DAY));
    });
    let progress = Progress { all: lives / CALLERS * CALLERS, done: AtomicUsize::new(0), end: OnceLock::new() };
    let (started, cpu) = (Instant::now(), system::cpu());
    thread::scope(|scope| {
        scope.spawn(|| callers(&node, |handle, random| schedule(handle, random, lives / CALLERS, 0..1)));
        callers(&node, |handle, _| consume(handle, &progress));
    });
    let (ended, cpu_then) = progress.end.get().expect("all is done");
    let living = Meter::of(progress.all, *ended - started, *cpu_then - cpu);
    node.stop();
    (scheduling, living)
}

/// How far the consumers are, all together.
struct Progress {
    all: usize,
    done: AtomicUsize,
    /// When the last one was acknowledged, and the processor time by then.
    end: OnceLock<(Instant, Duration)>,
}

/// Several threads that do the same, to their end.
pub fn callers(node: &Node, act: impl Fn(&Handle, &mut fastrand::Rng) + Sync) {
    thread::scope(|scope| {
        for number in 0..CALLERS {
            let (handle, act) = (node.handle(), &act);
            scope.spawn(move || act(&handle, &mut fastrand::Rng::with_seed(number as u64)));
        }
    });
}

pub fn schedule(handle: &Handle, random: &mut fastrand::Rng, tasks: usize, delays: std::ops::Range<u64>) {
    for first in (0..tasks).step_by(BATCH) {
        let batch = (first..tasks.min(first + BATCH)).map(|_| {
            let mut body = vec![0; 200];
            random.fill(&mut body);
            Task::new(name("orders"), Bytes::from(body)).after(Millis(random.u64(delays.clone())))
        });
        for scheduled in block_on(handle.schedule_many(batch.collect())) {
            scheduled.expect("it is scheduled");
        }
    }
}

/// Takes and acknowledges until all is done, by whichever consumer.
fn consume(handle: &Handle, progress: &Progress) {
    while progress.end.get().is_none() {
        let reserve = Reserve {
            queues: vec![name("orders")],
            max: BATCH,
            lease: None,
            until: handle.now().plus(Millis(100)),
            consumer: name("consumer"),
            choice: Choice::default(),
        };
        let deliveries = block_on(handle.reserve(reserve)).expect("it waits");
        let leases: Vec<_> = deliveries.into_iter().map(|delivery| delivery.lease).collect();
        let count = leases.len();
        for answer in block_on(handle.acknowledge_many(leases)) {
            answer.expect("the lease is in force");
        }
        if count > 0 && progress.done.fetch_add(count, Relaxed) + count == progress.all {
            progress.end.set((Instant::now(), system::cpu())).expect("it ends once");
        }
    }
}

pub fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}
