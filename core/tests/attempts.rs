//! Facts about attempts: what is remembered of them, how long a lease may last, and how an operator ends one.

use crate::center::{Center, SHARD, at, name, task};
use punctual_core::store::{Bodies, Key, Look};
use punctual_core::view::{self, DeliveryView};
use punctual_core::{
    Answer, Attempt, Back, Backoff, Binding, Command, Lease, Millis, QueueSettings, Reason, Refused, Reply, Retry,
    Revoke, Selected, Standing, Task, TopicSettings, Undone,
};

fn retry(attempts: u32, wait: u64) -> QueueSettings {
    let retry = Retry { attempts, backoff: Backoff::Fixed(Millis(wait)), jitter_percent: 0 };
    QueueSettings { retry, ..QueueSettings::default() }
}

fn release(lease: &Lease, back: Back, note: &str) -> Command {
    Command::Release { lease: lease.clone(), back, priority: None, note: Some(note.into()) }
}

fn revoke(holder: Option<&str>, back: Back) -> Command {
    let selected = Selected { topic: name("t"), id: name("a"), queue: None };
    Command::Revoke(Box::new(Revoke { selected, holder: holder.map(name), back, note: Some("it hangs".into()) }))
}

fn delivery(center: &Center, id: &str) -> DeliveryView {
    view::get(&*center.store, SHARD, &name("t"), &name(id), center.now()).unwrap().expect("it is there").delivery
}

fn attempt(number: u32, at_millis: u64, undone: Undone, note: Option<&str>) -> Attempt {
    Attempt { number, at: at(at_millis), holder: name("consumer"), undone, note: note.map(str::to_owned) }
}

#[test]
fn a_dead_letter_says_when_who_and_why() {
    let mut center = Center::new();
    center.put_queue("t", retry(3, 10));
    center.schedule(task("a", 0));
    let lease = center.take_one().lease;
    center.ask(release(&lease, Back::Retry, "the bank is closed")).unwrap();
    center.pass(10);
    center.take_one();
    center.pass(30_000);
    center.restart();
    center.pass(10);
    let lease = center.take_one().lease;
    center.ask(release(&lease, Back::Retry, "the bank has burnt down")).unwrap();
    let delivery = delivery(&center, "a");
    let expected = [
        attempt(1, 0, Undone::Failed, Some("the bank is closed")),
        attempt(2, 30_010, Undone::Lapsed, None),
        attempt(3, 30_020, Undone::Failed, Some("the bank has burnt down")),
    ];
    assert_eq!(delivery.log, expected);
    let death = delivery.death.unwrap();
    assert_eq!((death.reason, death.note.as_deref()), (Reason::OutOfAttempts, Some("the bank has burnt down")));
}

#[test]
fn giving_back_rejecting_and_leaving_are_told_apart() {
    let mut center = Center::new();
    center.schedule(task("a", 0));
    let lease = center.take_one().lease;
    center.ask(release(&lease, Back::After(Millis::ZERO), "not mine")).unwrap();
    let lease = center.take_one().lease;
    let gone = Command::Release { lease, back: Back::Abandoned, priority: None, note: None };
    center.ask(gone).unwrap();
    let lease = center.take_one().lease;
    center.ask(Command::Reject { lease, note: Some("no such order".into()), priority: None }).unwrap();
    let expected = [
        attempt(1, 0, Undone::Released, Some("not mine")),
        attempt(2, 0, Undone::Abandoned, None),
        attempt(3, 0, Undone::Rejected, Some("no such order")),
    ];
    assert_eq!(delivery(&center, "a").log, expected);
    center.replay("a");
    assert_eq!(delivery(&center, "a").log, expected, "a replay forgets nothing");
}

#[test]
fn a_row_remembers_only_so_many_attempts() {
    let mut center = Center::new();
    center.schedule(task("a", 0));
    for _ in 0..50 {
        let lease = center.take_one().lease;
        center.ask(release(&lease, Back::After(Millis::ZERO), &"x".repeat(1_024))).unwrap();
    }
    let numbers: Vec<u32> = delivery(&center, "a").log.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2, 45, 46, 47, 48, 49, 50]);
    let stored = center.store.get(SHARD, &[Key::new("t", "a", "")], Bodies::Without).unwrap().remove(0).unwrap();
    assert!(stored.state.len() < 2_500, "{} bytes", stored.state.len());
}

#[test]
fn what_was_done_at_once_is_stored_as_ever() {
    let mut center = Center::new();
    center.schedule(task("a", 0));
    let lease = center.take_one().lease;
    center.acknowledge(&lease).unwrap();
    let stored = center.store.get(SHARD, &[Key::new("t", "a", "")], Bodies::Without).unwrap().remove(0).unwrap();
    assert_eq!(stored.state[0], 1, "the first version of the stored form has room for it");
    assert!(delivery(&center, "a").log.is_empty());
}

#[test]
fn each_delivery_of_a_broadcast_has_attempts_of_its_own() {
    let mut center = Center::new();
    let feeds = Some(["a", "b"].map(|queue| Binding::all(name(queue))).to_vec());
    center.put_topic("t", TopicSettings { feeds, ..TopicSettings::default() });
    center.schedule(task("x", 0));
    let lease = center.take_from("a", 1).remove(0).lease;
    center.ask(release(&lease, Back::After(Millis::ZERO), "not now")).unwrap();
    let view = view::get(&*center.store, SHARD, &name("t"), &name("x"), center.now()).unwrap().unwrap();
    let logs: Vec<usize> = view.parts.iter().map(|part| part.log.len()).collect();
    assert_eq!((logs, view.delivery.log.len()), (vec![1, 0], 0));
}

