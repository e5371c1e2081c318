//! Facts about leases: holding, losing, giving back, trying again, giving up.

use crate::center::{Center, at, name, task};
use punctual_core::{
    Answer, Back, Backoff, Command, Ending, Millis, Past, QueueSettings, Reason, Refused, Retry, ShardConfig, Standing,
    Task,
};

fn retry(attempts: u32, wait: u64) -> QueueSettings {
    let retry = Retry { attempts, backoff: Backoff::Fixed(Millis(wait)), jitter_percent: 0 };
    QueueSettings { retry, ..QueueSettings::default() }
}

fn release(lease: &punctual_core::Lease, back: Back) -> Command {
    Command::Release { lease: lease.clone(), back, priority: None, note: None }
}

#[test]
fn expired_lease_returns_the_delivery() {
    let mut center = Center::new();
    center.put_queue("t", retry(5, 200));
    center.schedule(task("a", 0));
    let first = center.take_one();
    center.pass(29_999);
    assert!(center.take_ids().is_empty(), "there is one holder");
    center.pass(1);
    assert_eq!(center.standing("a"), Some(Standing::Scheduled { at: at(30_200) }));
    center.pass(200);
    let second = center.take_one();
    assert_eq!(second.attempt, 2);
    assert_ne!(first.lease, second.lease);
}

#[test]
fn acknowledging_with_an_old_lease_is_refused_and_told_who_has_it() {
    let mut center = Center::new();
    center.put_queue("t", retry(5, 0));
    center.schedule(task("a", 0));
    let old = center.take_one().lease;
    center.pass(30_000);
    let consumer = center.wait_for(&["t"], 1, 0, "other");
    let new = center.given(consumer).unwrap().remove(0);
    let now = Some(Standing::Leased { queue: name("t"), holder: name("other"), until: new.until });
    assert_eq!(center.acknowledge(&old), Err(Refused::LeaseLost { now }));
    assert_eq!(center.acknowledge(&new.lease), Ok(Answer::Acknowledged));
    let now = Some(Standing::Finished { ending: Ending::Done, at: center.now() });
    assert_eq!(center.acknowledge(&new.lease), Err(Refused::LeaseLost { now }));
}

#[test]
fn a_lease_is_over_in_the_millisecond_in_which_it_ends() {
    let mut center = Center::new();
    center.schedule(task("a", 0));
    let lease = center.take_one().lease;
    center.pass(29_999);
    let extended = center.ask(Command::Extend { lease: lease.clone(), by: Some(Millis(10)) });
    assert_eq!(extended, Ok(Answer::Extended(at(30_009))));
    center.pass(10);
    assert!(matches!(center.acknowledge(&lease), Err(Refused::LeaseLost { .. })));
}

#[test]
fn extending_keeps_the_delivery() {
    let mut center = Center::new();
    center.schedule(task("a", 0));
    let lease = center.take_one().lease;
    for _ in 0..10 {
        center.pass(20_000);
        center.ask(Command::Extend { lease: lease.clone(), by: None }).unwrap();
    }
    assert_eq!(center.acknowledge(&lease), Ok(Answer::Acknowledged));
}

#[test]
fn releasing_at_once_puts_the_delivery_back_where_it_stood() {
    let mut center = Center::new();
    center.schedule(task("a", 0));
    center.pass(5);
    center.schedule(task("b", 0));
    let first = center.take_one();
    let answer = center.ask(release(&first.lease, Back::After(Millis::ZERO)));
    assert_eq!(answer, Ok(Answer::Released(Standing::Ready { since: at(0) })));
    assert_eq!(center.take_ids(), ["a", "b"]);
}

#[test]
fn releasing_after_a_time_is_not_a_failure() {
    let mut center = Center::new();
    center.put_queue("t", retry(1, 0));
    center.schedule(task("a", 0));
    for attempt in 1..=3 {
        let delivery = center.take_one();
        assert_eq!(delivery.attempt, attempt);
        center.ask(release(&delivery.lease, Back::After(Millis(10)))).unwrap();
        assert!(center.take_ids().is_empty());
        center.pass(10);
    }
}

#[test]
fn releasing_with_another_priority_changes_the_order() {
    let mut center = Center::new();
    center.schedule(task("a", 0));
    center.schedule(task("b", 0));
    let lease = center.take_one().lease;
    center
        .ask(Command::Release { lease, back: Back::After(Millis::ZERO), priority: Some(u32::MAX), note: None })
        .unwrap();
    assert_eq!(center.take_ids(), ["b", "a"]);
}

