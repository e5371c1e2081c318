//! Facts about scheduling, firing, cancelling and rescheduling.

use crate::center::{Center, SHARD, START, at, name, task};
use punctual_core::{
    Ahead, Answer, Binding, Command, Ending, Form, Millis, Name, Reason, Refused, Reschedule, Ruling, ScheduleOutcome,
    Scope, Selected, Shift, Standing, Task, Timestamp, TopicSettings, Unit, view,
};

#[test]
fn a_task_is_handed_out_when_it_is_due_and_not_before() {
    let mut center = Center::new();
    center.schedule(task("a", 100));
    center.pass(99);
    assert!(center.take_ids().is_empty());
    center.pass(1);
    let delivery = center.take_one();
    assert_eq!((delivery.due, delivery.fired_at, delivery.attempt), (at(100), at(100), 1));
    assert_eq!(delivery.body, "a");
}

#[test]
fn a_waiting_consumer_gets_the_task_in_the_step_in_which_it_fires() {
    let mut center = Center::new();
    let consumer = center.wait_for(&["t"], 1, 1_000, "c");
    center.schedule(task("a", 100));
    center.pass(99);
    assert!(center.given(consumer).is_none());
    center.pass(1);
    assert_eq!(center.given(consumer).unwrap()[0].until, at(100 + 30_000));
}

#[test]
fn a_task_is_never_early_when_the_clock_steps_back() {
    let mut center = Center::new();
    center.schedule(task("a", 100));
    center.set_clock(Timestamp::from_millis(START - 50_000));
    center.pass(50_099);
    assert!(center.take_ids().is_empty());
    center.pass(1);
    assert_eq!(center.take_ids(), ["a"]);
}

#[test]
fn a_delay_of_centuries_is_kept_to_the_millisecond() {
    let centuries = 300 * 365 * 24 * 3_600_000;
    let mut center = Center::new();
    center.schedule(task("a", centuries));
    center.pass(centuries - 1);
    assert!(center.take_ids().is_empty());
    center.pass(1);
    assert_eq!(center.take_ids(), ["a"]);
}

#[test]
fn the_same_id_twice_is_one_task_through_all_its_states() {
    let mut center = Center::new();
    let existed = |center: &mut Center| match center.schedule(task("a", 5)).outcome {
        ScheduleOutcome::Existed(standing) => standing,
        other => panic!("{other:?}"),
    };
    assert_eq!(center.schedule(task("a", 100)).outcome, ScheduleOutcome::Created { due: at(100) });
    assert_eq!(existed(&mut center), Standing::Scheduled { at: at(100) });
    center.pass(100);
    assert_eq!(existed(&mut center), Standing::Ready { since: at(100) });
    let delivery = center.take_one();
    let until = at(30_100);
    assert_eq!(existed(&mut center), Standing::Leased { queue: name("t"), holder: name("consumer"), until });
    center.acknowledge(&delivery.lease).unwrap();
    assert_eq!(existed(&mut center), Standing::Finished { ending: Ending::Done, at: at(100) });
    center.pass(24 * 3_600_000);
    assert!(matches!(center.schedule(task("a", 5)).outcome, ScheduleOutcome::Created { .. }));
}

#[test]
fn a_task_that_was_never_handed_out_can_be_replaced() {
    let mut center = Center::new();
    center.schedule(task("a", 100));
    let replacement = Task { replace: true, body: "new".into(), ..task("a", 10) };
    assert_eq!(center.schedule(replacement.clone()).outcome, ScheduleOutcome::Replaced { due: at(10) });
    center.pass(10);
    assert_eq!(center.take_one().body, "new");
    assert!(matches!(center.schedule(replacement).outcome, ScheduleOutcome::Existed(Standing::Leased { .. })));
}

#[test]
fn cancelling_says_exactly_what_happened() {
    let mut center = Center::new();
    assert_eq!(center.cancel("a"), Ruling::Unknown);
    center.schedule(task("a", 100));
    assert_eq!(center.cancel("a"), Ruling::Done(()));
    assert_eq!(center.cancel("a"), Ruling::TooLate(Standing::Finished { ending: Ending::Cancelled, at: at(0) }));
    center.schedule(task("b", 0));
    let delivery = center.take_one();
    let leased = Standing::Leased { queue: name("t"), holder: name("consumer"), until: delivery.until };
    assert_eq!(center.cancel("b"), Ruling::TooLate(leased));
    center.ask(Command::Reject { lease: delivery.lease, note: None, priority: None }).unwrap();
    assert_eq!(center.cancel("b"), Ruling::TooLate(Standing::Dead { reason: Reason::Rejected, at: at(0) }));
    center.pass(1_000);
    assert!(center.take_ids().is_empty());
}

