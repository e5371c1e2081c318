//! How late are deliveries on this machine? Schedules 5,000 tasks a second with delays of 1 to 10
//! seconds for half a minute, and takes them with 16 waiting consumers.
//!
//! Run it with `cargo run --release -p punctual-node --example lateness [tasks a second] [seconds] [shards]`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use punctual_core::{Millis, Name, Reserve, Task};
use punctual_memory::MemoryStore;
use punctual_node::{Error, Handle, Node, NodeConfig, SystemClock, block_on};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<usize> = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let argument = |index: usize, default| arguments.get(index).copied().unwrap_or(default);
    let (rate, seconds, shards) = (argument(0, 5_000), argument(1, 30), argument(2, 1));

    let clock = Arc::new(SystemClock);
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let config = NodeConfig::new(Name::new("here")?).shards(u16::try_from(shards)?);
    let node = Node::start(config, store, clock)?;
    let done = Arc::new(AtomicUsize::new(0));
    let consumers: Vec<_> = (0..16)
        .map(|_| {
            let (handle, done) = (node.handle(), done.clone());
            thread::spawn(move || block_on(consume(&handle, &done)))
        })
        .collect();

    let handle = node.handle();
    let (begun, mut sent) = (Instant::now(), 0);
    while sent < rate * seconds {
        let due = (begun.elapsed().as_secs_f64() * rate as f64) as usize;
        let tasks = (sent..due.min(rate * seconds)).map(|number| {
            let delay = Duration::from_micros(1_000_000 + (number as u64).wrapping_mul(7_919_777) % 9_000_000);
            Ok(Task::new(Name::new("orders")?, vec![b'x'; 200]).after(Millis::from(delay)))
        });
        let tasks = tasks.collect::<Result<Vec<Task>, Box<dyn std::error::Error>>>()?;
        sent += tasks.len();
        for answer in block_on(handle.schedule_many(tasks)) {
            answer?;
        }
        thread::sleep(Duration::from_millis(1));
    }
    while done.load(Ordering::Relaxed) < sent {
        thread::sleep(Duration::from_millis(50));
    }
    let stats = handle.stats();
    println!("lateness, µs:       {:?}", stats.lateness_micros);
    println!("commits, µs:        {:?}", stats.commit_micros);
    println!("changes per commit: {:?}", stats.commit_changes);
    println!("steps: {}, answers: {}", stats.steps, stats.answers);
    node.stop();
    for consumer in consumers {
        _ = consumer.join();
    }
    Ok(())
}

/// Takes and acknowledges until the node stops.
async fn consume(handle: &Handle, done: &AtomicUsize) -> Result<(), Error> {
    loop {
        let name = |text| Name::new(text).expect("it is a name");
        let until = handle.now().plus(Millis::from_secs(10));
        let reserve = Reserve { queues: vec![name("orders")], max: 8, lease: None, until, consumer: name("worker") };
        let deliveries = handle.reserve(reserve).await?;
        let leases = deliveries.into_iter().map(|delivery| delivery.lease).collect();
        let answers = handle.acknowledge_many(leases).await;
        done.fetch_add(answers.iter().filter(|answer| answer.is_ok()).count(), Ordering::Relaxed);
    }
}
