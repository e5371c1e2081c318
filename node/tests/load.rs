//! Many tasks, shards and consumers at once.

#![allow(clippy::unwrap_used, reason = "all of this is a test")]

mod stage;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use punctual_core::Millis;
use punctual_node::NodeConfig;
use stage::{PATIENCE, Stage, config, task, wait_for};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_of_ten_thousand_tasks_is_acknowledged_exactly_once() {
    work_off(config(4)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn so_it_is_where_callers_take_steps() {
    work_off(NodeConfig { callers_step: true, ..config(1) }).await;
}

async fn work_off(config: NodeConfig) {
    const TASKS: usize = 10_000;
    let Stage { handle, node, .. } = Stage::with(config);
    let done: Arc<Mutex<BTreeMap<String, u32>>> = Arc::default();
    let consumers: Vec<_> = (0..8)
        .map(|_| {
            let (handle, done) = (handle.clone(), done.clone());
            tokio::spawn(async move {
                while done.lock().unwrap().len() < TASKS {
                    let mut reserve = wait_for(&handle, "orders", Duration::from_millis(100));
                    reserve.max = 32;
                    let deliveries = handle.reserve(reserve).await.unwrap();
                    assert!(deliveries.iter().all(|delivery| handle.now() >= delivery.due && delivery.attempt == 1));
                    let leases = deliveries.iter().map(|delivery| delivery.lease.clone()).collect();
                    let answers = handle.acknowledge_many(leases).await;
                    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
                    let mut done = done.lock().unwrap();
                    for delivery in deliveries {
                        *done.entry(delivery.id.to_string()).or_default() += 1;
                    }
                }
            })
        })
        .collect();
    for chunk in 0..TASKS / 500 {
        let tasks = (0..500).map(|n| {
            let number = chunk * 500 + n;
            task("orders", &number.to_string()).after(Millis((number * 7_919 % 700) as u64))
        });
        let answers = handle.schedule_many(tasks.collect()).await;
        assert!(answers.iter().all(Result::is_ok));
    }
    for consumer in consumers {
        tokio::time::timeout(PATIENCE, consumer).await.expect("all is worked off").unwrap();
    }
    assert!(done.lock().unwrap().values().all(|times| *times == 1));
    let counts = handle.counts().await.unwrap();
    assert_eq!((counts.topics[0].waiting, counts.topics[0].leased, counts.topics[0].history), (0, 0, TASKS as u64));
    assert_eq!(handle.stats().lateness_micros.count, TASKS as u64);
    node.stop();
}
