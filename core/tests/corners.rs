//! Facts that stand where two things meet: what random acts against the model have brought to light,
//! each told as a story of its own.

use crate::center::{Center, SHARD, at, name, task};
use bytes::Bytes;
use punctual_core::store::{Batch, Store};
use punctual_core::view::{self, DeliveryView};
use punctual_core::{
    Answer, Back, Backoff, Binding, Command, Delivery, Ending, Form, Lease, Matching, Millis, Name, Overflow,
    QueueSettings, Reason, Reply, Request, Reschedule, Retry, Ruling, Schedule, Scope, Selected, ShardConfig, Shift,
    Standing, Sweep, SweepAction, Swept, Task, TimeRange, TopicSettings, Unit,
};

/// Leases of 100 ms and three attempts, 50 ms apart.
fn queue() -> QueueSettings {
    let retry = Retry { attempts: 3, backoff: Backoff::Fixed(Millis(50)), jitter_percent: 0 };
    QueueSettings { lease: Millis(100), retry, ..QueueSettings::default() }
}

fn feeds(queues: &[&str]) -> TopicSettings {
    let bindings = queues.iter().map(|queue| Binding::all(name(queue)));
    TopicSettings { feeds: Some(bindings.collect()), ..TopicSettings::default() }
}

/// A center in which topic `t` feeds queues `a` and `b`.
fn broadcasting() -> Center {
    let mut center = Center::new();
    center.put_queue("a", queue());
    center.put_queue("b", queue());
    center.put_topic("t", feeds(&["a", "b"]));
    center
}

fn with_ttl(task: Task, millis: u64) -> Task {
    Task { ttl: Some(Millis(millis)), ..task }
}

fn of_topic(topic: &str, task: Task) -> Task {
    Task { topic: name(topic), ..task }
}

fn schedule(mut task: Task) -> Command {
    let id = task.id.take().unwrap();
    Command::Schedule(Box::new(Schedule { task, id, id_is_new: false }))
}

fn cancel(id: &str) -> Command {
    Command::Cancel { topic: name("t"), id: name(id) }
}

fn delete_queue(queue: &str, force: bool) -> Command {
    Command::DeleteQueue { name: name(queue), force }
}

fn part(queue: &str) -> Selected {
    Selected { topic: name("t"), id: name("1"), queue: Some(name(queue)) }
}

fn reject(center: &mut Center, lease: &Lease) {
    let reject = Command::Reject { lease: lease.clone(), note: None, priority: None };
    assert_eq!(center.ask(reject), Ok(Answer::Rejected));
}

fn release(center: &mut Center, lease: &Lease, back: Back) {
    assert!(center.ask(Command::Release { lease: lease.clone(), back, priority: None, note: None }).is_ok());
}

fn take_from(center: &mut Center, queue: &str) -> Delivery {
    center.take_from(queue, 1).pop().expect("something is ready")
}

/// Where the delivery of task `1` in a queue stands.
fn delivery(center: &Center, queue: &str) -> Option<DeliveryView> {
    let task = view::get(&*center.store, SHARD, &name("t"), &name("1"), center.now()).unwrap()?;
    task.parts.into_iter().find(|part| part.queue == Some(name(queue)))
}

/// Carries out commands in one step, whose batch is left to the caller.
fn one_step(center: &mut Center, commands: Vec<Command>) -> (u64, Option<Batch>, Vec<Reply>) {
    let requests = commands
        .into_iter()
        .map(|command| Request { by: None, command, reply: u64::MAX, read_at: center.now() })
        .collect();
    let output = center.shard.step(center.now(), requests, &*center.store, &mut center.board).unwrap();
    (output.step, output.batch, output.answers.into_iter().map(|(_, reply)| reply).collect())
}

fn commit(center: &mut Center, step: u64, batch: Option<Batch>) {
    assert!(center.store.commit(batch.into_iter().collect()).unwrap().iter().all(Result::is_ok));
    center.shard.committed(step);
}

/// Carries out commands in one step and lets everything follow that does.
fn ask_all(center: &mut Center, commands: Vec<Command>) -> Vec<Reply> {
    let (step, batch, replies) = one_step(center, commands);
    commit(center, step, batch);
    center.settle();
    replies
}