#[test]
fn rescheduling_moves_a_task_to_a_time_by_a_delay_or_by_a_shift() {
    let mut center = Center::new();
    center.schedule(task("a", 100));
    let mut shift = |shift| {
        let change = Reschedule { topic: name("t"), id: name("a"), shift: Some(shift), priority: None, body: None };
        center.ask(Command::Reschedule(Box::new(change))).unwrap()
    };
    let done = |millis| Answer::Rescheduled(Ruling::Done(at(millis)));
    assert_eq!(shift(Shift::To(at(700))), done(700));
    assert_eq!(shift(Shift::By(-200)), done(500));
    assert_eq!(shift(Shift::In(Millis(50))), done(50));
    assert_eq!(shift(Shift::By(-9_999)), done(0), "the past is due now");
    assert_eq!(center.take_ids(), ["a"]);
}

#[test]
fn rescheduling_changes_priority_and_body_and_keeps_headers() {
    let mut center = Center::new();
    center.schedule(task("a", 0));
    let headers = vec![("trace".to_owned(), "1".to_owned())];
    center.schedule(Task { headers: headers.clone(), ..task("b", 0) });
    let change = Reschedule {
        topic: name("t"),
        id: name("b"),
        shift: None,
        priority: Some(1),
        body: Some((Form::Json, "new".into())),
    };
    center.ask(Command::Reschedule(Box::new(change))).unwrap();
    let delivery = center.take_one();
    assert_eq!((delivery.id.as_str(), delivery.priority, &delivery.headers), ("b", 1, &headers));
    assert_eq!((delivery.form, delivery.body.as_ref()), (Form::Json, &b"new"[..]));
}

#[test]
fn a_body_comes_back_in_the_form_it_was_handed_in() {
    let mut center = Center::new();
    for (id, form) in [("a", Form::Bytes), ("b", Form::Text), ("c", Form::Json)] {
        center.schedule(task(id, 0).form(form));
        center.restart();
        let delivery = center.take_one();
        assert_eq!((delivery.form, delivery.body.as_ref()), (form, id.as_bytes()));
        let seen = view::get(&*center.store, SHARD, &name("t"), &name(id), center.now()).unwrap().unwrap();
        assert_eq!(seen.form, form);
        center.acknowledge(&delivery.lease).unwrap();
        let selected = Selected { topic: name("t"), id: name(id), queue: None };
        center.ask(Command::Replay(selected)).unwrap();
        assert_eq!(center.take_one().form, form, "a replay keeps it");
    }
}

#[test]
fn order_is_by_priority_then_due_time_then_arrival() {
    let mut center = Center::new();
    for (id, delay, priority) in [("d", 5, 9), ("c", 9, 1), ("a", 3, 1), ("b", 3, 1), ("e", 7, 9)] {
        center.schedule(task(id, delay).priority(priority));
    }
    center.pass(10);
    assert_eq!(center.take_ids(), ["a", "b", "c", "d", "e"]);
}

#[test]
fn consumers_that_have_waited_longest_come_first() {
    let mut center = Center::new();
    let first = center.wait_for(&["t", "u"], 1, 1_000, "first");
    let second = center.wait_for(&["t"], 1, 1_000, "second");
    center.schedule(task("a", 5));
    center.pass(5);
    assert_eq!(center.given(first).unwrap()[0].id, name("a"));
    assert!(center.given(second).is_none());
    center.schedule(task("b", 5));
    center.pass(5);
    assert_eq!(center.given(second).unwrap()[0].id, name("b"));
}

#[test]
fn of_several_queues_none_starves() {
    let mut center = Center::new();
    for number in 0..4 {
        center.schedule(task(&format!("t{number}"), 0).priority(1));
        let other = Task { topic: name("u"), ..task(&format!("u{number}"), 0) };
        center.schedule(other.priority(9));
    }
    let mut queues = Vec::new();
    for _ in 0..4 {
        let consumer = center.wait_for(&["t", "u"], 1, 0, "c");
        queues.push(center.given(consumer).unwrap()[0].queue.to_string());
    }
    assert_eq!(queues, ["t", "u", "t", "u"]);
}

#[test]
fn a_consumer_is_answered_empty_when_its_time_is_over() {
    let mut center = Center::new();
    let consumer = center.wait_for(&["t"], 1, 50, "c");
    center.pass(49);
    assert!(center.given(consumer).is_none());
    center.pass(1);
    assert_eq!(center.given(consumer), Some(vec![]));
}