#[test]
fn a_note_that_is_too_long_is_refused_and_the_lease_stays() {
    let mut center = Center::new();
    center.schedule(task("a", 0));
    let lease = center.take_one().lease;
    let too_long = |reply: Reply| matches!(reply, Err(Refused::Invalid { field: "note", .. }));
    assert!(too_long(center.ask(release(&lease, Back::Retry, &"x".repeat(1_025)))));
    let note = Some("x".repeat(1_025));
    assert!(too_long(center.ask(Command::Reject { lease: lease.clone(), note, priority: None })));
    assert_eq!(center.acknowledge(&lease), Ok(Answer::Acknowledged));
}

fn take_for(center: &mut Center, lease: u64) -> punctual_core::Delivery {
    let reserve = punctual_core::Reserve {
        queues: vec![name("t")],
        max: 1,
        lease: Some(Millis(lease)),
        until: center.now(),
        consumer: name("consumer"),
        choice: punctual_core::Choice::InTurn,
    };
    center.board.post(reserve, 1 << 40);
    center.settle();
    center.given(1 << 40).unwrap().remove(0)
}

#[test]
fn a_lease_lasts_no_longer_than_its_queue_allows() {
    let mut center = Center::new();
    center.schedule(task("a", 0));
    let long = take_for(&mut center, u64::MAX);
    assert_eq!((long.until, long.lease_time), (at(12 * 3_600_000), Millis::from_hours(12)), "half a day by itself");
    center.ask(release(&long.lease, Back::After(Millis::ZERO), "")).unwrap();
    center.put_queue("t", QueueSettings { max_lease: Millis(40_000), ..QueueSettings::default() });
    let cut = take_for(&mut center, 50_000);
    assert_eq!((cut.until, cut.lease_time), (at(40_000), Millis(40_000)));
    center.pass(10_000);
    let extended = center.ask(Command::Extend { lease: cut.lease.clone(), by: Some(Millis(u64::MAX)) });
    assert_eq!(extended, Ok(Answer::Extended(at(50_000))), "from now on, and no longer either");
    center.restart();
    let extended = center.ask(Command::Extend { lease: cut.lease, by: Some(Millis::from_hours(1)) });
    assert_eq!(extended, Ok(Answer::Extended(at(50_000))), "it is stored");
}

#[test]
fn a_task_may_lower_the_longest_lease_and_not_raise_it() {
    let mut center = Center::new();
    center.put_queue("t", QueueSettings { max_lease: Millis(40_000), ..QueueSettings::default() });
    center.schedule(Task { max_lease: Some(Millis(5_000)), ..task("low", 0) });
    center.schedule(Task { max_lease: Some(Millis(90_000)), ..task("high", 0) });
    center.schedule(Task { lease: Some(Millis(90_000)), ..task("own", 0) });
    for until in [5_000, 40_000, 40_000] {
        assert_eq!(take_for(&mut center, 60_000).until, at(until));
    }
}

#[test]
fn an_operator_ends_a_lease_and_its_consumer_has_lost_it() {
    let mut center = Center::new();
    center.put_queue("t", retry(5, 100));
    center.schedule(task("a", 0));
    let lease = take_for(&mut center, 10_000_000).lease;
    center.pass(7);
    assert_eq!(center.ask(revoke(None, Back::Retry)), Ok(Answer::Released(Standing::Scheduled { at: at(107) })));
    assert!(matches!(center.acknowledge(&lease), Err(Refused::LeaseLost { now: Some(Standing::Scheduled { .. }) })));
    let delivery = delivery(&center, "a");
    assert_eq!(delivery.failures, 1, "as if its time had been over");
    assert_eq!(delivery.log, [attempt(1, 7, Undone::Revoked, Some("it hangs"))]);
    center.pass(100);
    let lease = center.take_one().lease;
    let ready = Ok(Answer::Released(Standing::Ready { since: at(0) }));
    assert_eq!(center.ask(revoke(None, Back::After(Millis::ZERO))), ready, "or at once, without a failure");
    assert!(center.acknowledge(&lease).is_err());
}

#[test]
fn an_operator_may_mean_one_consumer_only() {
    let mut center = Center::new();
    center.schedule(task("a", 0));
    let lease = center.take_one();
    let now = Some(Standing::Leased { queue: name("t"), holder: name("consumer"), until: lease.until });
    assert_eq!(center.ask(revoke(Some("other"), Back::Retry)), Err(Refused::LeaseLost { now }));
    assert!(center.ask(revoke(Some("consumer"), Back::Retry)).is_ok());
    let waits = center.ask(revoke(None, Back::Retry));
    assert!(matches!(waits, Err(Refused::LeaseLost { now: Some(Standing::Scheduled { .. }) })), "nobody has it");
    let selected = Selected { topic: name("t"), id: name("none"), queue: None };
    let none = Revoke { selected, holder: None, back: Back::Retry, note: None };
    assert_eq!(center.ask(Command::Revoke(Box::new(none))), Err(Refused::LeaseLost { now: None }));
}
