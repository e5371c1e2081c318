//! Facts about deletions: they take effect at once, happen once, go on after a crash, and concern nobody else.

use crate::center::{Center, at, name, task};
use punctual_core::{
    Answer, Back, Backoff, Binding, Command, Matching, Millis, QueueSettings, Reason, Refused, Retry, Ruling, Schedule,
    ScheduleOutcome, Scope, Selected, Shift, Standing, Sweep, SweepAction, Swept, Task, TimeRange, TopicSettings,
};

/// More than are cleared away in one step.
const MANY: usize = 600;

fn delete_topic(topic: &str, force: bool) -> Command {
    Command::DeleteTopic { name: name(topic), force }
}

fn delete_queue(queue: &str, force: bool) -> Command {
    Command::DeleteQueue { name: name(queue), force }
}

fn schedule(mut task: Task) -> Command {
    let id = task.id.take().unwrap();
    Command::Schedule(Box::new(Schedule { task, id, id_is_new: false }))
}

fn feeds(queues: &[&str]) -> TopicSettings {
    let bindings = queues.iter().map(|queue| Binding::all(name(queue)));
    TopicSettings { feeds: Some(bindings.collect()), ..TopicSettings::default() }
}

/// A center with many tasks of topic `t`, all of them due so much later.
fn full(delay: u64) -> Center {
    let mut center = Center::new();
    for number in 0..MANY {
        center.schedule(task(&format!("old-{number}"), delay));
    }
    center
}

/// How many rows there are of topic `t`.
fn rows(center: &Center) -> u64 {
    let counts = center.shard.counts();
    let topic = counts.topics.iter().find(|topic| topic.name == name("t"));
    topic.map_or(0, |topic| topic.waiting + topic.leased + topic.dead + topic.history)
}

#[test]
fn a_second_deletion_joins_the_first_and_spares_what_comes_after() {
    for second in [delete_topic("t", true), delete_topic("t", false)] {
        let mut center = full(100_000);
        let first = center.begin(delete_topic("t", true));
        let second = center.begin(second);
        // Producers go on all the time; what is confirmed stays.
        let mut confirmed = 0;
        for number in 0..400 {
            let reply = center.begin(schedule(task(&format!("new-{number}"), 100_000)));
            match center.answer(reply).expect("it is answered at once") {
                Ok(Answer::Scheduled(scheduled)) => {
                    assert!(matches!(scheduled.outcome, ScheduleOutcome::Created { .. }));
                    confirmed += 1;
                }
                refused => assert_eq!(refused, Err(Refused::BeingDeleted(name("t")))),
            }
        }
        center.settle();
        assert_eq!(center.answer(first), Some(Ok(Answer::Deleted(MANY as u64))));
        assert_eq!(center.answer(second), Some(Ok(Answer::Deleted(MANY as u64))));
        assert!(confirmed > 300, "the deletion is over after a few steps");
        assert_eq!(rows(&center), confirmed);
    }
}

#[test]
fn a_queue_that_is_made_anew_is_not_removed_by_a_deletion_of_the_one_before() {
    let mut center = full(0);
    let first = center.begin(delete_queue("t", true));
    let second = center.begin(delete_queue("t", false));
    center.settle();
    assert_eq!(center.answer(first), Some(Ok(Answer::Deleted(MANY as u64))));
    assert_eq!(center.answer(second), Some(Ok(Answer::Deleted(MANY as u64))));
    center.put_queue("t", QueueSettings::default());
    center.schedule(task("new", 0));
    center.settle();
    assert_eq!(center.take_ids(), ["new"]);
}

#[test]
fn a_deletion_that_a_crash_cut_short_goes_on_by_itself() {
    for command in [delete_topic("t", true), delete_queue("t", true)] {
        let mut center = full(0);
        center.pass(10);
        center.begin(command.clone());
        center.restart();
        center.schedule(Task { topic: name("other"), ..task("other", 0) });
        let counts = center.shard.counts();
        let (topic, queue) = (name("t"), name("t"));
        match command {
            Command::DeleteTopic { .. } => assert!(counts.topics.iter().all(|known| known.name != topic)),
            _ => assert!(counts.queues.iter().all(|known| known.name != queue)),
        }
        center.schedule(task("new", 0));
        assert_eq!(center.take_ids(), ["new"]);
        center.restart();
        assert!(center.take_ids().is_empty());
        center.schedule(task("newer", 0));
        assert_eq!(center.take_ids(), ["newer"], "the mark went with what it was about");
    }
}