#[test]
fn out_of_attempts_it_is_a_dead_letter_with_reason_attempts_and_time() {
    let mut center = Center::new();
    center.put_queue("t", retry(2, 10));
    center.schedule(task("a", 0));
    let lease = center.take_one().lease;
    center.ask(release(&lease, Back::Retry)).unwrap();
    center.pass(10);
    center.take_one();
    center.pass(30_000);
    assert_eq!(center.standing("a"), Some(Standing::Dead { reason: Reason::OutOfAttempts, at: at(30_010) }));
    let view = punctual_core::view::get(&*center.store, crate::center::SHARD, &name("t"), &name("a"), center.now());
    let delivery = view.unwrap().unwrap().delivery;
    assert_eq!((delivery.attempts, delivery.failures, delivery.queue), (2, 2, Some(name("t"))));
    assert_eq!(center.queue_counts("t"), (0, 0, 1));
}

#[test]
fn a_tasks_own_retry_policy_comes_before_the_queues() {
    let mut center = Center::new();
    center.put_queue("t", retry(9, 0));
    let own = Retry { attempts: 1, backoff: Backoff::Fixed(Millis(0)), jitter_percent: 0 };
    center.schedule(Task { retry: Some(own), ..task("a", 0) });
    let lease = center.take_one().lease;
    center.ask(release(&lease, Back::Retry)).unwrap();
    assert!(matches!(center.standing("a"), Some(Standing::Dead { reason: Reason::OutOfAttempts, .. })));
}

#[test]
fn a_rejected_delivery_is_a_dead_letter_at_once() {
    let mut center = Center::new();
    center.schedule(task("a", 0));
    let lease = center.take_one().lease;
    center.ask(Command::Reject { lease, note: Some("no such order".into()), priority: None }).unwrap();
    assert_eq!(center.standing("a"), Some(Standing::Dead { reason: Reason::Rejected, at: at(0) }));
}

#[test]
fn what_nobody_took_in_its_time_to_live_is_a_dead_letter() {
    let mut center = Center::new();
    center.schedule(Task { ttl: Some(Millis(50)), ..task("a", 10) });
    center.pass(60);
    assert_eq!(center.standing("a"), Some(Standing::Ready { since: at(10) }));
    center.pass(1);
    assert_eq!(center.standing("a"), Some(Standing::Dead { reason: Reason::Expired, at: at(61) }));
    assert!(center.take_ids().is_empty());
}

#[test]
fn a_lease_outlives_the_time_to_live_but_a_retry_does_not() {
    let mut center = Center::new();
    center.put_queue("t", retry(5, 0));
    center.schedule(Task { ttl: Some(Millis(50)), ..task("a", 0) });
    center.schedule(Task { ttl: Some(Millis(50)), ..task("b", 0) });
    let deliveries = center.take(2);
    center.pass(1_000);
    assert_eq!(center.acknowledge(&deliveries[0].lease), Ok(Answer::Acknowledged));
    center.ask(release(&deliveries[1].lease, Back::Retry)).unwrap();
    assert!(matches!(center.standing("b"), Some(Standing::Dead { reason: Reason::Expired, .. })));
}

#[test]
fn a_tasks_own_lease_time_comes_before_the_queues_and_after_the_consumers() {
    let mut center = Center::new();
    let own = |id: &str| Task { lease: Some(Millis(500)), ..task(id, 0) };
    center.schedule(own("a"));
    center.schedule(own("b"));
    center.schedule(task("c", 0));
    let [a, b, c] = <[_; 3]>::try_from(center.take(3)).unwrap();
    assert_eq!([a.until, b.until, c.until], [at(500), at(500), at(30_000)]);
    center.pass(499);
    let extended = center.ask(Command::Extend { lease: a.lease.clone(), by: None });
    assert_eq!(extended, Ok(Answer::Extended(at(999))), "more time means as much again");
    let extended = center.ask(Command::Extend { lease: b.lease, by: Some(Millis(7)) });
    assert_eq!(extended, Ok(Answer::Extended(at(506))), "who says a time gets it");
    center.restart();
    center.pass(499);
    assert_eq!(center.acknowledge(&a.lease), Ok(Answer::Acknowledged), "it is in the row");
}

#[test]
fn every_delivery_of_a_broadcast_has_its_tasks_lease_time() {
    let mut center = Center::new();
    let feeds = ["a", "b"].map(|queue| punctual_core::Binding::all(name(queue)));
    center.put_topic("t", punctual_core::TopicSettings { feeds: Some(feeds.to_vec()), ..Default::default() });
    center.schedule(Task { lease: Some(Millis(500)), ..task("x", 0) });
    for queue in ["a", "b"] {
        assert_eq!(center.take_from(queue, 1)[0].until, at(500));
    }
}

