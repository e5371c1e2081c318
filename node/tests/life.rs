//! The life of tasks on a node, from scheduling to history.

use std::time::Duration;

use crate::stage::{Stage, eventually, finish, is_created, is_dry, name, next, task, wait_for};
use punctual_core::{
    Answer, Back, Command, Ending, Millis, Refused, Reschedule, Ruling, ScheduleOutcome, Selected, Shift, Standing,
    Task, TimeRange,
};
use punctual_node::Error;

#[tokio::test]
async fn a_task_lives_from_schedule_to_history() {
    let Stage { handle, node, .. } = Stage::new(1);
    let scheduled = handle.schedule(task("orders", "7").after(Millis(30)).key(name("ann"))).await.unwrap();
    let ScheduleOutcome::Created { due } = scheduled.outcome else { panic!("{scheduled:?}") };
    let seen = handle.get(&name("orders"), &name("7")).await.unwrap().unwrap();
    assert_eq!((seen.body.as_ref(), seen.due), (&b"7"[..], due));

    let delivery = next(&handle, "orders").await;
    assert_eq!((delivery.id.as_str(), delivery.attempt, delivery.due), ("7", 1, due));
    let ruling = handle.cancel(&name("orders"), &name("7")).await.unwrap();
    assert!(matches!(ruling, Ruling::TooLate(Standing::Leased { holder, .. }) if holder.as_str() == "consumer"));
    let until = handle.extend(delivery.lease.clone(), Some(Millis::from_hours(2))).await.unwrap();
    assert!(until > delivery.until);
    finish(&handle, delivery.lease.clone()).await;
    let late = handle.acknowledge(delivery.lease).await;
    assert!(matches!(late, Err(Error::Refused(Refused::LeaseLost { .. }))), "{late:?}");

    let seen = handle.get(&name("orders"), &name("7")).await.unwrap().unwrap();
    assert!(matches!(seen.delivery.standing, Standing::Finished { ending: Ending::Done, .. }));
    assert_eq!(handle.get(&name("orders"), &name("8")).await.unwrap(), None);
    let counts = handle.counts().await.unwrap();
    assert_eq!((counts.topics[0].waiting, counts.topics[0].history), (0, 1));
    node.stop();
}

#[tokio::test]
async fn the_same_id_twice_is_one_task_and_ids_are_made_up_in_order() {
    let Stage { handle, node: _node, .. } = Stage::new(4);
    let later = task("orders", "7").after(Millis::from_hours(1));
    assert!(is_created(&handle.schedule(later.clone()).await.unwrap()));
    let again = handle.schedule(later).await.unwrap();
    assert!(matches!(again.outcome, ScheduleOutcome::Existed(Standing::Scheduled { .. })));

    let tasks = (0..100).map(|_| Task::new(name("orders"), "x").after(Millis::from_hours(1))).collect();
    let made: Vec<_> = handle.schedule_many(tasks).await.into_iter().map(|made| made.unwrap().id).collect();
    assert!(made.is_sorted_by(|earlier, later| earlier < later), "{made:?}");
}

#[tokio::test]
async fn nothing_is_delivered_before_it_is_due() {
    let Stage { handle, node: _node, .. } = Stage::new(2);
    let tasks = (0..200).map(|n| task("orders", &n.to_string()).after(Millis(n * 7 % 150))).collect();
    assert!(handle.schedule_many(tasks).await.iter().all(Result::is_ok));
    for _ in 0..200 {
        let delivery = next(&handle, "orders").await;
        assert!(handle.now() >= delivery.due && delivery.fired_at >= delivery.due);
    }
    eventually("all are measured", async || handle.stats().lateness_buckets.count == 200).await;
}

#[tokio::test]
async fn a_waiting_consumer_gets_it_straight_into_its_hands() {
    let Stage { handle, node: _node, .. } = Stage::new(1);
    let waiting = tokio::spawn({
        let handle = handle.clone();
        async move { next(&handle, "orders").await }
    });
    eventually("the consumer waits", async || handle.stats().waiting_consumers == 1).await;
    handle.schedule(task("orders", "7").after(Millis(50))).await.unwrap();
    let delivery = waiting.await.unwrap();
    assert_eq!((delivery.attempt, delivery.fired_at), (1, delivery.due));
}

