//! Changes of settings and deletions: one after the other, to their end, whoever leaves or asks again.

use std::task::{Context, Waker};
use std::time::Duration;

use crate::stage::{Stage, name, task};
use punctual_core::{Millis, QueueSettings, Refused, TopicSettings};
use punctual_node::{Error, Handle};

/// Schedules so many tasks of a topic for later.
async fn fill(handle: &Handle, topic: &str, count: usize) {
    for number in 0..count {
        handle.schedule(task(topic, &number.to_string()).after(Millis::from_hours(1))).await.unwrap();
    }
}

/// Schedules a task as soon as its topic is not being deleted any more.
async fn schedule_anew(handle: &Handle, topic: &str, id: &str) {
    let later = || task(topic, id).after(Millis::from_hours(1));
    while let Err(error) = handle.schedule(later()).await {
        assert_eq!(error, Error::Refused(Refused::BeingDeleted(name(topic))));
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_second_deletion_is_joined_and_spares_what_comes_after() {
    for shards in [1, 4] {
        let stage = Stage::new(shards);
        let (handle, orders) = (stage.handle.clone(), name("orders"));
        fill(&handle, "orders", 1_500).await;
        let gate = stage.close_gate();
        let mut context = Context::from_waker(Waker::noop());
        let mut deletions: Vec<_> = (0..3).map(|_| Box::pin(handle.delete_topic(&orders, true))).collect();
        for deletion in &mut deletions {
            assert!(deletion.as_mut().poll(&mut context).is_pending());
        }
        // One of those who ask gives up. None of it is durable yet, and all of them have been heard.
        drop(deletions.pop());
        let paused = handle.pause_topic(&orders, None).await;
        assert_eq!(paused, Err(Error::Refused(Refused::BeingDeleted(orders.clone()))));
        gate.open();
        let (second, first) = (deletions.pop().unwrap(), deletions.pop().unwrap());
        assert_eq!(first.await, Ok(1_500));
        schedule_anew(&handle, "orders", "anew").await;
        assert_eq!(second.await, Ok(1_500), "it was the same");
        assert!(handle.get(&orders, &name("anew")).await.unwrap().is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_holds_up_no_other_settings() {
    let stage = Stage::new(1);
    let handle = stage.handle.clone();
    fill(&handle, "orders", 5_000).await;
    stage.store.faults().slow_down(|| std::thread::sleep(Duration::from_millis(30)));
    let deleting = tokio::spawn({
        let handle = handle.clone();
        async move { handle.delete_topic(&name("orders"), true).await }
    });
    while handle.schedule(task("orders", "more")).await.is_ok() {}
    handle.put_queue(&name("other"), QueueSettings::default()).await.unwrap();
    handle.pause_topic(&name("orders"), None).await.unwrap_err();
    assert!(!deleting.is_finished(), "it takes long, and nobody waits for it");
    let put = handle.put_topic(&name("orders"), TopicSettings::default()).await;
    assert_eq!(put, Err(Error::Refused(Refused::BeingDeleted(name("orders")))));
    assert!(deleting.await.unwrap().unwrap() >= 5_000);
    handle.put_topic(&name("orders"), TopicSettings::default()).await.unwrap();
}

#[tokio::test]
async fn who_leaves_while_something_is_changed_leaves_nothing_half_done() {
    let Stage { handle, node: _node, .. } = Stage::new(4);
    let mut context = Context::from_waker(Waker::noop());
    for round in 0..60 {
        let topic = format!("topic-{round}");
        let of_topic = name(&topic);
        // It is in one shard only, and is to be paused in all.
        fill(&handle, &topic, 1).await;
        let mut pause = Box::pin(handle.pause_topic(&of_topic, None));
        for _ in 0..round / 4 {
            if pause.as_mut().poll(&mut context).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(pause);
        // What comes next is done after what was begun.
        handle.put_queue(&name("other"), QueueSettings::default()).await.unwrap();
        let is_paused = handle.topic(&of_topic).await.unwrap().unwrap().settings.paused;
        for number in 0..16 {
            let scheduled = handle.schedule(task(&topic, &format!("more-{number}"))).await;
            assert_eq!(scheduled.is_err(), is_paused, "round {round}: {scheduled:?}");
        }
    }
}

#[tokio::test]
async fn a_queue_is_made_only_if_there_is_none() {
    let Stage { handle, node: _node, .. } = Stage::new(2);
    let short = QueueSettings { lease: Millis::from_secs(7), ..QueueSettings::default() };
    handle.make_queue(&name("orders"), short.clone()).await.unwrap();
    assert_eq!(handle.queue(&name("orders")).await.unwrap().unwrap().settings, short);
    handle.make_queue(&name("orders"), QueueSettings::default()).await.unwrap();
    assert_eq!(handle.queue(&name("orders")).await.unwrap().unwrap().settings, short);
}
