//! Facts about topics, queues and keys: settings, pauses, rates, deletion, and bounds on memory.

use crate::center::{Center, at, name, task};
use punctual_core::store::{Claim, Fence, Incarnation, ShardId, Store};
use punctual_core::{
    Answer, Command, Matching, Millis, QueueSettings, Rate, Refused, Request, Scope, Shard, ShardConfig, Shift,
    Standing, Sweep, SweepAction, Swept, Task, Timestamp, TopicSettings,
};

fn by_key(action: SweepAction, dry_run: bool) -> Command {
    let matching = Matching::Key { key: name("user-1"), topic: None };
    Command::Sweep(Box::new(Sweep { matching, within: Scope::ALL, action, dry_run }))
}

#[test]
fn a_paused_topic_refuses_tasks_and_a_paused_queue_lets_them_wait() {
    let mut center = Center::new();
    center.schedule(task("a", 5));
    center.ask(Command::PauseTopic { name: name("t"), paused: true }).unwrap();
    assert_eq!(center.try_schedule(task("b", 5)), Err(Refused::TopicPaused(name("t"))));
    center.ask(Command::PauseTopic { name: name("t"), paused: false }).unwrap();
    center.ask(Command::PauseQueue { name: name("t"), until: Some(Timestamp::NEVER) }).unwrap();
    center.pass(5);
    assert!(center.take_ids().is_empty());
    center.ask(Command::PauseQueue { name: name("t"), until: None }).unwrap();
    assert_eq!(center.take_ids(), ["a"]);
}

#[test]
fn a_pause_ends_by_itself_at_its_time() {
    let mut center = Center::new();
    center.schedule(task("a", 0));
    center.ask(Command::PauseQueue { name: name("t"), until: Some(at(500)) }).unwrap();
    let consumer = center.wait_for(&["t"], 1, 10_000, "c");
    center.pass(499);
    assert!(center.given(consumer).is_none());
    center.pass(1);
    assert_eq!(center.given(consumer).unwrap().len(), 1);
}

#[test]
fn a_queues_rate_smooths_what_is_handed_out() {
    let mut center = Center::new();
    let rate = Some(Rate { per_second: 10, burst: 1 });
    center.put_queue("t", QueueSettings { rate, ..QueueSettings::default() });
    for number in 0..5 {
        center.schedule(task(&number.to_string(), 0));
    }
    let mut taken = Vec::new();
    for _ in 0..500 {
        taken.push(center.take(9).len());
        center.pass(1);
    }
    assert_eq!(taken.iter().sum::<usize>(), 5);
    let moments: Vec<usize> = (0..500).filter(|moment| taken[*moment] > 0).collect();
    assert_eq!(moments, [0, 100, 200, 300, 400]);
}

#[test]
fn a_queue_that_comes_to_be_in_another_shard_keeps_its_rate() {
    let mut center = Center::new();
    let rate = Some(Rate { per_second: 1, burst: 1 });
    center.put_queue("t", QueueSettings { rate, ..QueueSettings::default() });
    ["a", "b"].into_iter().for_each(|id| _ = center.schedule(task(id, 0)));

    // One board is for all shards of a node, and the other one has yet to hear of the rate.
    let (store, other) = (center.store.clone(), ShardId(1));
    let who = Incarnation { node: name("node"), number: 1 };
    let Claim::Granted(tenure) = store.claim(&who, &[(other, Fence::default())]).unwrap()[0] else {
        panic!("nobody has it");
    };
    let mut shard: Shard<u64> = Shard::open(other, tenure, center.config.clone(), center.now(), &*store).unwrap();
    let command = Command::PutTopic { name: name("t"), settings: Box::new(TopicSettings::default()) };
    let request = Request { by: None, command, reply: 0, read_at: center.now() };
    shard.step(center.now(), vec![request], &*store, &mut center.board).unwrap();
    assert_eq!(center.take(9).len(), 1);
    assert!(center.take(9).is_empty(), "the burst is one");
}

#[test]
fn topics_and_queues_are_not_made_by_use_if_that_is_turned_off() {
    let mut center = Center::with(ShardConfig { create_on_use: false, ..ShardConfig::default() });
    assert_eq!(center.try_schedule(task("a", 0)), Err(Refused::NoSuchTopic(name("t"))));
    center.put_queue("t", QueueSettings::default());
    center.put_topic("t", TopicSettings::default());
    center.schedule(task("a", 0));
    assert_eq!(center.take_ids(), ["a"]);
}

