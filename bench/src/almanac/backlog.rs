//! A flood of tasks that come due at once and that nobody takes, in a node on the almanac: what each costs in memory,
//! and whether another queue notices.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use punctual_core::{Choice, Clock, Millis, Reserve, Task};
use punctual_node::{Handle, Node, NodeConfig, SystemClock, block_on};

use super::contestants::almanac_store;
use super::node::{CALLERS, callers, name, schedule};
use super::report::{decimals, grouped, mebibytes, tell};
use super::system;

/// What the node may take for other purposes.
const BUDGET: u64 = 256 << 20;

pub fn run(directory: &Path, tasks: usize) {
    let store = almanac_store(directory);
    let node = Node::start(NodeConfig::new(name("bench")), store, Arc::new(SystemClock)).expect("the node starts");
    let flooded = AtomicBool::new(false);
    let (rate, mut late) = thread::scope(|scope| {
        let other = scope.spawn(|| other_queue(&node.handle(), &flooded));
        let started = Instant::now();
        callers(&node, |handle, random| schedule(handle, random, tasks / CALLERS, 0..1));
        let rate = tasks as f64 / started.elapsed().as_secs_f64();
        // The other queue goes on for a while beside the backlog as it stands.
        thread::sleep(Duration::from_secs(5));
        flooded.store(true, Relaxed);
        (rate, other.join().expect("the other queue is served"))
    });
    late.sort_unstable();
    let at = |share: f64| decimals(late[((late.len() - 1) as f64 * share) as usize] as f64 / 1e3, 1);
    let beyond = system::resident().saturating_sub(BUDGET) as f64 / tasks as f64;
    tell(
        "backlog",
        0,
        &grouped(tasks as u64),
        [
            grouped(rate as u64),
            mebibytes(system::resident()),
            mebibytes(system::resident_at_most()),
            decimals(beyond, 1),
            at(0.5),
            at(0.99),
            at(1.0),
        ],
    );
    node.stop();
}

/// One task after the other through a queue of its own; how late each was, in microseconds.
fn other_queue(handle: &Handle, flooded: &AtomicBool) -> Vec<u64> {
    let mut late = Vec::new();
    while !flooded.load(Relaxed) {
        let task = Task::new(name("other"), Bytes::from_static(b"small")).after(Millis(20));
        if block_on(handle.schedule(task)).is_err() {
            // The node says that too much is waiting; so would any client hear, and try again.
            thread::sleep(Duration::from_millis(5));
            continue;
        }
        let until = handle.now().plus(Millis(10_000));
        let (queues, consumer) = (vec![name("other")], name("consumer"));
        let reserve = Reserve { queues, max: 1, lease: None, until, consumer, choice: Choice::default() };
        let deliveries = block_on(handle.reserve(reserve)).expect("it waits");
        let now = SystemClock.micros();
        late.extend(deliveries.iter().map(|delivery| now.saturating_sub(delivery.due.as_millis() * 1_000)));
        let leases = deliveries.into_iter().map(|delivery| delivery.lease).collect();
        for answer in block_on(handle.acknowledge_many(leases)) {
            answer.expect("the lease is in force");
        }
    }
    late
}
