//! Facts about events: what is told of the life of a task, in which order, and of what nothing is told.

use crate::center::{Center, at, name, task};
use crate::sweeping::{begin, sweep};
use punctual_core::{
    Among, Back, Backoff, Binding, Command, Forward, Lease, Matching, Millis, Overflow, Pattern, QueueSettings, Reason,
    Reschedule, Retry, Scope, Select, Selected, Shift, Sweep, SweepAction, Task, TimeRange, TopicSettings, What,
};

/// What was told since it was last asked for.
fn told(center: &mut Center) -> Vec<What> {
    std::mem::take(&mut center.events).into_iter().map(|event| event.what).collect()
}

/// The same by its words, each with the queue.
fn words(center: &mut Center) -> Vec<String> {
    let events = std::mem::take(&mut center.events).into_iter();
    events.map(|event| format!("{} {}", event.what.as_str(), event.queue.as_deref().unwrap_or("-"))).collect()
}

fn retrying(attempts: u32, wait: u64) -> QueueSettings {
    let backoff = Backoff::Fixed(Millis(wait));
    QueueSettings { retry: Retry { attempts, backoff, jitter_percent: 0 }, ..QueueSettings::default() }
}

fn selected(id: &str) -> Selected {
    Selected { topic: name("t"), id: name(id), queue: None }
}

fn reject(center: &mut Center, lease: Lease) {
    center.ask(Command::Reject { lease, note: None, priority: None }).unwrap();
}

fn leased(attempt: u32, until: u64) -> What {
    What::Leased { holder: name("consumer"), attempt, until: at(until) }
}

#[test]
fn events_tell_the_life_of_a_task() {
    let mut center = Center::new();
    center.put_queue("t", retrying(2, 10));
    center.schedule(task("a", 100).key(name("ann")));
    assert_eq!(told(&mut center), [What::Scheduled { due: at(100) }]);
    center.pass(100);
    let event = center.events.pop().unwrap();
    assert_eq!((event.what, event.at, event.queue), (What::Fired, at(100), Some(name("t"))));
    assert_eq!((event.task.topic(), event.task.id(), event.key), ("t", "a", Some(name("ann"))));

    let lease = center.take_one().lease;
    center.ask(Command::Extend { lease: lease.clone(), by: Some(Millis(500)) }).unwrap();
    center.ask(Command::Release { lease, back: Back::After(Millis(20)), priority: None, note: None }).unwrap();
    let expected = [leased(1, 30_100), What::Extended { until: at(600) }, What::Released { at: at(120) }];
    assert_eq!(told(&mut center), expected);

    center.pass(20);
    let lease = center.take_one().lease;
    center.ask(Command::Release { lease, back: Back::Retry, priority: None, note: None }).unwrap();
    assert_eq!(told(&mut center), [What::Fired, leased(2, 30_120), What::Failed { again: at(130) }]);

    center.pass(10);
    let lease = center.take_one().lease;
    center.acknowledge(&lease).unwrap();
    assert_eq!(told(&mut center), [What::Fired, leased(3, 30_130), What::Done]);
    center.ask(Command::Replay(selected("a"))).unwrap();
    assert_eq!(told(&mut center), [What::Replayed, What::Fired]);
}

#[test]
fn a_delivery_that_goes_straight_into_a_consumers_hands_has_fired_before() {
    let mut center = Center::new();
    center.wait_for(&["t"], 1, 1_000, "consumer");
    center.schedule(task("a", 0));
    let expected = [What::Scheduled { due: at(0) }, What::Fired, leased(1, 30_000)];
    assert_eq!(told(&mut center), expected);
}

#[test]
fn a_delivery_given_back_at_once_fires_again() {
    let mut center = Center::new();
    center.schedule(task("a", 0));
    let lease = center.take_one().lease;
    center.events.clear();
    center.ask(Command::Release { lease, back: Back::After(Millis::ZERO), priority: None, note: None }).unwrap();
    assert_eq!(told(&mut center), [What::Released { at: at(0) }, What::Fired]);
}

#[test]
fn a_lease_that_ends_unanswered_has_failed_and_at_last_the_delivery_dies() {
    let mut center = Center::new();
    center.put_queue("t", retrying(2, 10));
    center.schedule(task("a", 0));
    center.take_one();
    center.events.clear();
    center.pass(30_000);
    assert_eq!(told(&mut center), [What::Failed { again: at(30_010) }]);
    center.pass(10);
    center.take_one();
    center.events.clear();
    center.pass(30_000);
    assert_eq!(told(&mut center), [What::Died(Reason::OutOfAttempts)]);
    center.ask(Command::Purge(selected("a"))).unwrap();
    assert_eq!(told(&mut center), [What::Purged]);
}