#[test]
fn what_is_too_large_is_refused_with_the_limit() {
    let mut center = Center::new();
    let limit = 1 << 20;
    assert!(center.try_schedule(Task { body: vec![0; limit].into(), ..task("a", 0) }).is_ok());
    let refused = center.try_schedule(Task { body: vec![0; limit + 1].into(), ..task("b", 0) });
    assert_eq!(refused, Err(Refused::BodyTooLarge { bytes: limit + 1, limit }));
    assert_eq!(center.standing("b"), None);
}

#[test]
fn everything_is_there_after_a_restart() {
    let mut center = Center::new();
    center.schedule(task("later", 1_000));
    center.schedule(task("ready", 0).priority(1));
    center.schedule(task("leased", 0).priority(0));
    let delivery = center.take_one();
    center.restart();
    assert_eq!(center.standing("leased"), center.standing("leased"));
    center.acknowledge(&delivery.lease).unwrap();
    assert_eq!(center.take_ids(), ["ready"]);
    center.pass(1_000);
    assert_eq!(center.take_ids(), ["later"]);
}

#[test]
fn a_restart_on_another_day_hands_out_what_is_overdue_and_nothing_else() {
    let mut center = Center::new();
    center.schedule(task("a", 3_600_000));
    center.schedule(task("b", 48 * 3_600_000));
    center.set_clock(at(24 * 3_600_000));
    center.restart();
    assert_eq!(center.take_ids(), ["a"]);
}

