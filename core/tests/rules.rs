//! Facts about what is refused because it cannot be meant, and about what takes the place of what is over.

use crate::center::{Center, at, name, task};
use punctual_core::{
    Answer, Backoff, Binding, Choice, Command, Ending, Matching, Millis, QueueSettings, Refused, Reply, Reserve, Retry,
    RowId, ScheduleOutcome, Scope, ShardConfig, Standing, Sweep, SweepAction, Swept, Take, Task, TimeRange, Timestamp,
    TopicSettings,
};

fn invalid(reply: Reply) -> &'static str {
    match reply {
        Err(Refused::Invalid { field, .. }) => field,
        other => panic!("{other:?}"),
    }
}

fn bad(settings: QueueSettings) -> bool {
    let command = Command::PutQueue { name: name("t"), settings: Box::new(settings) };
    matches!(Center::new().ask(command), Err(Refused::BadSettings(_)))
}

#[test]
fn a_lease_of_no_time_is_refused_wherever_it_is_asked_for() {
    let mut center = Center::new();
    assert_eq!(invalid(center.try_schedule(Task { lease: Some(Millis::ZERO), ..task("a", 0) })), "lease");
    assert_eq!(invalid(center.try_schedule(Task { max_lease: Some(Millis::ZERO), ..task("a", 0) })), "max_lease");
    let both = Task { lease: Some(Millis(2)), max_lease: Some(Millis(1)), ..task("a", 0) };
    assert_eq!(invalid(center.try_schedule(both)), "lease");
    let number = center.schedule(task("a", 0)).number;
    let row = RowId { key: punctual_core::store::Key::new("t", "a", ""), number };
    let take = Take { row, consumer: name("c"), lease: Some(Millis::ZERO) };
    assert_eq!(invalid(center.ask(Command::Take(Box::new(take)))), "lease");
    let lease = center.take_one().lease;
    assert_eq!(invalid(center.ask(Command::Extend { lease, by: Some(Millis::ZERO) })), "after");
    let reserve = Reserve {
        queues: vec![name("t")],
        max: 1,
        lease: Some(Millis::ZERO),
        until: Timestamp::ZERO,
        consumer: name("c"),
        choice: Choice::InTurn,
    };
    assert!(matches!(reserve.check(), Err(Refused::Invalid { field: "lease", .. })));
}

#[test]
fn a_retry_policy_that_cannot_be_meant_is_refused_of_tasks_and_queues() {
    let jitter = Retry { jitter_percent: 101, ..Retry::default() };
    let backoff = Backoff::Exponential { first: Millis(2), cap: Millis(1) };
    let backwards = Retry { backoff, ..Retry::default() };
    for retry in [jitter, backwards] {
        assert_eq!(invalid(Center::new().try_schedule(Task { retry: Some(retry), ..task("a", 0) })), "retry");
        assert!(bad(QueueSettings { retry, ..QueueSettings::default() }));
    }
    assert!(bad(QueueSettings { max_lease: Millis(29_999), ..QueueSettings::default() }), "shorter than the lease");
}

#[test]
fn a_queue_that_can_hold_nothing_is_refused() {
    let put = |max_length| Command::PutQueue {
        name: name("t"),
        settings: Box::new(QueueSettings { max_length, ..QueueSettings::default() }),
    };
    assert_eq!(invalid(Center::new().ask(put(Some(0)))), "max_length");
    assert!(Center::new().ask(put(Some(1))).is_ok() && Center::new().ask(put(None)).is_ok());
}

#[test]
fn a_feed_to_a_queue_that_will_never_be_is_refused() {
    let feeding = |queue: &str| TopicSettings { feeds: Some(vec![Binding::all(name(queue))]), ..Default::default() };
    let put = |settings| Command::PutTopic { name: name("t"), settings: Box::new(settings) };
    let mut center = Center::with(ShardConfig { create_on_use: false, ..ShardConfig::default() });
    assert_eq!(center.ask(put(feeding("missing"))), Err(Refused::NoSuchQueue(name("missing"))));
    center.put_queue("there", QueueSettings::default());
    center.put_topic("t", feeding("there"));
    center.ask(Command::DeleteQueue { name: name("there"), force: false }).unwrap();
    let paused = center.ask(Command::PauseTopic { name: name("t"), paused: true });
    assert!(paused.is_ok(), "what it was told before does not keep it from being paused");
    Center::new().put_topic("t", feeding("missing"));
}

#[test]
fn a_topic_that_feeds_the_queue_of_its_own_name_needs_it() {
    let put = || Command::PutTopic { name: name("t"), settings: Box::default() };
    let mut center = Center::with(ShardConfig { create_on_use: false, ..ShardConfig::default() });
    assert_eq!(center.ask(put()), Err(Refused::NoSuchQueue(name("t"))));
    center.put_queue("t", QueueSettings::default());
    assert!(center.ask(put()).is_ok());
}