#[test]
fn a_task_that_was_replaced_and_cancelled_in_one_step_does_not_come_back() {
    let mut center = Center::new();
    center.put_topic("t", TopicSettings { history: Millis::ZERO, ..TopicSettings::default() });
    center.schedule(task("1", 0));
    let other = Task { replace: true, ..task("1", 10) };
    ask_all(&mut center, vec![schedule(other), cancel("1")]);
    assert_eq!(center.standing("1"), None);
    center.restart();
    assert!(center.take_ids().is_empty());
}

#[test]
fn counts_and_forecast_are_right_in_the_middle_of_a_step() {
    let mut center = Center::new();
    center.schedule(task("1", 0));
    let forecast = Command::Forecast { unit: Unit::Minute, slots: 1 };
    let replies = ask_all(&mut center, vec![schedule(task("2", 0)), cancel("1"), Command::Total, forecast]);
    let Ok(Answer::Total(total)) = &replies[2] else { panic!("{replies:?}") };
    assert_eq!((total.waiting, total.ready, total.history), (1, 1, 1));
    let Ok(Answer::Forecast(slots)) = &replies[3] else { panic!("{replies:?}") };
    assert_eq!(slots[0].1, 1);
}

#[test]
fn a_queue_that_is_emptied_by_each_consumer_does_not_starve_the_others() {
    let mut center = Center::new();
    for id in ["1", "2", "3"] {
        center.schedule(of_topic("b", task(id, 0)));
    }
    let mut served: Vec<Name> = Vec::new();
    for id in ["1", "2", "3", "4"] {
        // Whenever a consumer comes there is one new task in `a`.
        center.schedule(of_topic("a", task(id, 0)));
        let consumer = center.wait_for(&["a", "b"], 1, 0, "consumer");
        served.push(center.given(consumer).unwrap()[0].queue.clone());
    }
    assert_eq!(served, ["a", "b", "a", "b"].map(name));
}

#[test]
fn a_consumer_is_not_sent_away_while_what_it_gets_is_being_read() {
    let mut center = Center::new();
    center.schedule(with_ttl(task("1", 0), 1));
    center.pass(2);
    let consumer = center.wait_for(&["t"], 1, 10, "consumer");
    // In one step its wait is over and the task is ready again, but its body is only in the store.
    let replay = Command::Replay(Selected { topic: name("t"), id: name("1"), queue: None });
    center.tick(10);
    let replies = ask_all(&mut center, vec![replay]);
    assert_eq!(replies, [Ok(Answer::Replayed(Standing::Ready { since: center.now() }))]);
    assert_eq!(center.given(consumer).unwrap().len(), 1);
}

#[test]
fn what_changes_after_it_has_left_memory_leaves_no_timer_behind() {
    let mut center = Center::with(ShardConfig { cache: 0, ..ShardConfig::default() });
    center.schedule(task("cancelled", 5_000));
    center.schedule(task("moved", 6_000));
    center.schedule(task("unchanged", 7_000));
    assert_eq!(center.begin_wake(), at(5_000));
    assert_eq!(center.cancel("cancelled"), Ruling::Done(()));
    assert_eq!(center.begin_wake(), at(6_000));
    let shift = Some(Shift::To(at(20_000)));
    let change = Reschedule { topic: name("t"), id: name("moved"), shift, priority: None, body: None };
    center.ask(Command::Reschedule(Box::new(change))).unwrap();
    assert_eq!(center.begin_wake(), at(7_000));
    center.pass(7_000);
    assert_eq!(center.take_ids(), ["unchanged"]);
    center.pass(13_000);
    assert_eq!(center.take_ids(), ["moved"]);
}

#[test]
fn equal_times_fire_in_the_order_of_arrival_whoever_set_the_timer_first() {
    for restarts in [false, true] {
        let mut center = Center::new();
        center.put_queue("t", QueueSettings { max_length: Some(1), overflow: Overflow::Refuse, ..queue() });
        center.schedule(task("early", 5));
        center.schedule(task("late", 10));
        let change =
            Reschedule { topic: name("t"), id: name("early"), shift: Some(Shift::By(5)), priority: None, body: None };
        assert_eq!(center.ask(Command::Reschedule(Box::new(change))), Ok(Answer::Rescheduled(Ruling::Done(at(10)))));
        if restarts {
            center.restart();
        }
        center.pass(10);
        assert_eq!(center.take_ids(), ["early"], "restarted: {restarts}");
    }
}

