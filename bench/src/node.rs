//! The node in this process on the memory store: how late deliveries are, and how many tasks pass.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use punctual_core::{Choice, Millis, Name, Reserve, Task};
use punctual_memory::MemoryStore;
use punctual_node::{Handle, Node, NodeConfig, SystemClock, block_on};

use crate::table::Table;

const BODY: [u8; 200] = [b'x'; 200];

pub fn run() {
    let mut table =
        Table::new(&["due to handed over, delays of 1 to 10 s", "tasks", "p50 ms", "p99 ms", "p99.9 ms", "max ms"]);
    for rate in [200, 5_000] {
        let lateness = lateness(rate, Duration::from_secs(20));
        let at = |share: f64| format!("{:.3}", lateness[(lateness.len() as f64 * share) as usize] as f64 / 1e3);
        let max = format!("{:.3}", lateness[lateness.len() - 1] as f64 / 1e3);
        table.row(vec![
            format!("{rate} tasks a second"),
            lateness.len().to_string(),
            at(0.5),
            at(0.99),
            at(0.999),
            max,
        ]);
    }
    table.print();
    let mut table = Table::new(&["through the whole node", "a second"]);
    for shards in [1, 2] {
        let tasks = 400_000;
        let took = through(shards, tasks);
        let name = format!("whole lives in batches of 256, {shards} shard(s)");
        table.row(vec![name, format!("{:.0}", tasks as f64 / took.as_secs_f64())]);
    }
    table.print();
}

fn start(shards: u16) -> Node {
    let clock = Arc::new(SystemClock);
    let store = Arc::new(MemoryStore::new(clock.clone()));
    Node::start(NodeConfig::new(name("bench")).shards(shards), store, clock).expect("the node starts")
}

/// Schedules at a steady rate for a while; a few consumers take what comes due. Gives the lateness
/// of each delivery in microseconds, sorted.
fn lateness(rate: u64, lasting: Duration) -> Vec<u64> {
    let node = start(1);
    let total = rate * lasting.as_secs();
    let consumers: Vec<_> = (0..4)
        .map(|number| {
            let handle = node.handle();
            thread::spawn(move || consume(&handle, number, Duration::from_secs(12)))
        })
        .collect();
    let handle = node.handle();
    let mut random = fastrand::Rng::with_seed(7);
    let started = Instant::now();
    // What comes within a millisecond is handed in together, so that the load does not compete for the cores.
    let together = (rate / 1_000).max(1);
    for number in (0..total).step_by(together as usize) {
        let at = Duration::from_nanos(1_000_000_000 / rate * number);
        if let Some(wait) = at.checked_sub(started.elapsed()) {
            thread::sleep(wait);
        }
        let task = |_| Task::new(name("orders"), &BODY[..]).after(Millis(random.u64(1_000..10_000)));
        let tasks = (0..together).map(task).collect();
        for scheduled in block_on(handle.schedule_many(tasks)) {
            scheduled.expect("it is scheduled");
        }
    }
    let mut lateness: Vec<u64> = consumers.into_iter().flat_map(|consumer| consumer.join().expect("it ran")).collect();
    node.stop();
    assert_eq!(lateness.len() as u64, total, "each task was handed over once");
    lateness.sort_unstable();
    lateness
}

/// Takes and acknowledges until nothing has come for a while.
fn consume(handle: &Handle, number: usize, patience: Duration) -> Vec<u64> {
    let mut lateness = Vec::new();
    loop {
        let reserve = Reserve {
            queues: vec![name("orders")],
            max: 64,
            lease: None,
            until: handle.now().plus(patience.into()),
            consumer: name(&format!("consumer-{number}")),
            choice: Choice::default(),
        };
        let deliveries = block_on(handle.reserve(reserve)).expect("it waits");
        let now =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is after 1970").as_micros() as u64;
        if deliveries.is_empty() {
            return lateness;
        }
        lateness.extend(deliveries.iter().map(|delivery| now.saturating_sub(delivery.due.as_millis() * 1_000)));
        let leases = deliveries.into_iter().map(|delivery| delivery.lease).collect();
        for answer in block_on(handle.acknowledge_many(leases)) {
            answer.expect("the lease is in force");
        }
    }
}

/// Tasks that are due at once, scheduled in batches by one thread and taken by two.
fn through(shards: u16, tasks: usize) -> Duration {
    let node = start(shards);
    let started = Instant::now();
    let consumers: Vec<_> = (0..2)
        .map(|number| {
            let handle = node.handle();
            thread::spawn(move || (consume(&handle, number, Duration::from_millis(500)).len(), Instant::now()))
        })
        .collect();
    let handle = node.handle();
    for _ in 0..tasks / 256 + 1 {
        let batch = (0..256).map(|_| Task::new(name("orders"), &BODY[..])).collect();
        for scheduled in block_on(handle.schedule_many(batch)) {
            scheduled.expect("it is scheduled");
        }
    }
    let ends: Vec<(usize, Instant)> = consumers.into_iter().map(|consumer| consumer.join().expect("it ran")).collect();
    let last = ends.iter().map(|(_, at)| *at).max().expect("there are consumers") - Duration::from_millis(500);
    node.stop();
    last - started
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}