#[test]
fn what_was_ready_goes_with_its_queue_also_if_a_crash_cut_that_short_while_much_was_overdue() {
    let mut center = Center::new();
    for number in 0..200 {
        center.schedule(Task { topic: name("other"), ..task(&format!("other-{number}"), 0) });
    }
    center.pass(5);
    for number in 0..40 {
        center.schedule(task(&number.to_string(), 0));
    }
    center.pass(5);
    center.begin(delete_queue("t", true));
    center.restart();
    assert!(center.shard.counts().queues.iter().all(|queue| queue.name != name("t")));
    for number in 0..40 {
        assert!(matches!(center.standing(&number.to_string()), Some(Standing::Finished { .. })), "{number}");
    }
    assert_eq!(center.take_from("other", 500).len(), 200);
    center.schedule(task("new", 0));
    assert_eq!(center.take_ids(), ["new"]);
}

#[test]
fn a_sweep_does_not_move_what_goes_with_a_queue_out_of_its_deletions_way() {
    let mut center = Center::new();
    center.put_topic("t", feeds(&["a", "b"]));
    for number in 0..MANY {
        center.schedule(task(&format!("old-{number}"), 0));
    }
    center.schedule(Task { key: Some(name("k")), ..task("1", 0) });
    center.begin(delete_queue("a", true));
    let matching = Matching::Key { key: name("k"), topic: None };
    let action = SweepAction::Shift(Shift::In(Millis(1_000)));
    let swept = center.begin(Command::Sweep(Box::new(Sweep { matching, within: Scope::ALL, action, dry_run: false })));
    center.settle();
    let too_late = Swept { matched: 1, changed: 0, too_late: 1, no_room: 0 };
    assert_eq!(center.answer(swept), Some(Ok(Answer::Swept(too_late))), "one of its deliveries is gone");
    let spread = Standing::Spread { open: vec![name("b")], finished: vec![name("a")] };
    assert_eq!(center.standing("1"), Some(spread));
    assert_eq!(center.queue_counts("b"), (MANY as u64 + 1, 0, 0));
}

#[test]
fn deliveries_that_lost_their_task_give_way_to_those_of_a_task_of_the_same_id() {
    for delay in [0, 5] {
        let mut center = half_dead();
        center.put_queue("a", QueueSettings::default());
        center.lose_row("t", "old-0");
        center.schedule(task("old-0", delay));
        center.pass(5);
        center.restart();
        assert_eq!((center.queue_counts("a").2, center.queue_counts("b").0), (MANY as u64 - 1, MANY as u64));
        assert_eq!(center.take_from("a", 9)[0].id, name("old-0"));
        assert!(center.take_from("b", 10 * MANY).iter().any(|given| given.id == name("old-0")));
        assert!(center.shard.mended().is_empty());
    }
}

#[test]
fn what_a_topic_held_is_gone_as_soon_as_its_deletion_is_asked_for() {
    let mut center = full(0);
    let lease = center.take_one().lease;
    let waiting = center.begin(delete_topic("t", true));
    assert_eq!(center.answer(waiting), None, "it takes several steps");
    let acknowledge = center.begin(Command::Acknowledge(lease));
    assert_eq!(center.answer(acknowledge), Some(Err(Refused::LeaseLost { now: None })));
    let cancel = center.begin(Command::Cancel { topic: name("t"), id: name(&format!("old-{}", MANY - 1)) });
    assert_eq!(center.answer(cancel), Some(Ok(Answer::Cancelled(Ruling::Unknown))));
    assert!(center.take(10).is_empty());
}

