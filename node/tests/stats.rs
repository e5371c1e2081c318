//! What a node tells about its own work.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::stage::nodes::Nodes;
use crate::stage::{Stage, eventually, finish, name, next, task, wait_for};
use punctual_core::{Back, Millis, Name, Rate, Reason, Refused, Reserve, Scope, Subject, TopicSettings};
use punctual_node::{AllWork, Distribution, Error, Grain, Handle, Happened};

async fn work(handle: &Handle) -> AllWork {
    handle.work(&Scope::ALL, 99, None).await.unwrap()
}

async fn busiest(handle: &Handle) -> BTreeMap<Name, Happened> {
    work(handle).await.topics
}

#[tokio::test]
async fn what_happens_is_counted_by_topic() {
    let Stage { handle, clock, node: _node, .. } = Stage::new(2);
    let before = handle.stats();
    assert!(before.happened == Happened::default() && before.started_at <= handle.now());
    for id in ["done", "back", "no"] {
        handle.schedule(task("orders", id)).await.unwrap();
    }
    handle.schedule(task("mail", "gone").after(Millis::from_hours(1))).await.unwrap();
    handle.cancel(&name("mail"), &name("gone")).await.unwrap();
    for _ in 0..3 {
        let delivery = next(&handle, "orders").await;
        match delivery.id.as_str() {
            "done" => finish(&handle, delivery.lease).await,
            "back" => _ = handle.release(delivery.lease, Back::After(Millis::from_hours(1)), None, None).await.unwrap(),
            _ => handle.reject(delivery.lease, None).await.unwrap(),
        }
    }
    let mut dead = [0; Reason::ALL.len()];
    dead[0] = 1;
    let orders = Happened { scheduled: 3, fired: 3, leased: 3, released: 1, done: 1, dead, ..Happened::default() };
    let mail = Happened { scheduled: 1, cancelled: 1, ..Happened::default() };
    let expected = BTreeMap::from([(name("mail"), mail), (name("orders"), orders)]);
    eventually("all is counted", async || busiest(&handle).await == expected).await;
    assert_eq!(handle.happened(&name("orders")).await.dead_of(Reason::Rejected), 1);

    clock.step(3_600_001);
    eventually("it fires again", async || handle.happened(&name("orders")).await.fired == 4).await;
}

#[tokio::test]
async fn a_deleted_topic_is_not_counted_any_more() {
    let Stage { handle, node: _node, .. } = Stage::new(4);
    for topic in 0..20 {
        let topic = name(&format!("topic-{topic}"));
        let later = |n: u32| task(&topic, &n.to_string()).after(Millis::from_hours(1));
        assert!(handle.schedule_many((0..20).map(later).collect()).await.iter().all(Result::is_ok));
        handle.delete_topic(&topic, true).await.unwrap();
    }
    handle.schedule(task("orders", "7").after(Millis::from_hours(1))).await.unwrap();
    eventually("only what is there is counted", async || busiest(&handle).await.into_keys().eq([name("orders")])).await;
    let stats = handle.stats();
    assert_eq!((stats.happened.scheduled, stats.present.scheduled), (401, 1));
}