#[test]
fn a_time_to_live_of_nothing_is_refused() {
    let mut center = Center::new();
    let refused = center.try_schedule(Task { ttl: Some(Millis::ZERO), ..task("a", 0) });
    assert!(matches!(refused, Err(Refused::Invalid { field: "ttl", .. })), "{refused:?}");
    let settings = Box::new(TopicSettings { ttl: Some(Millis::ZERO), ..TopicSettings::default() });
    let refused = center.ask(Command::PutTopic { name: name("t"), settings });
    assert!(matches!(&refused, Err(Refused::BadSettings(why)) if why.contains("ttl")), "{refused:?}");
}

#[test]
fn a_pause_that_is_over_is_refused() {
    let check = |until| QueueSettings::check_pause(until, "until", at(5));
    assert_eq!([None, Some(at(6)), Some(Timestamp::NEVER)].map(check), [Ok(()), Ok(()), Ok(())]);
    assert!(matches!(check(Some(at(5))), Err(Refused::Invalid { field: "until", .. })));
}

#[test]
fn zero_attempts_are_any_number() {
    let mut center = Center::new();
    let retry = Retry { attempts: 0, backoff: Backoff::Fixed(Millis::ZERO), jitter_percent: 0 };
    center.schedule(Task { retry: Some(retry), ..task("a", 0) });
    for attempt in 1..=100 {
        let delivery = center.take_one();
        assert_eq!(delivery.attempt, attempt);
        center.pass(30_000);
    }
}

fn rearm(id: &str, delay: u64) -> Task {
    Task { replace: true, ..task(id, delay) }
}

#[test]
fn a_finished_task_is_armed_again_by_replacing_it() {
    let mut center = Center::new();
    for round in 0..3u64 {
        let due = center.now().plus(Millis(50));
        let outcome = center.schedule(rearm("timer", 50)).outcome;
        match round {
            0 => assert_eq!(outcome, ScheduleOutcome::Created { due }),
            _ => assert_eq!(outcome, ScheduleOutcome::Replaced { due }),
        }
        center.pass(50);
        let delivery = center.take_one();
        assert_eq!(delivery.attempt, 1, "it is a new task");
        center.acknowledge(&delivery.lease).unwrap();
        assert_eq!(center.shard.counts().topics[0].history, 1, "there is one task of an id");
    }
    center.restart();
    center.schedule(task("cancelled", 50));
    center.cancel("cancelled");
    assert!(matches!(center.schedule(rearm("cancelled", 5)).outcome, ScheduleOutcome::Replaced { .. }));
    center.pass(24 * 3_600_000);
    assert_eq!(center.take_ids(), ["cancelled"], "what it replaced is forgotten, it is not");
}

#[test]
fn without_replacing_a_finished_task_stays_as_it_is() {
    let mut center = Center::new();
    center.schedule(task("a", 0));
    let lease = center.take_one().lease;
    center.acknowledge(&lease).unwrap();
    let existed = ScheduleOutcome::Existed(Standing::Finished { ending: Ending::Done, at: at(0) });
    assert_eq!(center.schedule(task("a", 5)).outcome, existed);
}

#[test]
fn a_dead_letter_or_a_delivery_at_work_is_not_replaced() {
    let mut center = Center::new();
    center.schedule(task("a", 0));
    let lease = center.take_one().lease;
    let leased = center.schedule(rearm("a", 5)).outcome;
    assert!(matches!(leased, ScheduleOutcome::Existed(Standing::Leased { .. })));
    center.ask(Command::Reject { lease, note: None, priority: None }).unwrap();
    let dead = center.schedule(rearm("a", 5)).outcome;
    assert!(matches!(dead, ScheduleOutcome::Existed(Standing::Dead { .. })));
}

#[test]
fn the_history_is_replayed_by_how_it_ended() {
    let mut center = Center::new();
    for id in ["done", "cancelled"] {
        center.schedule(task(id, 0));
    }
    center.cancel("cancelled");
    let lease = center.take_one().lease;
    center.acknowledge(&lease).unwrap();
    let mut replay = |ending| {
        let matching = Matching::History { topic: name("t"), finished: TimeRange::ALL, ending };
        let sweep = Sweep { matching, within: Scope::ALL, action: SweepAction::Replay, dry_run: false };
        center.ask(Command::Sweep(Box::new(sweep)))
    };
    let swept = |changed| Ok(Answer::Swept(Swept { matched: changed, changed, too_late: 0, no_room: 0 }));
    assert_eq!(replay(Some(Ending::Forwarded)), swept(0));
    assert_eq!(replay(Some(Ending::Done)), swept(1));
    assert_eq!(replay(None), swept(1), "all that is left");
    assert_eq!(center.take_ids(), ["done", "cancelled"]);
}