#[tokio::test]
async fn tasks_are_cancelled_and_moved_one_by_one_and_by_key() {
    let Stage { handle, node: _node, .. } = Stage::new(4);
    let (topic, key) = (name("orders"), name("ann"));
    let tasks = (0..40).map(|n| task("orders", &n.to_string()).after(Millis::from_hours(1)).key(key.clone()));
    assert!(handle.schedule_many(tasks.collect()).await.iter().all(Result::is_ok));
    assert_eq!(handle.cancel(&topic, &name("0")).await.unwrap(), Ruling::Done(()));
    assert_eq!(handle.cancel(&topic, &name("nobody")).await.unwrap(), Ruling::Unknown);

    let due = handle.now().plus(Millis::from_hours(3));
    let shift = Some(Shift::To(due));
    let change = Reschedule { topic: topic.clone(), id: name("1"), shift, priority: None, body: None };
    assert_eq!(handle.reschedule(change).await.unwrap(), Ruling::Done(due));

    let shifted = handle.shift_key(&key, None, Shift::By(1_000), true).await.unwrap();
    assert_eq!((shifted.matched, shifted.changed), (39, 39));
    let cancelled = handle.cancel_key(&key, Some(&topic), false).await.unwrap();
    assert_eq!((cancelled.matched, cancelled.changed), (39, 39));
    assert_eq!(handle.cancel_key(&key, None, false).await.unwrap().matched, 0);
    assert_eq!(handle.counts().await.unwrap().topics[0].history, 40);

    let replayed = handle.replay_history(&topic, TimeRange::ALL, None, false).await.unwrap();
    assert_eq!(replayed.changed, 40);
    assert_eq!(handle.counts().await.unwrap().topics[0].waiting, 40);
}

#[tokio::test]
async fn released_and_rejected_deliveries_come_back_or_die() {
    let Stage { handle, node: _node, .. } = Stage::new(2);
    handle.schedule(task("orders", "7")).await.unwrap();
    let delivery = next(&handle, "orders").await;
    handle.release(delivery.lease, Back::After(Millis(20)), None, None).await.unwrap();
    let delivery = next(&handle, "orders").await;
    assert_eq!(delivery.attempt, 2);
    handle.reject(delivery.lease, Some("no such order".into())).await.unwrap();
    assert!(is_dry(&handle, "orders").await);

    let selected = Selected { topic: name("orders"), id: name("7"), queue: None };
    handle.replay(selected.clone()).await.unwrap();
    let delivery = next(&handle, "orders").await;
    assert_eq!(delivery.attempt, 1);
    handle.reject(delivery.lease, None).await.unwrap();
    let dead = handle.replay_dead(None, Some(&name("orders")), TimeRange::ALL, true).await.unwrap();
    assert_eq!(dead.matched, 1);
    handle.purge(selected.clone()).await.unwrap();
    assert_eq!(handle.purge(selected).await, Err(Error::Refused(Refused::NothingThere)));
    assert_eq!(handle.purge_dead(None, None, TimeRange::ALL, false).await.unwrap().matched, 0);
}

#[tokio::test]
async fn a_consumer_that_wants_several_gets_what_is_there() {
    let Stage { handle, node: _node, .. } = Stage::new(1);
    let tasks = (0..5).map(|n| task("orders", &n.to_string())).collect();
    assert!(handle.schedule_many(tasks).await.iter().all(Result::is_ok));
    let mut reserve = wait_for(&handle, "orders", Duration::from_secs(10));
    reserve.max = 3;
    let first = handle.reserve(reserve.clone()).await.unwrap();
    let second = handle.reserve(reserve).await.unwrap();
    let ids: Vec<&str> = first.iter().chain(&second).map(|delivery| delivery.id.as_str()).collect();
    assert_eq!((first.len(), ids), (3, vec!["0", "1", "2", "3", "4"]));
    let leases = first.into_iter().chain(second).map(|delivery| delivery.lease).collect();
    assert!(handle.acknowledge_many(leases).await.iter().all(Result::is_ok));
}

#[tokio::test]
async fn many_leases_are_settled_at_once_each_by_itself() {
    let Stage { handle, node: _node, .. } = Stage::new(3);
    let mut leases = Vec::new();
    for id in ["0", "1", "2", "3"] {
        handle.schedule(task("orders", id)).await.unwrap();
        leases.push(next(&handle, "orders").await.lease);
    }
    let [done, back, no, more] = leases.try_into().unwrap();
    let (priority, note) = (Some(7), Some("no such order".to_owned()));
    let settles = vec![
        Command::Acknowledge(done.clone()),
        Command::Release { lease: back, back: Back::After(Millis::from_hours(1)), priority, note: None },
        Command::Acknowledge(done),
        Command::Reject { lease: no, note, priority: None },
        Command::Extend { lease: more, by: Some(Millis::from_hours(2)) },
    ];
    let settled = handle.carry_out(settles).await;
    let expected = matches!(
        &settled[..],
        [
            Ok(Answer::Acknowledged),
            Ok(Answer::Released(Standing::Scheduled { .. })),
            Err(Error::Refused(Refused::LeaseLost { .. })),
            Ok(Answer::Rejected),
            Ok(Answer::Extended(until)),
        ] if *until > handle.now().plus(Millis::from_hours(1))
    );
    assert!(expected, "{settled:?}");
}

#[tokio::test]
async fn headers_that_punctual_sets_are_not_for_callers() {
    let Stage { handle, node: _node, .. } = Stage::new(1);
    let mut forged = task("orders", "7");
    forged.headers = vec![("punctual-dead-hops".into(), "99".into())];
    let refused = handle.schedule(forged).await.unwrap_err();
    assert!(matches!(&refused, Error::Refused(Refused::Invalid { field: "headers", .. })), "{refused:?}");
}