#[test]
fn what_a_queue_held_is_cancelled_as_soon_as_its_deletion_is_asked_for() {
    let mut center = full(0);
    let (lease, last) = (center.take_one().lease, name(&format!("old-{}", MANY - 1)));
    center.begin(delete_queue("t", true));
    let gone = Standing::Finished { ending: punctual_core::Ending::Cancelled, at: at(0) };
    let acknowledge = center.begin(Command::Acknowledge(lease));
    assert_eq!(center.answer(acknowledge), Some(Err(Refused::LeaseLost { now: Some(gone.clone()) })));
    let cancel = center.begin(Command::Cancel { topic: name("t"), id: last });
    assert_eq!(center.answer(cancel), Some(Ok(Answer::Cancelled(Ruling::TooLate(gone)))));
}

#[test]
fn settings_of_what_is_being_deleted_cannot_be_put() {
    let mut center = full(0);
    center.begin(delete_queue("t", true));
    let settings = Box::new(QueueSettings::default());
    let put = center.begin(Command::PutQueue { name: name("t"), settings });
    assert_eq!(center.answer(put), Some(Err(Refused::BeingDeleted(name("t")))));
    center.settle();
    center.begin(delete_topic("t", true));
    let settings = Box::new(TopicSettings::default());
    let put = center.begin(Command::PutTopic { name: name("t"), settings });
    assert_eq!(center.answer(put), Some(Err(Refused::BeingDeleted(name("t")))));
}

#[test]
fn what_comes_due_while_its_queue_is_deleted_goes_to_the_next_of_that_name() {
    let mut center = full(0);
    center.schedule(task("later", 10));
    center.begin(delete_queue("t", true));
    center.tick(10);
    center.begin(delete_queue("other", true));
    center.settle();
    assert_eq!(center.standing("later"), Some(Standing::Ready { since: at(10) }));
    assert_eq!(center.take_ids(), ["later"]);
}

#[test]
fn what_comes_due_in_the_step_that_deletes_its_queue_is_not_unrouted() {
    let mut center = Center::new();
    center.schedule(task("first", 100_000));
    center.begin_all(vec![delete_queue("t", false), schedule(task("now", 0))]);
    center.settle();
    assert_eq!(center.take_ids(), ["now"]);
}

#[test]
fn a_broadcast_waits_for_the_end_of_the_deletion_of_one_of_its_queues() {
    let mut center = full(0);
    center.put_topic("fan", feeds(&["t", "u"]));
    center.schedule(Task { topic: name("fan"), ..task("1", 10) });
    center.begin(delete_queue("t", true));
    center.tick(10);
    center.begin(delete_queue("other", true));
    center.settle();
    assert_eq!((center.take_from("t", 9).len(), center.take_from("u", 9).len()), (1, 1));
}

#[test]
fn what_waits_for_a_retry_goes_with_its_queue_also_if_its_time_comes_meanwhile() {
    let mut center = full(0);
    let retry = Retry { attempts: 0, backoff: Backoff::Fixed(Millis(5)), jitter_percent: 0 };
    center.put_queue("t", QueueSettings { retry, lease: Millis(3), ..QueueSettings::default() });
    let deliveries = center.take(2);
    let lease = deliveries[0].lease.clone();
    center.ask(Command::Release { lease, back: Back::Retry, priority: None, note: None }).unwrap();
    center.begin(delete_queue("t", true));
    center.tick(5);
    center.begin(delete_queue("other", true));
    center.settle();
    for delivery in deliveries {
        assert!(matches!(center.standing(&delivery.id), Some(Standing::Finished { .. })));
    }
    assert!(center.take_ids().is_empty());
}

/// Many tasks of a broadcast topic, each with a dead delivery in `a` and an open one in `b`.
fn half_dead() -> Center {
    let mut center = Center::new();
    center.put_queue("a", QueueSettings { max_length: Some(1), ..QueueSettings::default() });
    center.put_topic("t", feeds(&["a", "b"]));
    for number in 0..MANY {
        center.schedule(task(&format!("old-{number}"), 1));
    }
    center.pass(1);
    let lease = center.take_from("a", 1).remove(0).lease;
    center.ask(Command::Reject { lease, note: None, priority: None }).unwrap();
    assert_eq!((center.queue_counts("a").2, center.queue_counts("b").0), (MANY as u64, MANY as u64));
    center
}