#[test]
fn a_delivery_that_waits_for_its_retry_outlives_its_queue() {
    let mut center = Center::new();
    center.put_queue("t", queue());
    center.schedule(task("1", 0));
    let lease = center.take_one().lease;
    release(&mut center, &lease, Back::Retry);
    assert_eq!(center.ask(delete_queue("t", false)), Ok(Answer::Deleted(0)));
    center.put_topic("t", feeds(&["elsewhere"]));
    center.pass(50);
    assert_eq!(take_from(&mut center, "elsewhere").attempt, 2);
}

#[test]
fn what_dies_after_its_queue_was_deleted_is_no_dead_letter_of_the_next_queue_of_that_name() {
    let mut center = Center::new();
    center.put_queue("t", queue());
    center.schedule(with_ttl(task("1", 0), 20));
    let lease = center.take_one().lease;
    release(&mut center, &lease, Back::Retry);
    assert_eq!(center.ask(delete_queue("t", false)), Ok(Answer::Deleted(0)));
    center.put_topic("t", feeds(&["elsewhere"]));
    center.pass(21);
    assert_eq!(center.standing("1"), Some(Standing::Dead { reason: Reason::Expired, at: at(21) }));
    center.put_queue("t", queue());
    assert_eq!((center.queue_counts("t"), center.queue_counts("elsewhere")), ((0, 0, 0), (0, 0, 1)));
}

#[test]
fn a_new_body_reaches_a_broadcast_delivery_that_was_given_back() {
    let mut center = broadcasting();
    center.schedule(task("1", 0));
    let lease = take_from(&mut center, "a").lease;
    release(&mut center, &lease, Back::After(Millis::ZERO));
    let body = Some((Form::Text, Bytes::from_static(b"new")));
    let change = Reschedule { topic: name("t"), id: name("1"), shift: None, priority: None, body };
    assert!(center.ask(Command::Reschedule(Box::new(change))).is_ok());
    for queue in ["a", "b"] {
        let delivery = take_from(&mut center, queue);
        assert_eq!((delivery.form, delivery.body.as_ref()), (Form::Text, &b"new"[..]));
    }
}

#[test]
fn a_dead_delivery_of_a_broadcast_task_is_sent_on_until_word_comes_also_after_a_restart() {
    let mut center = broadcasting();
    center.put_queue("a", QueueSettings { dead_letter: Some(name("graves")), ..queue() });
    center.schedule(task("1", 0));
    let lease = take_from(&mut center, "a").lease;
    reject(&mut center, &lease);
    for restarts in [false, true, true] {
        center.forwards.clear();
        center.pass(60_000);
        assert_eq!(center.forwards.len(), 1, "restarted: {restarts}");
        if restarts {
            center.restart();
        }
    }
    // Down for longer than word is waited for: it is overdue when the shard is opened.
    center.forwards.clear();
    center.tick(120_000);
    center.restart();
    assert_eq!(center.forwards.len(), 1);
    assert_eq!(center.forwards[0].task.body, "1");
}

#[test]
fn a_delivery_ends_for_its_task_when_its_queue_is_deleted_before_its_death_is_durable() {
    let mut center = broadcasting();
    let (scheduled, task, _) = one_step(&mut center, vec![schedule(with_ttl(task("1", 0), 1))]);
    center.tick(2);
    let mut on_their_way = vec![one_step(&mut center, vec![])];
    on_their_way.push(one_step(&mut center, vec![delete_queue("b", true)]));
    on_their_way.push(one_step(&mut center, vec![]));
    // The task is durable and leaves memory; the deaths of its deliveries are not.
    commit(&mut center, scheduled, task);
    on_their_way.push(one_step(&mut center, vec![]));
    for (step, batch, _) in on_their_way {
        commit(&mut center, step, batch);
    }
    center.settle();
    let spread = Standing::Spread { open: vec![name("a")], finished: vec![name("b")] };
    assert_eq!(center.standing("1"), Some(spread));
    assert_eq!(center.ask(Command::Purge(part("a"))), Ok(Answer::Purged));
    assert_eq!(center.standing("1"), Some(Standing::Finished { ending: Ending::Purged, at: at(2) }));
}

