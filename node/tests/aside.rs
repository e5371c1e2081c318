//! Shards that are set aside: what is done then meets a shard that is whole in the store, and nobody loses anything.

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::stage::{Stage, config, finish, is_dry, name, next, task};
use punctual_core::store::{Bodies, Key, Look, ShardId};
use punctual_core::{Millis, Task};
use punctual_node::{Error, Handle, NodeConfig, shard_of};

/// An id whose task is in this shard.
fn id_in(shard: u16, shards: u16) -> String {
    let is_there = |id: &String| shard_of(&name("orders"), &name(id), shards) == ShardId(shard);
    (0..).map(|number: u32| number.to_string()).find(is_there).unwrap()
}

/// Sets a shard aside until the sender is dropped. Comes back when it is.
async fn hold(handle: &Handle, shard: u16) -> (mpsc::Sender<()>, tokio::task::JoinHandle<Result<(), Error>>) {
    let (open, gate) = mpsc::channel::<()>();
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let handle = handle.clone();
    let done = tokio::spawn(async move {
        let work = move |_| {
            begun.send(()).unwrap();
            _ = gate.recv();
        };
        handle.set_aside(ShardId(shard), work).await
    });
    has_begun.await.unwrap();
    (open, done)
}

#[tokio::test]
async fn what_was_sent_before_is_in_the_store_and_what_comes_meanwhile_waits() {
    for callers_step in [false, true] {
        let stage = Stage::with(NodeConfig { callers_step, ..config(1) });
        let (handle, store) = (stage.handle.clone(), stage.store.clone());
        handle.schedule(task("orders", "before").after(Duration::from_secs(60))).await.unwrap();
        let (open, done) = hold(&handle, 0).await;
        let waiting = tokio::spawn({
            let handle = handle.clone();
            async move { handle.schedule(task("orders", "meanwhile")).await }
        });
        tokio::time::sleep(Duration::from_millis(30)).await;
        let rows = |ids: [&str; 2]| {
            let keys = ids.map(|id| Key::task(&name("orders"), &name(id)));
            store
                .get(ShardId(0), &keys, Bodies::Without)
                .unwrap()
                .into_iter()
                .map(|row| row.is_some())
                .collect::<Vec<_>>()
        };
        assert_eq!(rows(["before", "meanwhile"]), [true, false]);
        assert!(!waiting.is_finished());
        drop(open);
        done.await.unwrap().unwrap();
        waiting.await.unwrap().unwrap();
        assert_eq!(rows(["before", "meanwhile"]), [true, true]);
        let delivery = next(&handle, "orders").await;
        assert_eq!(delivery.id.as_str(), "meanwhile");
        finish(&handle, delivery.lease).await;
    }
}

#[tokio::test]
async fn other_shards_go_on_and_consumers_do_not_wait_for_one_that_is_aside() {
    let stage = Stage::new(2);
    let (handle, here, there) = (stage.handle.clone(), id_in(0, 2), id_in(1, 2));
    handle.schedule(task("orders", &here)).await.unwrap();
    let (open, done) = hold(&handle, 0).await;
    assert!(is_dry(&handle, "orders").await, "what is aside is not handed out");
    handle.schedule(task("orders", &there)).await.unwrap();
    let delivery = next(&handle, "orders").await;
    assert_eq!(delivery.id.as_str(), there);
    let waiting = tokio::spawn({
        let handle = handle.clone();
        async move { next(&handle, "orders").await }
    });
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert!(!waiting.is_finished());
    drop(open);
    done.await.unwrap().unwrap();
    assert_eq!(waiting.await.unwrap().id.as_str(), here, "who waits on the board gets it when it is back");
}

#[tokio::test]
async fn a_lease_outlives_it() {
    let stage = Stage::new(1);
    let handle = stage.handle.clone();
    handle.schedule(task("orders", "1")).await.unwrap();
    let delivery = next(&handle, "orders").await;
    let (open, done) = hold(&handle, 0).await;
    drop(open);
    done.await.unwrap().unwrap();
    assert!(is_dry(&handle, "orders").await, "it is still with its consumer");
    finish(&handle, delivery.lease).await;
}

#[tokio::test]
async fn only_one_thing_at_a_time_is_done_with_a_shard() {
    let stage = Stage::new(1);
    let (open, done) = hold(&stage.handle, 0).await;
    let second = tokio::spawn({
        let handle = stage.handle.clone();
        async move { handle.set_aside(ShardId(0), |_| ()).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(stage.handle.set_aside(ShardId(0), |_| ()).await, Err(Error::Overloaded));
    drop(open);
    done.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_waits_for_it_and_answers_what_waited() {
    let stage = Stage::new(1);
    let (open, done) = hold(&stage.handle, 0).await;
    let waiting = tokio::spawn({
        let handle = stage.handle.clone();
        async move { handle.schedule(task("orders", "1").after(Millis::from_hours(1))).await }
    });
    tokio::time::sleep(Duration::from_millis(30)).await;
    let Stage { node, handle, .. } = stage;
    let stopping = thread::spawn(move || node.stop());
    thread::sleep(Duration::from_millis(30));
    drop(open);
    stopping.join().unwrap();
    done.await.unwrap().unwrap();
    waiting.await.unwrap().unwrap();
    assert_eq!(handle.set_aside(ShardId(0), |_| ()).await, Err(Error::Stopping));
}

#[tokio::test(flavor = "multi_thread")]
async fn set_aside_again_and_again_nothing_is_lost_or_handed_out_twice() {
    for callers_step in [false, true] {
        let stage = Stage::with(NodeConfig { callers_step, ..config(1) });
        let handle = stage.handle.clone();
        const TASKS: usize = 2_000;
        let schedule = tokio::spawn({
            let handle = handle.clone();
            async move {
                for number in 0..TASKS {
                    handle.schedule(Task::new(name("orders"), "").id(name(&number.to_string()))).await.unwrap();
                }
            }
        });
        let consume = tokio::spawn({
            let handle = handle.clone();
            async move {
                let mut seen = BTreeSet::new();
                while seen.len() < TASKS {
                    let delivery = next(&handle, "orders").await;
                    assert!(seen.insert(delivery.id.clone()), "{} came twice", delivery.id);
                    finish(&handle, delivery.lease).await;
                }
            }
        });
        while !consume.is_finished() {
            handle.set_aside(ShardId(0), |_| thread::sleep(Duration::from_millis(2))).await.unwrap();
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        schedule.await.unwrap();
        consume.await.unwrap();
    }
}
