//! Lengths of time count from when their request was read, rounded up: nothing is over sooner than it was asked for.

use crate::center::{Center, SHARD, at, name, task};
use punctual_core::{
    Answer, Back, Backoff, Command, Delivery, Lease, Matching, Millis, Output, QueueSettings, Reply, Request,
    Reschedule, Retry, Ruling, Schedule, ScheduleOutcome, Scope, ShardConfig, Shift, Standing, Sweep, SweepAction,
    Timestamp,
};

/// What a command that was read at this time is answered, in a step at the center's time.
fn ask_read_at(center: &mut Center, command: Command, read_at: Timestamp) -> Reply {
    step(center, vec![Request { by: None, command, reply: u64::MAX, read_at }], center.now())
}

fn step(center: &mut Center, requests: Vec<Request<u64>>, hand_over_at: Timestamp) -> Reply {
    let output = step_without_commit(center, requests, hand_over_at);
    commit(center, output)
}

fn step_without_commit(center: &mut Center, requests: Vec<Request<u64>>, hand_over_at: Timestamp) -> Output<u64> {
    let mut needs = center.shard.prepare(center.now(), requests, &center.board);
    while !needs.is_empty() {
        needs = center.shard.supply(needs.read(&*center.store, SHARD, center.shard.tenure()).unwrap());
    }
    center.shard.apply(hand_over_at);
    let now = center.now();
    center.shard.serve(&mut center.board, now);
    center.shard.finish()
}

fn commit(center: &mut Center, output: Output<u64>) -> Reply {
    punctual_core::store::Store::commit(&*center.store, output.batch.into_iter().collect()).unwrap();
    center.shard.committed(output.step);
    output.answers.into_iter().map(|(_, reply)| reply).next().unwrap_or(Err(punctual_core::Refused::NothingThere))
}

