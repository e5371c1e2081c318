//! A store without room for more: what is refused, and what goes on.

use crate::stage::{Stage, eventually, finish, is_created, name, next, task};
use punctual_core::store::Hardship;
use punctual_core::{
    Back, Binding, Choice, Form, Millis, QueueSettings, Reschedule, Reserve, Ruling, Selected, Shift, TimeRange,
    TopicSettings,
};
use punctual_node::{Error, Handle};

const WHY: &str = "the disk is full: free space; acknowledging and cancelling still work";

fn full<T>() -> Result<T, Error> {
    Err(Error::Full(WHY.into()))
}

fn selected(topic: &str, id: &str) -> Selected {
    Selected { topic: name(topic), id: name(id), queue: None }
}

/// A task that was given up by a consumer.
async fn bury(handle: &Handle, topic: &str, id: &str) {
    handle.schedule(task(topic, id)).await.unwrap();
    let delivery = next(handle, topic).await;
    handle.reject(delivery.lease, None).await.unwrap();
}

#[tokio::test]
async fn without_room_new_tasks_are_refused_until_there_is_some() {
    let Stage { handle, store, node: _node, .. } = Stage::new(2);
    store.faults().fill(WHY);
    let refused = handle.schedule(task("orders", "1")).await;
    assert_eq!(refused, full());
    assert_eq!(refused.unwrap_err().to_string(), format!("no room: {WHY}; nothing was done"));
    let many = (0..10).map(|n| task("orders", &n.to_string())).collect();
    assert!(handle.schedule_many(many).await.into_iter().all(|answer| answer == full()));
    assert_eq!(handle.get(&name("orders"), &name("1")).await, Ok(None));

    store.faults().heal();
    assert!(is_created(&handle.schedule(task("orders", "1")).await.unwrap()));
    assert_eq!(next(&handle, "orders").await.id, name("1"));
}

#[tokio::test]
async fn without_room_nothing_is_replayed() {
    let Stage { handle, store, node: _node, .. } = Stage::new(2);
    bury(&handle, "orders", "dead").await;
    store.faults().fill(WHY);
    assert_eq!(handle.replay(selected("orders", "dead")).await, full());
    assert_eq!(handle.replay_dead(None, None, TimeRange::ALL, false).await, full());
    assert_eq!(handle.replay_history(&name("orders"), TimeRange::ALL, None, false).await, full());
    assert_eq!(
        handle.replay_dead(None, None, TimeRange::ALL, true).await.unwrap().matched,
        1,
        "counting needs no room"
    );

    store.faults().heal();
    handle.replay(selected("orders", "dead")).await.unwrap();
    assert_eq!(next(&handle, "orders").await.id, name("dead"));
}

#[tokio::test]
async fn without_room_topics_and_queues_are_changed_and_deleted_but_not_made() {
    let Stage { handle, store, node: _node, .. } = Stage::new(2);
    let topic = TopicSettings { history: Millis::from_hours(9), ..TopicSettings::default() };
    handle.put_topic(&name("old"), TopicSettings::default()).await.unwrap();
    handle.put_queue(&name("old"), QueueSettings::default()).await.unwrap();
    store.faults().fill(WHY);
    assert_eq!(handle.put_topic(&name("new"), topic.clone()).await, full());
    assert_eq!(handle.put_queue(&name("new"), QueueSettings::default()).await, full());
    // To keep finished tasks for less time is one way to make room.
    assert_eq!(handle.put_topic(&name("old"), topic.clone()).await, Ok(topic));
    handle.put_queue(&name("old"), QueueSettings::default()).await.unwrap();
    handle.pause_queue(&name("old"), None, None).await.unwrap();
    handle.resume_queue(&name("old")).await.unwrap();
    handle.delete_queue(&name("old"), false).await.unwrap();
    handle.delete_topic(&name("old"), false).await.unwrap();
    assert_eq!(handle.total().await.unwrap().topics, 0);

    store.faults().heal();
    handle.put_topic(&name("new"), TopicSettings::default()).await.unwrap();
}