#[test]
fn replacing_and_rescheduling_tell_the_new_due_time() {
    let mut center = Center::new();
    center.schedule(task("a", 100));
    center.schedule(Task { replace: true, ..task("a", 200) });
    center.schedule(task("a", 300));
    let expected = [What::Scheduled { due: at(100) }, What::Replaced { due: at(200) }];
    assert_eq!(told(&mut center), expected, "what existed already is not told");
    let shift = Some(Shift::To(at(50)));
    let change = Reschedule { topic: name("t"), id: name("a"), shift, priority: None, body: None };
    center.ask(Command::Reschedule(Box::new(change))).unwrap();
    assert_eq!(told(&mut center), [What::Rescheduled { due: at(50) }]);
    center.cancel("a");
    center.cancel("a");
    assert_eq!(told(&mut center), [What::Cancelled], "what came too late is not told");
}

#[test]
fn every_reason_of_a_death_is_told() {
    let mut center = Center::new();
    let feeds = Some(vec![Binding { queue: name("t"), pattern: Pattern::Words("in".into()) }]);
    center.put_topic("t", TopicSettings { feeds, ..TopicSettings::default() });
    center.put_queue(
        "t",
        QueueSettings { max_length: Some(1), overflow: Overflow::DropOldest, ..QueueSettings::default() },
    );
    let routed = |id: &str, delay| Task { routing_key: Some(name("in")), ..task(id, delay) };
    center.schedule(task("unrouted", 1));
    center.schedule(routed("pushed-out", 2));
    center.schedule(Task { ttl: Some(Millis(10)), ..routed("expired", 3) });
    center.schedule(routed("rejected", 20));
    center.events.clear();
    center.pass(1);
    center.pass(1);
    center.pass(1);
    center.pass(11);
    center.pass(6);
    let lease = center.take_one().lease;
    reject(&mut center, lease);
    let expected = [
        What::Died(Reason::Unrouted),
        What::Fired,
        What::Fired,
        What::Died(Reason::PushedOut),
        What::Died(Reason::Expired),
        What::Fired,
        leased(1, 30_020),
        What::Died(Reason::Rejected),
    ];
    assert_eq!(told(&mut center), expected);
}

#[test]
fn a_dead_letter_that_goes_on_dies_once_and_is_forwarded() {
    let mut center = Center::new();
    center.put_queue("t", QueueSettings { dead_letter: Some(name("graves")), ..QueueSettings::default() });
    for (id, refused, last) in [("a", None, Some(What::Forwarded)), ("b", Some("no".to_owned()), None)] {
        center.schedule(task(id, 0));
        let lease = center.take_one().lease;
        reject(&mut center, lease);
        let Forward { key, journey, .. } = center.forwards.pop().unwrap();
        center.ask(Command::Forwarded { key, journey, refused }).unwrap();
        let mut expected = vec![What::Scheduled { due: at(0) }, What::Fired, leased(1, 30_000)];
        expected.push(What::Died(Reason::Rejected));
        expected.extend(last);
        assert_eq!(told(&mut center), expected);
    }
}

#[test]
fn each_delivery_of_a_broadcast_task_tells_of_itself() {
    let mut center = Center::new();
    let binding = |queue: &str| Binding { queue: name(queue), pattern: Pattern::Words("#".into()) };
    let feeds = Some(vec![binding("mail"), binding("stock")]);
    center.put_topic("t", TopicSettings { feeds, ..TopicSettings::default() });
    center.schedule(task("a", 0));
    for queue in ["mail", "stock"] {
        let lease = center.take_from(queue, 1).remove(0).lease;
        center.acknowledge(&lease).unwrap();
    }
    let expected =
        ["scheduled -", "fired mail", "fired stock", "leased mail", "done mail", "leased stock", "done stock"];
    assert_eq!(words(&mut center), expected);
    center.schedule(task("b", 0));
    center.events.clear();
    center.cancel("b");
    assert_eq!(words(&mut center), ["cancelled mail", "cancelled stock"]);
}

