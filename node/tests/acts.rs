//! Who did what, and why a task is where it is: told by every node, also by one that starts later.

use std::time::Duration;

use crate::stage::nodes::Nodes;
use crate::stage::{Stage, config, eventually, finish, name, next, task, wait_for};
use punctual_core::course::{Happening, Prospect};
use punctual_core::{Back, Millis, PauseNote, QueueSettings, Rate, Timestamp, TopicSettings};
use punctual_node::{Act, Cause, Handle, Situation};

fn note(by: &str, since: Timestamp, reason: Option<&str>) -> Option<PauseNote> {
    Some(PauseNote { by: by.into(), since, reason: reason.map(Into::into) })
}

fn act(handle: &Handle, what: &str) -> Act {
    Act {
        at: handle.now(),
        by: "amy".into(),
        person: None,
        node: handle.node_name().to_string(),
        what: what.into(),
        topic: None,
        id: None,
        queue: Some(name("orders")),
        subject: None,
        detail: None,
    }
}

async fn words(handle: &Handle) -> Vec<String> {
    handle.acts().await.unwrap().latest().map(|act| act.what.clone()).collect()
}

async fn situation(handle: &Handle, id: &str) -> Situation {
    handle.situation(&name("orders"), &name(id)).await.unwrap().expect("it is there")
}

async fn why(handle: &Handle, id: &str) -> Vec<Cause> {
    situation(handle, id).await.why
}

#[tokio::test]
async fn a_pause_is_known_after_a_restart_and_forgotten_when_it_ends() {
    let stage = Stage::new(4);
    let (orders, handle) = (name("orders"), stage.handle.clone());
    handle.schedule(task("orders", "1").after(Millis::from_hours(1))).await.unwrap();
    let since = handle.now();
    handle.pause_topic(&orders, note("amy", since, Some("too many"))).await.unwrap();
    handle.put_queue(&orders, QueueSettings::default()).await.unwrap();
    handle.pause_queue(&orders, None, note("bob", since, None)).await.unwrap();
    // Other settings do not touch it, whoever changes them.
    let longer = |present| Ok::<_, ()>(TopicSettings { history: Millis(7), pause: None, ..present });
    handle.amend_topic(&orders, longer).await.unwrap().unwrap();
    drop(handle);
    let stage = stage.restart(config(4));
    let topic = stage.handle.topic(&orders).await.unwrap().unwrap().settings;
    assert_eq!((topic.history, topic.pause), (Millis(7), note("amy", since, Some("too many"))));
    let queue = stage.handle.queue(&orders).await.unwrap().unwrap().settings;
    assert_eq!(queue.pause, note("bob", since, None));
    assert_eq!(stage.handle.resume_topic(&orders).await.unwrap().pause, None);
    assert_eq!(stage.handle.resume_queue(&orders).await.unwrap().pause, None);
}