#[tokio::test]
async fn without_room_what_was_taken_in_goes_its_way() {
    let Stage { handle, store, node: _node, .. } = Stage::new(2);
    let feeds = Some(vec![Binding::all(name("a")), Binding::all(name("b"))]);
    handle.put_topic(&name("spread"), TopicSettings { feeds, ..TopicSettings::default() }).await.unwrap();
    let to_graveyard = QueueSettings { dead_letter: Some(name("graveyard")), ..QueueSettings::default() };
    handle.put_queue(&name("doomed"), to_graveyard).await.unwrap();
    bury(&handle, "orders", "dead").await;
    handle.schedule(task("orders", "held")).await.unwrap();
    let held = next(&handle, "orders").await;
    handle.schedule(task("doomed", "1")).await.unwrap();
    let doomed = next(&handle, "doomed").await;
    handle.schedule(task("orders", "unwanted").after(Millis::from_hours(1))).await.unwrap();
    handle.schedule(task("orders", "later").after(Millis::from_hours(1))).await.unwrap();
    handle.schedule(task("spread", "1").after(Millis(100))).await.unwrap();
    store.faults().fill(WHY);

    // Firing, also to several queues, and all that consumers do.
    for queue in ["a", "b"] {
        let delivery = next(&handle, queue).await;
        finish(&handle, delivery.lease).await;
    }
    handle.extend(held.lease.clone(), None).await.unwrap();
    handle.release(held.lease, Back::After(Millis::ZERO), None, None).await.unwrap();
    let held = next(&handle, "orders").await;
    finish(&handle, held.lease).await;
    // A dead letter that is to go on to another topic waits until that takes tasks again.
    handle.reject(doomed.lease, None).await.unwrap();
    // What callers change about what is there.
    assert_eq!(handle.cancel(&name("orders"), &name("unwanted")).await, Ok(Ruling::Done(())));
    let change = Reschedule {
        topic: name("orders"),
        id: name("later"),
        shift: Some(Shift::In(Millis::ZERO)),
        priority: None,
        body: None,
    };
    assert!(matches!(handle.reschedule(change).await, Ok(Ruling::Done(_))));
    let later = next(&handle, "orders").await;
    assert_eq!(later.id, name("later"));
    finish(&handle, later.lease).await;
    handle.purge(selected("orders", "dead")).await.unwrap();
    assert!(handle.get(&name("doomed"), &name("1")).await.unwrap().is_some(), "it has not gone on");
    assert_eq!(handle.schedule(task("orders", "new")).await, full());
}

#[tokio::test]
async fn without_room_a_task_gets_no_other_body() {
    let Stage { handle, store, node: _node, .. } = Stage::new(1);
    handle.schedule(task("orders", "1").after(Millis::from_hours(1))).await.unwrap();
    let change = |body: Option<&'static str>| Reschedule {
        topic: name("orders"),
        id: name("1"),
        shift: Some(Shift::In(Millis::from_hours(2))),
        priority: None,
        body: body.map(|body| (Form::Text, body.into())),
    };
    store.faults().fill(WHY);
    assert_eq!(handle.reschedule(change(Some("much longer"))).await, full());
    assert!(matches!(handle.reschedule(change(None)).await, Ok(Ruling::Done(_))));
    store.faults().cram(WHY);
    assert_eq!(handle.reschedule(change(None)).await, full());
    assert_eq!(
        handle.shift_key(&name("k"), None, Shift::In(Millis::ZERO), false).await.unwrap_err(),
        full::<()>().unwrap_err()
    );
    store.faults().heal();
    assert!(matches!(handle.reschedule(change(Some("longer"))).await, Ok(Ruling::Done(_))));
}

