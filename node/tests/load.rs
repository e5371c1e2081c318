//! Many tasks, shards and consumers at once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::stage::{PATIENCE, Stage, config, eventually, task, wait_for};
use punctual_core::Millis;
use punctual_core::store::Terms;
use punctual_node::NodeConfig;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_of_ten_thousand_tasks_is_acknowledged_exactly_once() {
    work_off(Stage::new(4)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn so_it_is_where_callers_take_steps() {
    work_off(Stage::with(NodeConfig { callers_step: true, ..config(1) })).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn so_it_is_where_small_steps_wait_for_a_commit() {
    work_off(Stage::on_terms(config(4), Terms { lanes: 2, worthwhile: 64, ..Terms::default() })).await;
}

/// How many steps it takes to schedule 16 tasks, of which the last come while the first are committed.
async fn steps_on(terms: Terms) -> u64 {
    let stage = Stage::on_terms(NodeConfig { step: 10, ..config(1) }, terms);
    let handle = stage.handle.clone();
    handle.schedule(task("orders", "before")).await.unwrap();
    let gate = stage.close_gate();
    let schedule = |tasks: Range<u32>| {
        let handle = stage.handle.clone();
        let tasks = tasks.map(|number| task("orders", &number.to_string())).collect();
        tokio::spawn(async move { handle.schedule_many(tasks).await })
    };
    let first = schedule(0..11);
    eventually("a commit is under way", async || gate.has_somebody()).await;
    let more = schedule(11..16);
    // They are in the inbox once this is carried out, or in steps.
    tokio::task::yield_now().await;
    gate.open();
    for answers in [first.await.unwrap(), more.await.unwrap()] {
        assert!(answers.iter().all(Result::is_ok));
    }
    // By then all is counted.
    stage.node.stop();
    handle.stats().steps - 1
}

#[tokio::test]
async fn what_is_little_waits_for_the_commit_under_way_where_that_is_better() {
    assert_eq!(steps_on(Terms { worthwhile: 64, ..Terms::default() }).await, 2);
    assert!(steps_on(Terms::default()).await > 2);
}

async fn work_off(stage: Stage) {
    const TASKS: usize = 10_000;
    let Stage { handle, node, .. } = stage;
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
    assert_eq!(handle.stats().lateness_buckets.count, TASKS as u64);
    node.stop();
}
