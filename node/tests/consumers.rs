//! Consumers that wait: who comes first, who gives up, who disappears.

use std::time::Duration;

use crate::stage::{Gate, PATIENCE, Stage, config, eventually, is_dry, name, next, task, wait_for};
use punctual_core::store::Table;
use punctual_core::{Millis, QueueSettings, Rate, Refused};
use punctual_memory::{Fate, MemoryStore};
use punctual_node::{Error, Handle, Node, shard_of};

#[tokio::test]
async fn the_longest_waiting_is_served_first_whichever_shard_has_something() {
    let Stage { handle, node: _node, .. } = Stage::new(4);
    let mut consumers = Vec::new();
    for number in 0..8 {
        let waiting = handle.clone();
        consumers.push(tokio::spawn(async move { next(&waiting, "orders").await }));
        eventually("the consumer waits", async || handle.stats().waiting_consumers == number + 1).await;
    }
    let mut shards: Vec<u16> = (0..8).map(|number| shard_of("orders", &number.to_string(), 4).0).collect();
    for (number, consumer) in consumers.into_iter().enumerate() {
        let id = number.to_string();
        handle.schedule(task("orders", &id)).await.unwrap();
        let delivery = tokio::time::timeout(PATIENCE, consumer).await.expect("the longest waiting is served").unwrap();
        assert_eq!(delivery.id.as_str(), id);
    }
    shards.sort_unstable();
    shards.dedup();
    assert!(shards.len() > 1, "the test should use several shards: {shards:?}");
}

#[tokio::test]
async fn a_consumer_that_gives_up_is_answered_empty_and_not_before_its_time() {
    let Stage { handle, node: _node, .. } = Stage::new(2);
    assert!(is_dry(&handle, "orders").await);
    let until = handle.now().plus(punctual_core::Millis(60));
    let deliveries = handle.reserve(wait_for(&handle, "orders", Duration::from_millis(60))).await.unwrap();
    assert!(deliveries.is_empty() && handle.now() >= until);
}

#[tokio::test]
async fn who_does_not_want_to_wait_gets_what_is_there() {
    let Stage { handle, node: _node, .. } = Stage::new(4);
    for number in 0..20 {
        handle.schedule(task("orders", &number.to_string())).await.unwrap();
    }
    // Due at once, but it takes a step until a task is ready.
    for _ in 0..20 {
        eventually("a task is ready", async || !is_dry(&handle, "orders").await).await;
    }
    assert!(is_dry(&handle, "orders").await);
}

#[tokio::test]
async fn a_dropped_consumer_leaves_the_board() {
    let Stage { handle, node: _node, .. } = Stage::new(1);
    {
        let reserve = handle.reserve(wait_for(&handle, "orders", PATIENCE));
        assert!(tokio::time::timeout(Duration::from_millis(20), reserve).await.is_err());
    }
    assert_eq!(handle.stats().waiting_consumers, 0);
    handle.schedule(task("orders", "7")).await.unwrap();
    assert_eq!(next(&handle, "orders").await.attempt, 1);
}

#[tokio::test]
async fn what_was_on_its_way_to_a_dropped_consumer_goes_back() {
    let stage = Stage::new(1);
    let handle = stage.handle.clone();
    let dropped = tokio::spawn({
        let handle = handle.clone();
        async move { next(&handle, "orders").await }
    });
    eventually("the consumer waits", async || handle.stats().waiting_consumers == 1).await;
    handle.schedule(task("orders", "7").after(punctual_core::Millis(50))).await.unwrap();
    let gate = stage.close_gate();
    gate.wait_for_somebody();
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    gate.open();
    // The lease of the dropped one would last an hour.
    let delivery = next(&handle, "orders").await;
    assert_eq!((delivery.id.as_str(), delivery.attempt), ("7", 2));
}

#[tokio::test]
async fn what_has_arrived_at_a_dropped_consumer_goes_back() {
    let Stage { handle, node: _node, .. } = Stage::new(1);
    {
        // Polled once, then left alone until the delivery has come.
        let mut reserve = Box::pin(handle.reserve(wait_for(&handle, "orders", PATIENCE)));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(reserve.as_mut().poll(&mut context).is_pending());
        handle.schedule(task("orders", "7")).await.unwrap();
        eventually("it is handed over", async || handle.stats().lateness_buckets.count == 1).await;
    }
    assert_eq!(next(&handle, "orders").await.attempt, 2);
}

#[tokio::test]
async fn a_queue_that_nobody_made_is_refused_if_queues_must_be_made() {
    let mut strict = config(2);
    strict.shard.create_on_use = false;
    let stage = Stage::with(strict.clone());
    let handle = stage.handle.clone();
    let reserve = || handle.reserve(wait_for(&handle, "orders", Duration::ZERO));
    let refused = Err(Error::Refused(Refused::NoSuchQueue(name("orders"))));
    assert_eq!(reserve().await, refused);
    handle.put_queue(&name("orders"), QueueSettings::default()).await.unwrap();
    assert_eq!(reserve().await, Ok(vec![]));

    let stage = stage.restart(strict);
    let handle = stage.handle.clone();
    assert_eq!(handle.reserve(wait_for(&handle, "orders", Duration::ZERO)).await, Ok(vec![]));
    handle.delete_queue(&name("orders"), false).await.unwrap();
    assert_eq!(handle.reserve(wait_for(&handle, "orders", Duration::ZERO)).await, refused);
}