#[test]
fn sweeps_and_the_deletion_of_a_queue_tell_of_each_row() {
    let mut center = Center::new();
    for id in ["a", "b"] {
        center.schedule(task(id, 0).key(name("ann")));
        let lease = center.take_one().lease;
        reject(&mut center, lease);
    }
    center.schedule(task("c", 0).key(name("ann")));
    center.events.clear();
    let dead = Matching::Dead { topic: None, queue: None, died: TimeRange::ALL };
    let sweep =
        |matching, action| Command::Sweep(Box::new(Sweep { matching, within: Scope::ALL, action, dry_run: false }));
    center.ask(sweep(dead.clone(), SweepAction::Replay)).unwrap();
    assert_eq!(words(&mut center), ["replayed t", "fired t", "replayed t", "fired t"]);
    center.ask(sweep(Matching::Key { key: name("ann"), topic: None }, SweepAction::Shift(Shift::By(5)))).unwrap();
    let mut shifted = told(&mut center);
    assert!(shifted.iter().all(|what| *what == What::Rescheduled { due: at(5) }) && shifted.len() == 3, "{shifted:?}");
    center.pass(5);
    let lease = center.take_one().lease;
    reject(&mut center, lease);
    center.events.clear();
    center.ask(Command::DeleteQueue { name: name("t"), force: true }).unwrap();
    shifted = told(&mut center);
    assert_eq!(shifted, [What::Cancelled, What::Cancelled, What::Purged]);
}

#[test]
fn what_goes_with_its_time_or_its_topic_goes_silently() {
    let mut center = Center::new();
    center.put_topic("t", TopicSettings { history: Millis(100), ..TopicSettings::default() });
    center.put_queue("t", QueueSettings { dead_retention: Some(Millis(100)), ..QueueSettings::default() });
    for id in ["done", "dead"] {
        center.schedule(task(id, 0));
    }
    for delivery in center.take(2) {
        match delivery.id.as_str() {
            "done" => _ = center.acknowledge(&delivery.lease),
            _ => reject(&mut center, delivery.lease),
        }
    }
    center.events.clear();
    center.pass(100);
    assert_eq!((center.standing("done"), center.standing("dead")), (None, None));
    center.schedule(task("later", 100));
    center.events.clear();
    center.ask(Command::DeleteTopic { name: name("t"), force: true }).unwrap();
    assert_eq!(told(&mut center), []);
}

#[test]
fn what_was_ready_fires_again_after_a_restart() {
    let mut center = Center::new();
    center.schedule(task("a", 0));
    center.events.clear();
    center.restart();
    assert_eq!(told(&mut center), [What::Fired]);
}

/// Who asked for what was told since it was last asked for.
fn askers(center: &mut Center) -> Vec<(&'static str, Option<String>)> {
    let events = std::mem::take(&mut center.events).into_iter();
    events.map(|event| (event.what.as_str(), event.by.map(|by| by.to_string()))).collect()
}

#[test]
fn events_tell_who_asked_and_nobody_where_only_time_has_passed() {
    let mut center = Center::new();
    let amy = Some("amy".to_owned());
    center.schedule(task("a", 100));
    center.by = Some(name("amy"));
    center.schedule(task("b", 100));
    center.cancel("b");
    center.pass(100);
    let expected = [("scheduled", None), ("scheduled", amy.clone()), ("cancelled", amy.clone()), ("fired", None)];
    assert_eq!(askers(&mut center), expected);
    let lease = center.take_one().lease;
    center.acknowledge(&lease).unwrap();
    assert_eq!(askers(&mut center), [("leased", None), ("done", amy)]);
}

#[test]
fn events_of_a_sweep_tell_who_began_it_also_after_a_crash() {
    const TASKS: usize = 3_000;
    let mut center = Center::new();
    for number in 0..TASKS {
        center.schedule(task(&number.to_string(), 1_000));
    }
    center.events.clear();
    let (among, topic, time) = (Among::Live, Some(name("t")), TimeRange::ALL);
    let select = Select { among, topic, key: None, queue: None, time, ids: None };
    center.by = Some(name("amy"));
    center.begin(begin(1, sweep(select, SweepAction::Cancel)));
    center.by = None;
    center.step_once();
    let mut told = askers(&mut center);
    assert!(!told.is_empty() && told.len() < TASKS, "it is under way, and has told {}", told.len());
    center.restart();
    center.pass(1);
    told.extend(askers(&mut center));
    assert_eq!(told.len(), TASKS);
    assert!(told.iter().all(|told| *told == ("cancelled", Some("amy".to_owned()))));
}