#[tokio::test]
async fn without_room_to_grow_only_a_few_are_handed_out_at_a_time_and_the_others_hear_why() {
    let Stage { handle, store, node: _node, .. } = Stage::new(1);
    for number in 0..20 {
        handle.schedule(task("orders", &number.to_string())).await.unwrap();
    }
    let mut held = Vec::new();
    for _ in 0..10 {
        held.push(next(&handle, "orders").await.lease);
    }
    store.faults().cram(WHY);
    let reserve = || Reserve {
        queues: vec![name("orders")],
        max: 100,
        lease: None,
        until: handle.now(),
        consumer: name("c"),
        choice: Choice::InTurn,
    };
    assert_eq!(handle.reserve(reserve()).await, full());
    // What is out can be settled in any way; what is said about it is not kept.
    let standing = handle.release(held.pop().unwrap(), Back::After(Millis::from_hours(1)), None, Some("why".into()));
    standing.await.unwrap();
    handle.reject(held.pop().unwrap(), Some("why".into())).await.unwrap();
    while let Some(lease) = held.pop() {
        finish(&handle, lease).await;
    }
    // So everything can be worked off, if slowly.
    let mut done = 0;
    while done < 10 {
        let few = handle.reserve(reserve()).await.unwrap();
        assert!((1..=4).contains(&few.len()), "{}", few.len());
        assert!(few.len() < 4 || handle.reserve(reserve()).await == full());
        done += few.len();
        for delivery in few {
            finish(&handle, delivery.lease).await;
        }
    }
    assert_eq!(handle.reserve(reserve()).await, full(), "that there is nothing is not known");
    store.faults().heal();
    assert_eq!(handle.reserve(reserve()).await, Ok(Vec::new()));
}

#[tokio::test]
async fn what_is_to_be_written_when_it_comes_due_waits_for_room_to_grow() {
    let Stage { handle, store, node: _node, .. } = Stage::new(1);
    let feeds = Some(vec![Binding::all(name("a")), Binding::all(name("b"))]);
    handle.put_topic(&name("spread"), TopicSettings { feeds, ..TopicSettings::default() }).await.unwrap();
    handle.schedule(task("spread", "1").after(Millis(50))).await.unwrap();
    handle.schedule(task("spread", "2").after(Millis(50))).await.unwrap();
    store.faults().cram(WHY);
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(handle.total().await.unwrap().waiting, 2, "they have not gone to their queues");
    assert_eq!(handle.cancel(&name("spread"), &name("2")).await, Ok(Ruling::Done(())));
    store.faults().heal();
    for queue in ["a", "b"] {
        let delivery = next(&handle, queue).await;
        assert_eq!(delivery.id, name("1"));
        finish(&handle, delivery.lease).await;
    }
}

#[tokio::test]
async fn as_long_as_there_is_no_room_the_history_gives_way() {
    let Stage { handle, store, node: _node, .. } = Stage::new(2);
    let finished = async |id: &str| {
        let delivery = next(&handle, "orders").await;
        assert_eq!(delivery.id, name(id));
        finish(&handle, delivery.lease).await;
    };
    handle.schedule(task("orders", "before")).await.unwrap();
    finished("before").await;
    handle.schedule(task("orders", "meanwhile")).await.unwrap();
    assert!(handle.get(&name("orders"), &name("before")).await.unwrap().is_some(), "it is kept for a day");

    store.faults().fill(WHY);
    finished("meanwhile").await;
    assert_eq!(handle.get(&name("orders"), &name("meanwhile")).await, Ok(None), "it is not kept");
    eventually("the oldest go before their time", async || {
        // Whoever is refused lets a shard at rest know.
        assert_eq!(handle.schedule(task("orders", "more")).await, full());
        handle.get(&name("orders"), &name("before")).await.unwrap().is_none()
    })
    .await;

    store.faults().heal();
    handle.schedule(task("orders", "after")).await.unwrap();
    finished("after").await;
    assert!(handle.get(&name("orders"), &name("after")).await.unwrap().is_some());
}

#[tokio::test]
async fn a_store_that_fails_for_another_reason_than_room_is_not_told_as_full() {
    let Stage { handle, store, node: _node, .. } = Stage::new(1);
    store.faults().endure(Hardship::Failing("no permission".to_owned()));
    let refused = handle.schedule(task("orders", "1")).await.unwrap_err();
    assert!(matches!(&refused, Error::Unavailable { why, .. } if why.contains("no permission")), "{refused}");
    assert_eq!(refused.code(), "unavailable");
    assert_eq!(handle.hardship(), Some(Hardship::Failing("no permission".to_owned())));
    store.faults().heal();
    assert!(is_created(&handle.schedule(task("orders", "1")).await.unwrap()));
}