#[tokio::test]
async fn a_queue_whose_maker_left_can_be_consumed() {
    let mut strict = config(2);
    strict.shard.create_on_use = false;
    let stage = Stage::with(strict);
    let (handle, orders) = (stage.handle.clone(), name("orders"));
    let reserve = || handle.reserve(wait_for(&handle, "orders", Duration::ZERO));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    // Nothing is answered before the gate opens, and by then nobody listens.
    let gate = stage.close_gate();
    let mut put = Box::pin(handle.put_queue(&orders, QueueSettings::default()));
    assert!(put.as_mut().poll(&mut context).is_pending());
    drop(put);
    gate.open();
    eventually("there is a queue", async || handle.queue(&orders).await.is_ok_and(|queue| queue.is_some())).await;
    eventually("it can be consumed", async || reserve().await == Ok(vec![])).await;

    // Whenever somebody leaves who deletes it: where it is gone it cannot be consumed, and else it can.
    for polls in 0..30 {
        handle.put_queue(&orders, QueueSettings::default()).await.unwrap();
        let mut delete = Box::pin(handle.delete_queue(&orders, true));
        for _ in 0..polls {
            if delete.as_mut().poll(&mut context).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(delete);
        // What was sent is done by then.
        tokio::time::sleep(Duration::from_millis(10)).await;
        eventually("both agree", async || reserve().await.is_ok() == handle.queue(&orders).await.unwrap().is_some())
            .await;
    }
}

#[tokio::test]
async fn a_pause_that_is_over_is_refused_whichever_way_it_comes() {
    let Stage { handle, node: _node, .. } = Stage::new(2);
    let orders = name("orders");
    let paused = |until| QueueSettings { paused_until: Some(until), ..QueueSettings::default() };
    let over = paused(handle.now());
    let is_refused = |field, result: Result<QueueSettings, Error>| {
        assert!(
            matches!(&result, Err(Error::Refused(Refused::Invalid { field: is, .. })) if *is == field),
            "{result:?}"
        );
    };
    is_refused("paused_until", handle.put_queue(&orders, over.clone()).await);
    handle.put_queue(&orders, QueueSettings::default()).await.unwrap();
    let again = over.clone();
    let amended = handle.amend_queue(&orders, move |_| Ok::<_, ()>(again.clone())).await;
    is_refused("paused_until", amended.map(|settings| settings.unwrap()));
    is_refused("until", handle.pause_queue(&orders, over.paused_until, None).await);

    // Something else is changed while a pause that was said before runs out.
    let soon = paused(handle.after(Millis(20)));
    handle.put_queue(&orders, soon.clone()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(30)).await;
    let lease = Millis::from_secs(7);
    let amended = handle.amend_queue(&orders, move |present| Ok::<_, ()>(QueueSettings { lease, ..present })).await;
    assert_eq!(amended, Ok(Ok(QueueSettings { lease, ..soon })));
}

#[tokio::test]
async fn the_rate_of_a_queue_smooths_what_it_hands_out() {
    let Stage { handle, node: _node, .. } = Stage::new(2);
    let rate = Some(Rate { per_second: 50, burst: 1 });
    handle.put_queue(&name("orders"), QueueSettings { rate, ..QueueSettings::default() }).await.unwrap();
    for number in 0..6 {
        handle.schedule(task("orders", &number.to_string())).await.unwrap();
    }
    let begun = std::time::Instant::now();
    for _ in 0..6 {
        next(&handle, "orders").await;
    }
    assert!(begun.elapsed() >= Duration::from_millis(90), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn none_of_several_queues_starves() {
    let Stage { handle, node: _node, .. } = Stage::new(1);
    for number in 0..10 {
        handle.schedule(task("much", &format!("m{number}"))).await.unwrap();
    }
    handle.schedule(task("little", "l")).await.unwrap();
    let mut reserve = wait_for(&handle, "much", PATIENCE);
    reserve.queues.push(name("little"));
    let mut queues = Vec::new();
    for _ in 0..2 {
        queues.push(handle.reserve(reserve.clone()).await.unwrap().remove(0).queue);
    }
    queues.sort();
    assert_eq!(queues, [name("little"), name("much")]);
}

/// Holds what a node reads ahead until the gate is opened.
fn hold_reading_ahead(stage: &MemoryStore) -> Gate {
    let gate = Gate::default();
    let pass = gate.pass();
    stage.faults().slow_down_scans(move |table| {
        if table == Table::Live {
            pass();
        }
    });
    gate
}

/// Somebody who does not want to wait is kept until the shards have looked, and then gets what is there.
async fn must_be_kept(handle: &Handle, gate: &Gate) {
    let waiting = handle.clone();
    let kept = tokio::spawn(async move { waiting.reserve(wait_for(&waiting, "orders", Duration::ZERO)).await });
    gate.wait_for_somebody();
    eventually("the consumer is kept", async || handle.stats().waiting_consumers == 1).await;
    gate.open();
    assert_eq!(kept.await.unwrap().unwrap().len(), 1, "something was ready");
}

#[tokio::test]
async fn nobody_goes_home_before_every_shard_has_looked_after_a_start() {
    let stage = Stage::new(4);
    stage.handle.schedule(task("orders", "7")).await.unwrap();
    let Stage { clock, store, node, .. } = stage;
    node.stop();
    let gate = hold_reading_ahead(&store);
    let node = Node::start(config(4), store.clone(), clock).unwrap();
    // Dropped before the node, which would wait for it.
    let gate = gate;
    must_be_kept(&node.handle(), &gate).await;
}

#[tokio::test]
async fn nobody_goes_home_before_a_shard_has_looked_that_was_opened_again() {
    let Stage { handle, store, node: _node, .. } = Stage::new(1);
    handle.schedule(task("orders", "7")).await.unwrap();
    let gate = hold_reading_ahead(&store);
    store.faults().fail_next_commit(Fate::Lost);
    assert!(handle.schedule(task("others", "7")).await.is_err());
    eventually("the shard is back", async || handle.ready().is_ok()).await;
    must_be_kept(&handle, &gate).await;
}
