//! Watching what happens on a node.

use std::time::Duration;

use crate::stage::{PATIENCE, Stage, eventually, finish, name, next, schedule_until_back, task};
use punctual_core::{Millis, What};
use punctual_memory::Fate;
use punctual_node::{Watch, Watched};

/// The words of the next events, at least so many.
async fn words(watch: &mut Watch, count: usize) -> Vec<&'static str> {
    let mut words = Vec::new();
    while words.len() < count {
        match tokio::time::timeout(PATIENCE, watch.next()).await.expect("something is to be seen") {
            Some(Watched::Events(events)) => words.extend(events.events().iter().map(|event| event.what.as_str())),
            other => panic!("{other:?}"),
        }
    }
    words
}

#[tokio::test]
async fn a_watcher_sees_the_life_of_a_task() {
    let Stage { handle, node: _node, .. } = Stage::new(2);
    let mut watch = handle.watch();
    handle.schedule(task("orders", "7").after(Millis(20)).key(name("ann"))).await.unwrap();
    let Some(Watched::Events(events)) = watch.next().await else { panic!("it was scheduled") };
    let event = &events.events()[0];
    assert!(matches!(event.what, What::Scheduled { due } if due > event.at));
    assert_eq!((event.task.topic(), event.task.id(), &event.key), ("orders", "7", &Some(name("ann"))));
    assert_eq!(words(&mut watch, 1).await, ["fired"], "also if nobody takes it and nothing is written");
    let delivery = next(&handle, "orders").await;
    finish(&handle, delivery.lease).await;
    assert_eq!(words(&mut watch, 2).await, ["leased", "done"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_sees_what_happened_only_after_it_is_durable() {
    let stage = Stage::new(1);
    let mut watch = stage.handle.watch();
    let gate = stage.close_gate();
    let scheduled = tokio::spawn({
        let handle = stage.handle.clone();
        async move { handle.schedule(task("orders", "7")).await }
    });
    let gate = tokio::task::spawn_blocking(move || {
        gate.wait_for_somebody();
        gate
    });
    let gate = gate.await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(100), watch.next()).await.is_err());
    gate.open();
    assert_eq!(words(&mut watch, 2).await, ["scheduled", "fired"]);
    scheduled.await.unwrap().unwrap();

    // What the store did not take has not happened.
    stage.store.faults().fail_next_commit(Fate::Lost);
    assert!(stage.handle.schedule(task("orders", "lost").after(Millis::from_hours(1))).await.is_err());
    schedule_until_back(&stage.handle, task("orders", "after").after(Millis::from_hours(1))).await;
    assert_eq!(words(&mut watch, 2).await, ["fired", "scheduled"], "what was ready fires again, nothing is told twice");
}

#[tokio::test]
async fn a_slow_watcher_is_told_how_much_it_missed() {
    let Stage { handle, node, .. } = Stage::new(1);
    let mut watch = handle.watch();
    for number in 0..1_500 {
        handle.schedule(task("orders", &number.to_string()).after(Millis::from_hours(1))).await.unwrap();
    }
    eventually("all rounds are out", async || handle.stats().happened.scheduled == 1_500).await;
    let Some(Watched::Missed(missed)) = watch.next().await else { panic!("it was slow") };
    node.stop();
    let mut seen = 0;
    while let Some(watched) = watch.next().await {
        assert!(matches!(&watched, Watched::Events(events) if events.events().len() == 1), "{watched:?}");
        seen += 1;
    }
    assert_eq!((missed, seen), (1_500 - 1_024, 1_024));
}

#[tokio::test]
async fn watching_ends_with_the_node() {
    let Stage { handle, node, .. } = Stage::new(1);
    let mut watch = handle.watch();
    handle.schedule(task("orders", "7").after(Millis::from_hours(1))).await.unwrap();
    node.stop();
    assert_eq!(words(&mut watch, 1).await, ["scheduled"]);
    assert_eq!(watch.next().await, None);
    assert_eq!(handle.watch().next().await, None);
}

#[tokio::test]
async fn who_comes_back_sees_what_happened_in_between() {
    let Stage { handle, node: _node, .. } = Stage::new(2);
    let schedule = async |id: &str| {
        handle.schedule(task("orders", id).after(Millis::from_hours(1))).await.unwrap();
    };
    let mut watch = handle.watch();
    let start = watch.start();
    schedule("1").await;
    let Some(Watched::Events(seen)) = watch.next().await else { panic!("it was scheduled") };
    drop(watch);
    schedule("2").await;
    schedule("3").await;
    for (id, expected) in [(start, vec!["1", "2", "3"]), (seen.id(), vec!["2", "3"])] {
        // As a door would pass it on.
        let mut again = handle.watch_after(id.to_string().parse().unwrap());
        let mut ids = Vec::new();
        while ids.len() < expected.len() {
            let Some(Watched::Events(round)) = again.next().await else { panic!("it was kept") };
            ids.extend(round.events().iter().map(|event| event.task.id().to_owned()));
        }
        assert_eq!(ids, expected);
        schedule("4").await;
        let Some(Watched::Events(_)) = again.next().await else { panic!("it goes on") };
        handle.cancel(&name("orders"), &name("4")).await.unwrap();
    }
    let mut elsewhere = handle.watch_after("1-1".parse().unwrap());
    assert_eq!(elsewhere.next().await, Some(Watched::Missed(1)), "another node has told that");
}