#[test]
fn deliveries_go_with_their_task_whenever_a_deletion_is_cut_short() {
    for steps in 0..12 {
        let mut center = half_dead();
        center.begin(delete_topic("t", true));
        for _ in 0..steps {
            center.begin_all(vec![]);
        }
        center.restart();
        assert_eq!((center.queue_counts("a"), center.queue_counts("b")), ((0, 0, 0), (0, 0, 0)), "{steps} steps");
        assert!(center.shard.counts().topics.is_empty(), "{steps} steps");
    }
}

#[test]
fn a_purge_that_meets_a_delivery_dying_in_that_very_step_ends_its_task() {
    let mut center = Center::with(punctual_core::ShardConfig { cache: 0, ..Default::default() });
    let retry = Retry { attempts: 1, backoff: Backoff::Fixed(Millis(1)), jitter_percent: 0 };
    let queue = QueueSettings { retry, lease: Millis(10), ..QueueSettings::default() };
    for name in ["a", "b"] {
        center.put_queue(name, queue.clone());
    }
    center.put_topic("t", feeds(&["a", "b"]));
    center.schedule(task("1", 0));
    center.take_from("a", 1);
    center.take_from("b", 1);
    center.tick(10);
    // In the step after it was asked for, the second delivery dies: it had to be read first.
    let matching = Matching::Dead { topic: None, queue: None, died: TimeRange::ALL };
    let purge =
        Command::Sweep(Box::new(Sweep { matching, within: Scope::ALL, action: SweepAction::Purge, dry_run: false }));
    center.begin(purge.clone());
    center.settle();
    center.ask(purge).unwrap();
    assert!(matches!(center.standing("1"), Some(Standing::Finished { .. })), "{:?}", center.standing("1"));
}

#[test]
fn a_forced_deletion_of_a_queue_meets_a_delivery_dying_in_that_very_step() {
    let mut center = Center::with(punctual_core::ShardConfig { cache: 0, ..Default::default() });
    let retry = Retry { attempts: 1, backoff: Backoff::Fixed(Millis(1)), jitter_percent: 0 };
    center.put_queue("a", QueueSettings { retry, lease: Millis(10), ..QueueSettings::default() });
    center.put_topic("t", feeds(&["a", "b"]));
    center.schedule(task("1", 0));
    let lease = center.take_from("a", 1)[0].lease.clone();
    let reject = Command::Reject { lease, note: None, priority: None };
    center.begin(delete_queue("b", true));
    center.begin_all(vec![reject, delete_queue("a", true)]);
    center.settle();
    assert!(matches!(center.standing("1"), Some(Standing::Finished { .. })), "{:?}", center.standing("1"));
}

#[test]
fn a_dead_delivery_that_lost_its_task_blocks_nobody() {
    let mut center = half_dead();
    let selected = |queue: &str| Selected { topic: name("t"), id: name("old-0"), queue: Some(name(queue)) };
    center.lose_row("t", "old-0");
    center.put_queue("a", QueueSettings::default());
    assert_eq!(center.ask(Command::Replay(selected("a"))), Err(Refused::NothingThere));
    // The other one is ready, and has no body that could be handed over.
    center.restart();
    let taken = center.take_from("b", 10 * MANY);
    assert_eq!(taken.len(), MANY - 1);
    assert_eq!(center.queue_counts("b"), (0, MANY as u64 - 1, 1));
    let dead = center.dead_in("b");
    assert_eq!(dead[0].delivery.death.as_ref().unwrap().reason, Reason::Lost);
    for queue in ["a", "b"] {
        assert_eq!(center.ask(Command::Purge(selected(queue))), Ok(Answer::Purged));
    }
}

#[test]
fn a_topic_that_is_paused_until_another_time_wakes_the_shard_only_then() {
    let mut center = Center::new();
    center.put_queue("t", QueueSettings::default());
    for millis in [10, 20, 30] {
        center.ask(Command::PauseQueue { name: name("t"), until: Some(at(millis)) }).unwrap();
    }
    assert_eq!(center.begin_wake(), at(30));
    center.ask(Command::PauseQueue { name: name("t"), until: None }).unwrap();
    assert!(center.begin_wake() > at(30));
}