fn schedule(center: &mut Center, id: &str, delay: u64, read_at: Timestamp) -> Timestamp {
    let schedule = Schedule { task: task(id, delay), id: name(id), id_is_new: false };
    match ask_read_at(center, Command::Schedule(Box::new(schedule)), read_at) {
        Ok(Answer::Scheduled(scheduled)) => match scheduled.outcome {
            ScheduleOutcome::Created { due } => due,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_delay_counts_from_when_its_request_was_read() {
    let mut center = Center::new();
    center.tick(50);
    // Read a fraction of a millisecond ago, which is rounded up; and a while ago, when no step could be made.
    assert_eq!(schedule(&mut center, "fresh", 10, at(51)), at(61));
    assert_eq!(schedule(&mut center, "waited", 10, at(30)), at(40));
    assert_eq!(center.delay("fresh"), Millis(10));
    assert_eq!(center.delay("waited"), Millis(10));
    assert_eq!(center.take_ids(), ["waited"]);
    center.pass(10);
    assert_eq!(center.take_ids(), Vec::<String>::new());
    center.pass(1);
    assert_eq!(center.take_ids(), ["fresh"]);
}

#[test]
fn no_delay_at_all_does_not_wait_for_the_millisecond_to_turn() {
    let mut center = Center::new();
    assert_eq!(schedule(&mut center, "now", 0, at(1)), at(0));
    assert_eq!(center.take_ids(), ["now"]);
}

#[test]
fn a_request_that_a_wrong_clock_read_counts_from_its_step() {
    let mut center = Center::new();
    assert_eq!(schedule(&mut center, "1", 10, at(3_600_000)), at(11));
}

#[test]
fn rescheduling_by_a_delay_counts_from_when_it_was_read() {
    let mut center = Center::new();
    center.schedule(task("1", 1_000));
    let change = |delay| {
        let (topic, id) = (name("t"), name("1"));
        let shift = Some(Shift::In(Millis(delay)));
        Command::Reschedule(Box::new(Reschedule { topic, id, shift, priority: None, body: None }))
    };
    let moved = |due| Ok(Answer::Rescheduled(Ruling::Done(due)));
    assert_eq!(ask_read_at(&mut center, change(20), at(1)), moved(at(21)));
    assert_eq!(ask_read_at(&mut center, change(0), at(1)), moved(at(0)));
}

#[test]
fn a_sweep_gives_all_tasks_the_delay_that_was_asked_for_however_long_it_takes() {
    let mut center = Center::new();
    for id in 0..600 {
        center.schedule(task(&id.to_string(), 1_000).key(name("k")));
    }
    let sweep = Sweep {
        matching: Matching::Key { key: name("k"), topic: None },
        within: Scope::ALL,
        action: SweepAction::Shift(Shift::In(Millis(20))),
        dry_run: false,
    };
    let request = Request { by: None, command: Command::Sweep(Box::new(sweep)), reply: u64::MAX, read_at: at(1) };
    _ = step(&mut center, vec![request], at(0));
    for _ in 0..5 {
        center.pass(1);
    }
    assert!((0..600).all(|id| center.standing(&id.to_string()) == Some(Standing::Scheduled { at: at(21) })));
}

#[test]
fn a_lease_counts_from_the_hand_over() {
    let mut center = Center::new();
    center.put_queue("t", QueueSettings { lease: Millis(100), ..QueueSettings::default() });
    center.schedule(task("1", 0));
    let reserve = punctual_core::Reserve {
        queues: vec![name("t")],
        max: 1,
        lease: None,
        until: at(1_000),
        consumer: name("c"),
        choice: punctual_core::Choice::InTurn,
    };
    center.board.post(reserve, u64::MAX);
    center.tick(5);
    let lease = match step(&mut center, Vec::new(), at(45)) {
        Ok(Answer::Reserved(mut deliveries)) => {
            assert_eq!(deliveries[0].until, at(145), "what the hand-over takes is not the consumer's time");
            deliveries.remove(0).lease
        }
        other => panic!("{other:?}"),
    };
    let extend = Request {
        by: None,
        command: Command::Extend { lease, by: Some(Millis(200)) },
        reply: u64::MAX,
        read_at: at(6),
    };
    assert_eq!(step(&mut center, vec![extend], at(50)), Ok(Answer::Extended(at(250))));
}

#[test]
fn given_back_for_a_time_it_counts_from_when_that_was_read() {
    let mut center = Center::new();
    let retry = Retry { attempts: 5, backoff: Backoff::Fixed(Millis(40)), jitter_percent: 0 };
    center.put_queue("t", QueueSettings { lease: Millis(1_000), retry, ..QueueSettings::default() });
    center.schedule(task("1", 0));
    let mut give_back = |back| {
        let lease: Lease = center.take_one().lease;
        let now = center.now();
        let said =
            ask_read_at(&mut center, Command::Release { lease, back, priority: None, note: None }, now.plus(Millis(1)));
        center.pass(1_000);
        (said, now)
    };
    let (said, now) = give_back(Back::After(Millis(30)));
    assert_eq!(said, Ok(Answer::Released(Standing::Scheduled { at: now.plus(Millis(31)) })));
    let (said, now) = give_back(Back::Retry);
    assert_eq!(said, Ok(Answer::Released(Standing::Scheduled { at: now.plus(Millis(41)) })));
    let (said, _) = give_back(Back::After(Millis::ZERO));
    assert!(matches!(said, Ok(Answer::Released(Standing::Ready { .. }))), "{said:?}");
}

/// A step that hands over `id`, whose lease of a second counts from now as far as is known. It is not durable.
fn hand_over(center: &mut Center, id: &str) -> (Output<u64>, Delivery) {
    center.schedule(task(id, 0));
    center.put_queue("t", QueueSettings { lease: Millis(1_000), ..QueueSettings::default() });
    center.post_only(&["t"], 1, 0);
    let now = center.now();
    let output = step_without_commit(center, Vec::new(), now);
    let Some((_, Ok(Answer::Reserved(deliveries)))) = output.answers.first() else { panic!("{output:?}") };
    let delivery = deliveries[0].clone();
    (output, delivery)
}

#[test]
fn a_lease_that_was_handed_over_late_ends_so_much_later() {
    for restarts in [false, true] {
        let mut center = Center::new();
        let (output, delivery) = hand_over(&mut center, "1");
        assert_eq!(delivery.until, at(1_000));
        center.tick(300);
        center.shard.handed_over(output.step, Millis(300));
        commit(&mut center, output).unwrap();
        center.settle();
        if restarts {
            center.restart();
        }
        center.pass(999);
        let Some(Standing::Leased { until, .. }) = center.standing("1") else { panic!("it is held") };
        assert_eq!(until, at(1_300));
        center.pass(1);
        assert!(!matches!(center.standing("1"), Some(Standing::Leased { .. })), "its time is over");
        assert!(center.ask(Command::Acknowledge(delivery.lease)).is_err());
    }
}

#[test]
fn a_lease_does_not_end_before_its_delivery_is_handed_over() {
    let mut center = Center::new();
    let (output, delivery) = hand_over(&mut center, "1");
    let mut later = Vec::new();
    for _ in 0..3 {
        center.tick(700);
        let now = center.now();
        later.push(step_without_commit(&mut center, Vec::new(), now));
    }
    center.shard.handed_over(output.step, Millis(2_100));
    commit(&mut center, output).unwrap();
    later.into_iter().for_each(|output| _ = commit(&mut center, output));
    center.pass(999);
    assert_eq!(center.ask(Command::Acknowledge(delivery.lease)), Ok(Answer::Acknowledged));
}

#[test]
fn a_lease_that_was_over_when_word_of_its_hand_over_came_lapses_then() {
    let mut center = Center::new();
    let (output, _) = hand_over(&mut center, "1");
    center.tick(1_000);
    let now = center.now();
    let later = step_without_commit(&mut center, Vec::new(), now);
    assert!(later.wake <= at(1_001), "it is looked at again shortly");
    commit(&mut center, output).unwrap();
    _ = commit(&mut center, later);
    center.pass(1);
    assert!(!matches!(center.standing("1"), Some(Standing::Leased { .. })), "nobody was late");
}

#[test]
fn who_extends_a_lease_that_was_handed_over_late_gets_what_it_asked_for() {
    let mut center = Center::new();
    let (output, delivery) = hand_over(&mut center, "1");
    let extend = Command::Extend { lease: delivery.lease.clone(), by: Some(Millis(5_000)) };
    let later = vec![Request { by: None, command: extend, reply: 7, read_at: at(0) }];
    let later = step_without_commit(&mut center, later, at(0));
    center.shard.handed_over(output.step, Millis(300));
    commit(&mut center, output).unwrap();
    assert_eq!(commit(&mut center, later), Ok(Answer::Extended(at(5_000))));
    let Some(Standing::Leased { until, .. }) = center.standing("1") else { panic!("it is held") };
    assert_eq!(until, at(5_000));
}

#[test]
fn what_comes_after_the_deletion_of_its_queue_stays_though_it_was_due_before() {
    let mut center = Center::new();
    center.schedule(task("old", 0));
    center.tick(50);
    let new = Schedule { task: task("new", 10), id: name("new"), id_is_new: false };
    let commands = [Command::DeleteQueue { name: name("t"), force: true }, Command::Schedule(Box::new(new))];
    // It was read long before the step in which both are carried out.
    let requests = commands.map(|command| Request { by: None, command, reply: u64::MAX, read_at: at(30) }).into();
    let now = center.now();
    let _: Reply = step(&mut center, requests, now);
    center.settle();
    assert_eq!(center.take_ids(), ["new"]);
}

#[test]
fn a_delay_counts_from_the_latest_that_the_clock_can_have_shown() {
    // A clock that is known to ten milliseconds: the time of a step is the earliest that it can be.
    let mut center = Center::with(ShardConfig { clock_width: Millis(10), ..ShardConfig::default() });
    center.tick(50);
    assert_eq!(schedule(&mut center, "latest", 10, at(58)), at(68));
    // One that was read before the clock was set back does not wait for as long as that.
    assert_eq!(schedule(&mut center, "before", 10, at(3_600_000)), at(70));
}