#[test]
fn the_forecast_says_what_falls_due_when() {
    let mut center = Center::new();
    let minute = 60_000;
    let to_the_minute = minute - START % minute;
    for (id, delay) in [("a", to_the_minute), ("b", to_the_minute + minute - 1), ("c", to_the_minute + minute)] {
        center.schedule(task(id, delay));
    }
    center.schedule(task("far", 400 * 24 * 60 * minute));
    let mut forecast = |unit, slots| match center.ask(Command::Forecast { unit, slots }).unwrap() {
        Answer::Forecast(slots) => slots.into_iter().map(|(_, count)| count).collect::<Vec<u64>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(forecast(Unit::Minute, 4), [0, 2, 1, 0]);
    assert_eq!(forecast(Unit::Hour, 2), [3, 0]);
    let days = forecast(Unit::Day, 402);
    assert_eq!((days[0], days.iter().sum::<u64>()), (3, 4));
}

#[test]
fn what_was_scheduled_a_year_ahead_is_counted_by_the_minute_when_its_month_comes() {
    let mut center = Center::new();
    let day = 24 * 3_600_000;
    center.schedule(task("a", 365 * day));
    center.pass(340 * day);
    let minutes = (25 * day / 60_000) as usize + 2;
    match center.ask(Command::Forecast { unit: Unit::Minute, slots: minutes }).unwrap() {
        Answer::Forecast(slots) => assert_eq!(slots.iter().map(|(_, count)| count).sum::<u64>(), 1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_stored_when_dots_were_names_is_still_read_handed_out_and_deleted() {
    let (one, two) = (Name::stored("."), Name::stored(".."));
    let mut center = Center::new();
    let feeds = Some(vec![Binding::all(name("t")), Binding::all(two.clone())]);
    let settings = Box::new(TopicSettings { feeds, ..TopicSettings::default() });
    center.ask(Command::PutTopic { name: two.clone(), settings }).unwrap();
    center.schedule(Task { key: Some(two.clone()), ..Task::new(two.clone(), "body").id(one.clone()) });
    center.restart();
    let delivery = center.take_one();
    assert_eq!((&delivery.topic, &delivery.id, delivery.key.as_ref()), (&two, &one, Some(&two)));
    center.ask(Command::Acknowledge(delivery.lease)).unwrap();
    center.restart();
    let task = view::get(&*center.store, SHARD, &two, &one, center.now()).unwrap().expect("the other delivery is open");
    assert_eq!(task.parts[0].queue.as_ref(), Some(&two));
    assert!(center.shard.counts().queues.iter().any(|queue| queue.name == two && queue.ready == 1));
    let deleted = center.ask(Command::DeleteTopic { name: two.clone(), force: true });
    assert!(matches!(deleted, Ok(Answer::Deleted(1..))), "{deleted:?}");
    center.restart();
    assert!(center.shard.counts().topics.iter().all(|topic| topic.name != two));
}

#[test]
fn a_forecast_of_some_topics_counts_theirs_and_leaves_out_what_it_did_not_reach() {
    let mut center = Center::new();
    let minute = 60_000;
    let to_the_minute = minute - START % minute;
    for number in 0..30 {
        let topic = name(["own", "other", "other"][number % 3]);
        let delay = to_the_minute + number as u64 / 10 * minute;
        center.schedule(Task { topic, ..task(&number.to_string(), delay) });
    }
    center.pass(1);
    let counted = |within: &Scope, budget: usize| {
        let mut ahead = Ahead::new(center.now(), Unit::Minute, 4);
        ahead.count(&*center.store, SHARD, (within, None), budget).unwrap();
        let (slots, until) = ahead.into_slots();
        (slots.into_iter().map(|(_, count)| count).collect::<Vec<u64>>(), until)
    };
    let own = Scope::of(["own".to_owned()]);
    assert_eq!(counted(&Scope::ALL, 1_000), (vec![0, 10, 10, 10], None));
    assert_eq!(counted(&own, 1_000), (vec![0, 4, 3, 3], None));
    assert_eq!(counted(&own, 25), (vec![0, 4, 3], Some(at(to_the_minute + 2 * minute))));
    assert_eq!(counted(&own, 5).0, [0], "a slot of which not all was counted is left out");
    assert_eq!(counted(&own, 0).0, [0u64; 0]);
}

#[test]
fn a_forecast_tells_the_topics_with_the_most_apart() {
    let mut center = Center::new();
    let minute = 60_000;
    let to_the_minute = minute - START % minute;
    for (topic, number) in [("few", 1), ("most", 5), ("some", 3), ("one", 1)] {
        for id in 0..number {
            let delay = to_the_minute + id * minute;
            center.schedule(Task { topic: name(topic), ..task(&format!("{topic}-{id}"), delay) });
        }
    }
    center.pass(1);
    let counted = |within: &Scope, topic: Option<&str>| {
        let mut ahead = Ahead::new(center.now(), Unit::Minute, 4);
        ahead.count(&*center.store, SHARD, (within, topic.map(name).as_ref()), 1_000).unwrap();
        ahead
    };
    let (most, some) = ((Some(name("most")), vec![0, 1, 1, 1]), (Some(name("some")), vec![0, 1, 1, 1]));
    let others = (None, vec![0, 2, 0, 0]);
    assert_eq!(counted(&Scope::ALL, None).top_topics(2), [most, some.clone(), others]);
    let slots = counted(&Scope::ALL, Some("some")).into_slots().0;
    assert_eq!(slots.into_iter().map(|(_, due)| due).collect::<Vec<u64>>(), [0, 1, 1, 1]);
    assert_eq!(counted(&Scope::of(["s*".to_owned()]), None).top_topics(9), [some], "others are not told of");
    assert!(counted(&Scope::of(["s*".to_owned()]), Some("most")).top_topics(9).is_empty());
}

#[test]
fn a_herd_that_is_too_large_to_be_counted_shows_whose_it_is() {
    let mut center = Center::new();
    let minute = 60_000;
    let to_the_minute = minute - START % minute;
    for id in 0..50 {
        center.schedule(Task { topic: name("herd"), ..task(&id.to_string(), to_the_minute) });
    }
    center.schedule(Task { topic: name("later"), ..task("later", to_the_minute + 2 * minute) });
    center.pass(1);
    let mut ahead = Ahead::new(center.now(), Unit::Minute, 4);
    ahead.count(&*center.store, SHARD, (&Scope::ALL, None), 20).unwrap();
    assert_eq!(ahead.top_topics(9), [(Some(name("herd")), vec![0, 20])]);
    let (slots, until) = ahead.into_slots();
    assert_eq!((slots.len(), until), (1, Some(at(to_the_minute))), "what is not whole is not told as if it were");
}

#[test]
fn a_cancellation_is_taken_back_and_the_task_waits_for_its_old_time() {
    let mut center = Center::new();
    let restore = |id: &str| Command::Restore { topic: name("t"), id: name(id) };
    for id in ["a", "b"] {
        center.schedule(Task { priority: Some(3), ..task(id, 1_000) });
        assert_eq!(center.cancel(id), Ruling::Done(()));
    }
    center.restart();
    assert_eq!(center.ask(restore("a")), Ok(Answer::Replayed(Standing::Scheduled { at: at(1_000) })));
    assert_eq!(center.ask(restore("a")), Err(Refused::NothingThere), "it is not cancelled any more");
    center.pass(999);
    assert!(center.take_ids().is_empty());
    center.pass(1);
    let delivery = center.take_one();
    assert_eq!((&*delivery.id, delivery.due, delivery.priority, delivery.attempt), ("a", at(1_000), 3, 1));
    assert_eq!(center.ask(restore("a")), Err(Refused::NothingThere), "it is with a consumer");
    center.pass(500);
    let ready = Standing::Ready { since: center.now() };
    assert_eq!(center.ask(restore("b")), Ok(Answer::Replayed(ready)), "its time has come meanwhile");
    assert_eq!(center.take_one().due, at(1_000), "it is as late as it is");
}
