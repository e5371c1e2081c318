//! An orderly stop, and what a new node finds.

use std::time::Duration;

use crate::stage::{PATIENCE, Stage, config, eventually, finish, is_dry, name, next, task, wait_for};
use punctual_core::store::{Beat, Incarnation, Store};
use punctual_core::{Millis, TopicSettings};
use punctual_node::{Error, Node, StartError};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_commits_everything_and_a_new_node_sees_it() {
    let stage = Stage::new(4);
    stage.store.faults().slow_down(|| std::thread::sleep(Duration::from_millis(3)));
    let callers: Vec<_> = (0..4)
        .map(|caller| {
            let handle = stage.handle.clone();
            tokio::spawn(async move {
                let mut taken = Vec::new();
                for number in 0.. {
                    let id = format!("{caller}-{number}");
                    match handle.schedule(task("orders", &id).after(Millis(500))).await {
                        Ok(_) => taken.push(id),
                        Err(Error::Stopping) => return taken,
                        Err(other) => panic!("{other:?}"),
                    }
                }
                taken
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(150)).await;
    let stage = tokio::task::spawn_blocking(|| {
        stage.store.faults().heal();
        stage.restart(config(4))
    });
    let stage = stage.await.unwrap();
    let mut expected = Vec::new();
    for caller in callers {
        expected.extend(caller.await.unwrap());
    }
    let mut found = Vec::new();
    for _ in 0..expected.len() {
        let delivery = next(&stage.handle, "orders").await;
        found.push(delivery.id.to_string());
        finish(&stage.handle, delivery.lease).await;
    }
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    assert!(is_dry(&stage.handle, "orders").await);
}

#[tokio::test]
async fn waiting_consumers_are_sent_home_and_handles_hear_of_it() {
    let Stage { handle, node, .. } = Stage::new(2);
    let waiting = tokio::spawn({
        let handle = handle.clone();
        async move { handle.reserve(wait_for(&handle, "orders", PATIENCE)).await }
    });
    eventually("the consumer waits", async || handle.stats().waiting_consumers == 1).await;
    node.stop();
    assert_eq!(waiting.await.unwrap(), Ok(vec![]));
    assert_eq!(handle.schedule(task("orders", "7")).await, Err(Error::Stopping));
    assert_eq!(handle.reserve(wait_for(&handle, "orders", PATIENCE)).await, Err(Error::Stopping));
    assert_eq!(handle.get(&name("orders"), &name("7")).await, Err(Error::Stopping));
    assert_eq!(handle.counts().await, Err(Error::Stopping));
    assert_eq!(handle.ready(), Err(Error::Stopping));
    assert_eq!(handle.put_topic(&name("orders"), TopicSettings::default()).await, Err(Error::Stopping));
    assert_eq!(handle.schedule_many(vec![task("orders", "7")]).await, [Err(Error::Stopping)]);
}

#[tokio::test]
async fn work_on_many_rows_is_finished_before_the_end() {
    let stage = Stage::new(1);
    let later = |n: usize| task("orders", &n.to_string()).after(Millis::from_hours(1)).key(name("ann"));
    assert!(stage.handle.schedule_many((0..2_000).map(later).collect()).await.iter().all(Result::is_ok));
    let cancelled = tokio::spawn({
        let handle = stage.handle.clone();
        async move { handle.cancel_key(&name("ann"), None, false).await }
    });
    // The call is sent as soon as it is polled, and takes several steps from there.
    tokio::task::yield_now().await;
    let stage = stage.restart(config(1));
    assert_eq!(cancelled.await.unwrap().unwrap().changed, 2_000);
    assert_eq!(stage.handle.counts().await.unwrap().topics[0].waiting, 0);
}

#[tokio::test]
async fn shards_are_given_back_so_that_another_node_need_not_wait() {
    let Stage { clock, store, node, handle } = Stage::new(2);
    handle.schedule(task("orders", "7")).await.unwrap();
    node.stop();
    let other = punctual_node::NodeConfig { name: name("other"), ..config(2) };
    let other = Node::start(other, store, clock).unwrap();
    assert_eq!(next(&other.handle(), "orders").await.id, name("7"));
}

#[tokio::test]
async fn a_node_with_another_number_of_shards_is_not_started_on_the_same_store() {
    let Stage { store, clock, node, handle } = Stage::new(2);
    handle.schedule(task("orders", "7")).await.unwrap();
    node.stop();
    for configured in [1, 3, 4] {
        let refused = Node::start(config(configured), store.clone(), clock.clone()).map(drop).unwrap_err();
        assert_eq!(refused, StartError::Shards { noted: 2, configured });
        let text = format!("this store has 2 shards, not {configured}: start with 2. ");
        assert!(refused.to_string().starts_with(&text), "{refused}");
        assert!(refused.to_string().contains("`punctual shards grow`"), "{refused}");
    }
    // What was claimed before it was refused has been given back.
    let looker = Incarnation { node: name("looker"), number: 1 };
    let roll = store.beat(&Beat { who: looker, address: String::new(), lease: Millis::ZERO }).unwrap();
    assert!(roll.nodes.is_empty() && roll.shards.iter().all(|held| held.by.is_none()), "{roll:?}");
    let node = Node::start(config(2), store, clock).unwrap();
    assert_eq!(next(&node.handle(), "orders").await.id, name("7"));
}

#[test]
fn a_node_that_never_took_a_task_has_noted_the_number_of_its_shards() {
    let Stage { store, clock, node, .. } = Stage::new(4);
    node.stop();
    let refused = Node::start(config(2), store, clock).map(drop);
    assert_eq!(refused, Err(StartError::Shards { noted: 4, configured: 2 }));
}