#[tokio::test]
async fn a_reason_that_is_too_long_changes_nothing() {
    let Stage { handle, node: _node, .. } = Stage::new(1);
    handle.put_queue(&name("orders"), QueueSettings::default()).await.unwrap();
    let long = note("amy", handle.now(), Some(&"x".repeat(1_025)));
    handle.pause_queue(&name("orders"), None, long).await.unwrap_err();
    assert_eq!(handle.queue(&name("orders")).await.unwrap().unwrap().settings.paused_until, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_at_one_node_is_told_at_all() {
    let nodes = Nodes::start(2).await;
    let [a, b] = &nodes.handles[..] else { unreachable!("two were started") };
    a.note_act(act(a, "first"));
    assert_eq!(words(a).await, ["first"], "at its own at once");
    eventually("the other one has heard of it", async || words(b).await == ["first"]).await;
    // Both write at the same time, and neither takes the place of the other.
    for round in 0..20 {
        a.note_act(act(a, &format!("a-{round}")));
        b.note_act(act(b, &format!("b-{round}")));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    eventually("both have all", async || words(a).await.len() == 41 && words(b).await.len() == 41).await;
    assert_eq!(words(a).await, words(b).await);
}

#[tokio::test]
async fn what_was_done_is_known_after_a_restart() {
    let stage = Stage::new(1);
    let started_at = stage.handle.now();
    stage.handle.note_act(act(&stage.handle, "purge"));
    let stage = stage.restart(config(1));
    assert_eq!(words(&stage.handle).await, ["purge"]);
    assert!(stage.handle.acts().await.unwrap().known_since() <= started_at, "since the first start");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_for_a_while_loses_no_act() {
    let stage = Stage::new(1);
    stage.store.faults().cut();
    stage.handle.note_act(act(&stage.handle, "purge"));
    tokio::time::sleep(Duration::from_secs(2)).await;
    stage.store.faults().heal();
    let is_told = async || stage.handle.acts().await.is_ok_and(|acts| acts.latest().count() == 1);
    eventually("it is there", is_told).await;
    let stage = stage.restart(config(1));
    assert_eq!(words(&stage.handle).await, ["purge"]);
}

#[tokio::test]
async fn a_task_says_what_it_waits_for() {
    for shards in [1, 4] {
        let Stage { handle, node: _node, .. } = Stage::new(shards);
        let orders = name("orders");
        handle.schedule(task("orders", "later").after(Millis::from_hours(1))).await.unwrap();
        let due = handle.get(&orders, &name("later")).await.unwrap().unwrap().due;
        assert_eq!(why(&handle, "later").await, [Cause::NotDue(due)]);
        for id in ["1", "2", "3"] {
            handle.schedule(task("orders", id)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let nobody = Cause::NobodyWaits(orders.clone());
        let behind = |ahead| Cause::Behind { queue: orders.clone(), ahead, is_more: false };
        eventually("it is ready", async || why(&handle, "1").await == [nobody.clone()]).await;
        assert_eq!(why(&handle, "3").await, [nobody.clone(), behind(2)]);
        // What is more urgent comes before, though it came later.
        handle.schedule(task("orders", "urgent").priority(1)).await.unwrap();
        eventually("it is before them", async || why(&handle, "1").await == [nobody.clone(), behind(1)]).await;
        let rate = Some(Rate { per_second: 5, burst: 5 });
        let limited = move |present| Ok::<_, ()>(QueueSettings { rate, ..present });
        handle.amend_queue(&orders, limited).await.unwrap().unwrap();
        let by = note("amy", handle.now(), Some("gateway down"));
        handle.pause_queue(&orders, None, by.clone()).await.unwrap();
        let paused = Cause::Paused { queue: orders.clone(), until: None, note: by };
        let rate = Cause::Rate { queue: orders.clone(), per_second: 5 };
        assert_eq!(why(&handle, "urgent").await, [paused, nobody, rate]);
    }
}

#[tokio::test]
async fn the_course_of_a_task_is_told_from_its_beginning_to_its_end() {
    let Stage { handle, node: _node, .. } = Stage::new(1);
    handle.schedule(task("orders", "1")).await.unwrap();
    let first = next(&handle, "orders").await;
    let held = situation(&handle, "1").await;
    assert!(matches!(held.why[..], [Cause::Held { attempt: 1, .. }]), "{:?}", held.why);
    let coming: Vec<Prospect> = held.course.to_come.iter().map(|coming| coming.what).collect();
    let [Prospect::LeaseEnds { attempt: 1, at }, Prospect::RetryIfFailed { attempt: 2, after }, last] = coming[..]
    else {
        panic!("{coming:?}")
    };
    assert_eq!((at, after, last), (first.until, Millis(1_000), Prospect::DeadIfFailed { attempt: 5 }));
    handle.release(first.lease, Back::After(Millis(20)), None, Some("busy".into())).await.unwrap();
    finish(&handle, next(&handle, "orders").await.lease).await;
    let over = situation(&handle, "1").await;
    let passed: Vec<&Happening> = over.course.passed.iter().map(|passed| &passed.what).collect();
    let [Happening::Scheduled { .. }, .., Happening::Undone(attempt), Happening::Finished(_)] = passed[..] else {
        panic!("{passed:?}")
    };
    assert_eq!((attempt.number, attempt.note.as_deref()), (1, Some("busy")));
    assert_eq!(over.course.untold_attempts, 0);
    assert!(over.course.passed.is_sorted_by_key(|passed| passed.at));
    assert!(matches!(over.course.to_come[..], [ref kept] if matches!(kept.what, Prospect::Removed(_))));
    assert!(handle.situation(&name("orders"), &name("nowhere")).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_at_another_node_waits() {
    let nodes = Nodes::start(2).await;
    let [a, b] = &nodes.handles[..] else { unreachable!("two were started") };
    a.put_queue(&name("orders"), QueueSettings::default()).await.unwrap();
    a.pause_queue(&name("orders"), None, None).await.unwrap();
    a.schedule(task("orders", "1")).await.unwrap();
    let nobody = Cause::NobodyWaits(name("orders"));
    eventually("nobody waits", async || why(a, "1").await.contains(&nobody)).await;
    let waiting = tokio::spawn({
        let b = b.clone();
        async move { b.reserve(wait_for(&b, "orders", Duration::from_secs(30))).await }
    });
    for handle in [a, b] {
        eventually("somebody waits", async || !why(handle, "1").await.contains(&nobody)).await;
    }
    a.resume_queue(&name("orders")).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().len(), 1);
}