#[test]
fn deleting_a_topic_that_holds_tasks_is_refused_unless_forced() {
    let mut center = Center::new();
    for number in 0..600 {
        center.schedule(task(&number.to_string(), 1_000));
    }
    let refused = center.ask(Command::DeleteTopic { name: name("t"), force: false });
    assert_eq!(refused, Err(Refused::NotEmpty { name: name("t"), rows: 600 }));
    assert_eq!(center.ask(Command::DeleteTopic { name: name("t"), force: true }), Ok(Answer::Deleted(600)));
    center.pass(1_000);
    assert!(center.take_ids().is_empty());
    assert!(center.shard.counts().topics.is_empty());
    assert_eq!(center.ask(Command::DeleteTopic { name: name("t"), force: true }), Err(Refused::NoSuchTopic(name("t"))));
}

#[test]
fn deleting_a_queue_takes_its_deliveries_with_it() {
    let mut center = Center::new();
    center.schedule(task("ready", 0));
    center.schedule(task("leased", 0));
    center.schedule(task("later", 1_000));
    let lease = center.take(1).remove(0).lease;
    let refused = center.ask(Command::DeleteQueue { name: name("t"), force: false });
    assert_eq!(refused, Err(Refused::NotEmpty { name: name("t"), rows: 2 }));
    assert_eq!(center.ask(Command::DeleteQueue { name: name("t"), force: true }), Ok(Answer::Deleted(2)));
    assert!(matches!(center.acknowledge(&lease), Err(Refused::LeaseLost { now: Some(Standing::Finished { .. }) })));
    center.pass(1_000);
    assert_eq!(center.take_ids(), ["later"], "the queue comes to be again by being used");
}

#[test]
fn bad_settings_are_refused_with_the_reason() {
    let mut center = Center::new();
    let rate = Some(Rate { per_second: 0, burst: 1 });
    let settings = Box::new(QueueSettings { rate, ..QueueSettings::default() });
    assert!(matches!(center.ask(Command::PutQueue { name: name("t"), settings }), Err(Refused::BadSettings(_))));
    let settings = Box::new(QueueSettings { lease: Millis::ZERO, ..QueueSettings::default() });
    assert!(matches!(center.ask(Command::PutQueue { name: name("t"), settings }), Err(Refused::BadSettings(_))));
}

#[test]
fn all_tasks_of_a_key_are_moved_or_cancelled_and_a_dry_run_only_counts() {
    let mut center = Center::new();
    for number in 0..300 {
        center.schedule(task(&number.to_string(), 1_000).key(name("user-1")));
    }
    center.schedule(task("other", 1_000).key(name("user-2")));
    center.schedule(task("leased", 0).key(name("user-1")));
    center.take_one();
    let counts = Swept { matched: 301, changed: 300, too_late: 1, no_room: 0 };
    assert_eq!(center.ask(by_key(SweepAction::Cancel, true)), Ok(Answer::Swept(counts)));
    assert_eq!(center.ask(by_key(SweepAction::Shift(Shift::By(500)), false)), Ok(Answer::Swept(counts)));
    center.pass(1_000);
    assert_eq!(center.take_ids(), ["other"]);
    assert_eq!(center.ask(by_key(SweepAction::Cancel, false)), Ok(Answer::Swept(counts)));
    center.pass(500);
    assert!(center.take_ids().is_empty());
}

#[test]
fn settings_and_counts_are_there_after_a_restart() {
    let mut center = Center::new();
    center.put_queue("t", QueueSettings { lease: Millis(77), ..QueueSettings::default() });
    center.schedule(task("a", 0));
    center.schedule(task("b", 1_000));
    center.take_one();
    let before = center.shard.counts();
    center.restart();
    assert_eq!(center.shard.counts(), before);
    center.pass(77 + 10_000);
    assert_eq!(center.take(9)[0].until, center.now().plus(Millis(77)));
}

#[test]
fn a_flood_on_one_topic_does_not_delay_another() {
    let mut center = Center::new();
    let consumer = center.wait_for(&["quiet"], 1, 10_000, "c");
    for number in 0..20_000 {
        center.schedule(task(&number.to_string(), 50));
    }
    center.schedule(Task { topic: name("quiet"), ..task("a", 50) });
    center.pass(50);
    let delivery = &center.given(consumer).expect("it is served in the millisecond in which it is due")[0];
    assert_eq!(delivery.id, name("a"));
    assert_eq!(center.queue_counts("t"), (20_000, 0, 0));
}