#[test]
fn a_sweep_leaves_alone_what_dies_after_it_began() {
    let mut center = broadcasting();
    let retry = Retry { attempts: 1, ..queue().retry };
    center.put_queue("a", QueueSettings { retry, ..queue() });
    center.schedule(task("1", 0));
    take_from(&mut center, "a");
    center.tick(99);
    let matching = Matching::Dead { topic: None, queue: None, died: TimeRange::ALL };
    let purge = Sweep { matching, within: Scope::ALL, action: SweepAction::Purge, dry_run: false };
    let (asked, batch, _) = one_step(&mut center, vec![Command::Sweep(Box::new(purge))]);
    commit(&mut center, asked, batch);
    let mut answers = Vec::new();
    for _ in 0..2 {
        center.tick(1);
        let (step, batch, replies) = one_step(&mut center, vec![]);
        commit(&mut center, step, batch);
        answers.extend(replies);
    }
    assert_eq!(answers, [Ok(Answer::Swept(Swept::default()))]);
    assert_eq!(delivery(&center, "a").unwrap().death.unwrap().reason, Reason::OutOfAttempts);
}

#[test]
fn a_dead_delivery_is_replayed_to_its_own_queue_alone() {
    let mut center = broadcasting();
    center.schedule(task("1", 0));
    let lease = take_from(&mut center, "a").lease;
    reject(&mut center, &lease);
    assert_eq!(delivery(&center, "a").unwrap().standing, Standing::Dead { reason: Reason::Rejected, at: at(0) });
    assert_eq!(center.ask(Command::Replay(part("a"))), Ok(Answer::Replayed(Standing::Ready { since: center.now() })));
    assert_eq!(take_from(&mut center, "a").attempt, 1);
    assert_eq!(center.queue_counts("b"), (1, 0, 0));
}

#[test]
fn a_task_is_done_with_its_last_delivery_if_any_was() {
    let mut center = broadcasting();
    center.schedule(task("1", 0));
    let (a, b) = (take_from(&mut center, "a").lease, take_from(&mut center, "b").lease);
    reject(&mut center, &a);
    assert_eq!(center.acknowledge(&b), Ok(Answer::Acknowledged));
    assert!(matches!(center.standing("1"), Some(Standing::Spread { .. })));
    assert_eq!(center.ask(Command::Purge(part("a"))), Ok(Answer::Purged));
    assert_eq!(center.standing("1"), Some(Standing::Finished { ending: Ending::Done, at: at(0) }));
}

#[test]
fn a_full_queue_does_not_keep_a_broadcast_task_from_the_others() {
    let mut center = broadcasting();
    center.put_queue("a", QueueSettings { max_length: Some(1), ..queue() });
    center.schedule(Task { topic: name("a"), ..task("before", 0) });
    center.schedule(task("1", 1));
    center.pass(1);
    assert_eq!(delivery(&center, "a").unwrap().death.unwrap().reason, Reason::PushedOut);
    assert_eq!(take_from(&mut center, "b").id, name("1"));
}

#[test]
fn dead_letters_in_a_circle_come_to_rest() {
    let mut center = Center::new();
    center.put_queue("t", QueueSettings { dead_letter: Some(name("t")), max_length: Some(1), ..queue() });
    center.schedule(task("before", 0));
    center.schedule(task("1", 1));
    center.pass(1);
    for _ in 0..40 {
        for forward in std::mem::take(&mut center.forwards) {
            center.schedule(forward.task.after(Millis(1)).id(forward.id));
            assert!(
                center.ask(Command::Forwarded { key: forward.key, journey: forward.journey, refused: None }).is_ok()
            );
        }
        center.pass(1);
    }
    assert_eq!(center.shard.counts().topics[0].dead, 1);
    assert!(center.forwards.is_empty());
}

#[test]
fn retention_that_is_shortened_counts_for_what_is_there() {
    let mut center = Center::new();
    center.put_queue("t", queue());
    center.schedule(task("1", 0));
    let lease = center.take_one().lease;
    reject(&mut center, &lease);
    center.pass(50);
    center.put_queue("t", QueueSettings { dead_retention: Some(Millis(20)), ..queue() });
    assert_eq!(center.standing("1"), None);
}

#[test]
fn the_forecast_is_right_at_once_after_a_long_sleep() {
    let mut center = Center::new();
    let day = 24 * 60 * 60_000;
    for days in 40..50u64 {
        center.schedule(task(&days.to_string(), days * day));
    }
    center.pass(39 * day);
    let Ok(Answer::Forecast(hours)) = center.ask(Command::Forecast { unit: Unit::Hour, slots: 24 * 12 }) else {
        panic!("a forecast is answered")
    };
    assert_eq!(hours.iter().map(|(_, count)| count).sum::<u64>(), 10);
}