#[tokio::test]
async fn refusals_are_counted_by_their_codes_each_once() {
    let Stage { handle, node, .. } = Stage::new(3);
    let orders = name("orders");
    handle.schedule(task("orders", "7")).await.unwrap();
    let lease = next(&handle, "orders").await.lease;
    finish(&handle, lease.clone()).await;
    assert!(handle.acknowledge(lease.clone()).await.is_err());
    assert!(handle.acknowledge_many(vec![lease.clone(), lease]).await.iter().all(Result::is_err));
    assert!(handle.pause_topic(&name("nowhere"), None).await.is_err());
    assert!(handle.delete_queue(&name("nowhere"), false).await.is_err());
    handle.schedule(task("orders", "8")).await.unwrap();
    assert!(handle.delete_topic(&orders, false).await.is_err());
    let nobody = Reserve { queues: vec![], ..wait_for(&handle, "orders", Duration::ZERO) };
    assert!(handle.reserve(nobody).await.is_err());
    let settings = TopicSettings { rate: Some(Rate { per_second: 1, burst: 1 }), ..TopicSettings::default() };
    handle.put_topic(&name("slow"), settings).await.unwrap();
    let tasks = (0..4).map(|n| task("slow", &n.to_string())).collect();
    let limited = handle.schedule_many(tasks).await.iter().filter(|taken| taken.is_err()).count() as u64;
    let large = task("orders", "9").after(Millis::from_hours(1));
    let large = punctual_core::Task { body: vec![0; 2 << 20].into(), ..large };
    assert!(handle.schedule(large).await.is_err());
    node.stop();
    assert_eq!(handle.counts().await, Err(Error::Stopping));
    assert_eq!(handle.schedule(task("orders", "10")).await, Err(Error::Stopping));
    let expected = BTreeMap::from([
        ("body-too-large", 1),
        ("invalid", 1),
        ("lease-lost", 3),
        ("no-such-queue", 1),
        ("no-such-topic", 1),
        ("not-empty", 1),
        ("rate-limited", limited),
        ("stopping", 2),
    ]);
    assert_eq!(handle.stats().refusals, expected);
}

#[tokio::test]
async fn a_full_store_and_a_full_inbox_have_codes_too() {
    let codes = [Error::Overloaded, Error::Full("x".into()), Error::nothing_done("x"), Error::Stopping];
    assert_eq!(codes.map(|error| error.code()), ["overloaded", "store-full", "unavailable", "stopping"]);
    assert_eq!(Error::unknown_outcome("x").code(), "outcome-unknown");
    let refused = Error::from(Refused::NothingThere);
    assert_eq!(refused.code(), "nothing-there");
}

#[tokio::test]
async fn buckets_hold_what_the_distributions_hold() {
    let Stage { handle, node: _node, .. } = Stage::new(1);
    for number in 0..20 {
        handle.schedule(task("orders", &number.to_string())).await.unwrap();
        let delivery = next(&handle, "orders").await;
        finish(&handle, delivery.lease).await;
    }
    eventually("all is measured", async || handle.stats().lateness_buckets.count == 20).await;
    let (stats, work) = (handle.stats(), work(&handle).await.work);
    for (buckets, spread) in [
        (&stats.lateness_buckets, work.lateness),
        (&stats.offered_buckets, work.offered),
        (&stats.taken_buckets, work.taken),
        (&stats.commit_time_buckets, work.commit_time),
        (&stats.commit_changes_buckets, work.commit_changes),
    ] {
        let distribution = Distribution::of(&spread);
        assert_eq!(buckets.count, distribution.count);
        assert_eq!(buckets.bounds.len(), buckets.counts.len());
        assert!(buckets.counts.is_sorted() && buckets.counts.iter().all(|count| *count <= buckets.count));
        assert!(buckets.sum >= distribution.max);
    }
}