#[test]
fn what_consumers_did_to_a_delivery_is_its_past() {
    let mut center = Center::new();
    center.put_queue("t", retry(1, 0));
    center.schedule(task("a", 40));
    assert_eq!((center.past("a"), center.delay("a")), (Past::default(), Millis(40)));
    center.pass(40);
    let lease = center.take_one().lease;
    center.ask(release(&lease, Back::After(Millis(7)))).unwrap();
    assert_eq!((center.past("a").releases, center.delay("a")), (1, Millis(7)));
    center.pass(7);
    let lease = center.take_one().lease;
    center.ask(Command::Reject { lease, note: None, priority: None }).unwrap();
    assert_eq!(center.past("a"), Past { releases: 1, rejections: 1, delay: Some(Millis(7)), ..Past::default() });

    center.replay("a");
    let replayed = Past { attempts: 2, failures: 0, releases: 1, rejections: 1, replays: 1, delay: Some(Millis(7)) };
    assert_eq!(center.past("a"), replayed, "its attempts count from zero again and are not forgotten");
    let lease = center.take_one().lease;
    center.ask(release(&lease, Back::Retry)).unwrap();
    assert!(matches!(center.standing("a"), Some(Standing::Dead { reason: Reason::OutOfAttempts, .. })));
    center.restart();
    center.replay("a");
    let replayed = Past { attempts: 3, failures: 1, releases: 2, rejections: 1, replays: 2, delay: Some(Millis(7)) };
    assert_eq!(center.past("a"), replayed, "it is stored");
}

#[test]
fn a_delay_is_still_known_when_the_due_time_is_another() {
    let mut center = Center::new();
    center.schedule(task("a", 40));
    center.pass(40);
    let lease = center.take_one().lease;
    center.acknowledge(&lease).unwrap();
    center.pass(1_000);
    center.replay("a");
    assert_eq!(center.delay("a"), Millis(40));
}

#[test]
fn what_was_abandoned_is_back_where_it_stood_and_nobody_counted_it() {
    let mut center = Center::new();
    center.put_queue("t", retry(1, 200));
    center.schedule(task("a", 0));
    center.pass(5);
    center.schedule(task("b", 0));
    let held = center.take_one();
    assert_eq!(
        center.ask(release(&held.lease, Back::Abandoned)),
        Ok(Answer::Released(Standing::Ready { since: at(0) }))
    );
    assert_eq!((center.past("a"), center.delay("a")), (Past::default(), Millis::ZERO));
    assert_eq!(center.take_ids(), ["a", "b"]);
    assert!(matches!(center.ask(release(&held.lease, Back::Abandoned)), Err(Refused::LeaseLost { .. })));
}

#[test]
fn a_rejected_delivery_is_replayed_with_the_priority_it_was_rejected_with() {
    let mut center = Center::new();
    center.schedule(task("a", 0));
    let lease = center.take_one().lease;
    center.ask(Command::Reject { lease, note: None, priority: Some(7) }).unwrap();
    center.replay("a");
    assert_eq!(center.take_one().priority, 7);
}

#[test]
fn who_comes_before_a_shard_has_looked_is_not_sent_home_while_something_is_ready() {
    let mut center = Center::with(ShardConfig { slice: 2, fires: 2, ..ShardConfig::default() });
    for number in 0..7 {
        center.schedule(Task { topic: name("other"), ..task(&number.to_string(), 0) });
    }
    center.schedule(task("last", 0));
    center.tick(1);
    center.open_again();
    let reply = center.wait_for(&["t"], 1, 0, "consumer");
    let given = center.given(reply).expect("who does not wait is answered");
    assert_eq!(given.len(), 1);
    assert!(center.take(1).is_empty(), "afterwards nobody is kept");
}

#[test]
fn who_waits_for_nothing_is_kept_while_a_shard_reads_what_is_overdue_and_not_for_ever() {
    let mut center = Center::with(ShardConfig { slice: 1, ..ShardConfig::default() });
    for number in 0..4 {
        center.schedule(Task { topic: name("other"), ..task(&number.to_string(), 0) });
    }
    center.tick(1);
    center.open_again();
    let reply = center.post_only(&["t"], 1, 0);
    center.step_once();
    assert!(center.given(reply).is_none(), "there may be something among what was not read");
    center.tick(5_000);
    center.step_once();
    assert_eq!(center.given(reply), Some(vec![]));
}