#[tokio::test]
async fn the_servers_part_of_the_lateness_is_told_apart_from_the_consumers() {
    let Stage { handle, clock, node: _node, .. } = Stage::new(1);
    handle.schedule(task("slow", "1").after(Millis(20))).await.unwrap();
    eventually("it is offered", async || handle.stats().offered_buckets.count == 1).await;
    let due = handle.get(&name("slow"), &name("1")).await.unwrap().unwrap().due;
    assert_eq!(handle.queue(&name("slow")).await.unwrap().unwrap().oldest, Some(due));
    assert_eq!(handle.stats().taken_buckets.count, 0, "nobody has come");

    clock.step(600_000);
    let delivery = next(&handle, "slow").await;
    finish(&handle, delivery.lease).await;
    handle.schedule(task("quick", "1")).await.unwrap();
    let delivery = next(&handle, "quick").await;
    finish(&handle, delivery.lease).await;
    eventually("both are measured", async || handle.stats().taken_buckets.count == 2).await;

    let work = work(&handle).await.work;
    let minutes = 599_000_000;
    assert!(work.lateness.max() > minutes && work.taken.max() > minutes, "nobody was there: {work:?}");
    assert!(work.offered.max() < minutes, "the server was not that slow: {work:?}");
    let timings = handle.timings(["slow", "quick", "none"].map(name).into()).await;
    let counts = timings.iter().map(|timing| (timing.offered.count, timing.taken.count));
    assert_eq!(counts.collect::<Vec<_>>(), [(1, 1), (1, 1), (0, 0)]);
    assert!(timings[0].taken.sum > minutes && timings[0].offered.sum < minutes);
    assert!(timings[1].taken.sum < minutes);
    assert_eq!(handle.queue(&name("slow")).await.unwrap().unwrap().oldest, None);

    handle.delete_queue(&name("slow"), true).await.unwrap();
    eventually("a queue that is gone is not kept", async || {
        handle.timings(vec![name("slow")]).await[0].taken.count == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_asked_tells_of_all_nodes_and_who_says_nothing_is_named() {
    let nodes = Nodes::start(2).await;
    for number in 0..2 {
        nodes.schedule_at(number, "orders", 5).await;
    }
    let of = async |node: Option<&str>| {
        let node = node.map(name);
        nodes.handles[0].work(&Scope::ALL, 9, node.as_ref()).await
    };
    eventually("all is counted", async || of(None).await.unwrap().topics[&name("orders")].scheduled == 10).await;
    let (all, first, second) = (of(None).await.unwrap(), of(Some("0")).await.unwrap(), of(Some("1")).await.unwrap());
    assert_eq!((first.topics[&name("orders")].scheduled, second.topics[&name("orders")].scheduled), (5, 5));
    assert_eq!(all.work.lateness.count(), first.work.lateness.count() + second.work.lateness.count());
    assert!(all.work.lateness.count() > 0 && all.silent.is_empty(), "{all:?}");
    assert_eq!(nodes.handles[1].happened(&name("orders")).await.scheduled, 10);
    let timing = &nodes.handles[1].timings(vec![name("orders")]).await[0];
    assert_eq!(timing.offered.count, 10);
    assert!(matches!(of(Some("nobody")).await, Err(Error::Refused(Refused::Invalid { field: "node", .. }))));

    let now = nodes.handles[1].now();
    let (pulse, silent) = nodes.handles[1].pulse(vec![name("orders")]).await;
    assert_eq!(
        (pulse.topics[0].scheduled, pulse.happened.scheduled, silent),
        (10, all.work.happened.scheduled, vec![])
    );
    assert!(pulse.lateness.count() > 0 && pulse.lateness.count() <= all.work.lateness.count());
    let orders = Some(Subject::Topic(name("orders")));
    let series = nodes.handles[0].series(orders, Grain::Minute, now.minus(Millis::from_mins(5)), 7).await.0;
    assert_eq!(series.slots.iter().map(|slot| slot.scheduled).sum::<u64>(), 10);
    assert!(series.known_since.is_some_and(|since| since <= now));
    for handle in &nodes.handles {
        handle.take_stock().await.unwrap();
    }
    let last = async |of| nodes.handles[0].series(of, Grain::TenSeconds, nodes.handles[0].now(), 1).await.0.slots;
    let gauges = last(Some(Subject::Queue(name("orders")))).await[0].gauges.unwrap();
    assert_eq!((gauges.ready, gauges.leased), (10, 0), "each node tells of its own shards");
    assert_eq!(last(None).await[0].gauges.unwrap().ready, 10);

    nodes.network.cut("0", "1");
    eventually("it is not heard", async || of(None).await.unwrap().silent == [name("1")]).await;
    assert_eq!(of(None).await.unwrap().topics[&name("orders")].scheduled, 5);
    assert!(matches!(of(Some("1")).await, Err(Error::Unavailable { .. })));
}
