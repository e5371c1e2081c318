//! Facts about topics that feed other queues than their own, or several.

use crate::center::{Center, SHARD, at, name, task};
use punctual_core::{
    Answer, Back, Binding, Command, Ending, Form, Millis, Pattern, Reason, Reschedule, Ruling, Schedule, Selected,
    ShardConfig, Shift, Standing, Task, TopicSettings, view,
};

fn feeds(bindings: &[(&str, &str)]) -> TopicSettings {
    let binding = |(queue, pattern): &(&str, &str)| {
        let pattern = if *pattern == "all" { Pattern::All } else { Pattern::Words((*pattern).to_owned()) };
        Binding { queue: name(queue), pattern }
    };
    TopicSettings { feeds: Some(bindings.iter().map(binding).collect()), ..TopicSettings::default() }
}

fn broadcast(center: &mut Center) {
    center.put_topic("t", feeds(&[("mail", "all"), ("stock", "all")]));
    center.schedule(task("a", 10));
    center.pass(10);
}

#[test]
fn each_queue_has_a_delivery_of_its_own_with_the_same_body() {
    let mut center = Center::new();
    broadcast(&mut center);
    let mail = center.take_from("mail", 9);
    let stock = center.take_from("stock", 9);
    assert_eq!((mail.len(), stock.len()), (1, 1));
    assert_eq!((&mail[0].body, &stock[0].body), (&"a".into(), &"a".into()));
    center.acknowledge(&mail[0].lease).unwrap();
    let spread = Standing::Spread { open: vec![name("stock")], finished: vec![name("mail")] };
    assert_eq!(center.standing("a"), Some(spread));
    center.acknowledge(&stock[0].lease).unwrap();
    assert_eq!(center.standing("a"), Some(Standing::Finished { ending: Ending::Done, at: at(10) }));
}

#[test]
fn bindings_are_looked_up_when_the_task_fires() {
    let mut center = Center::new();
    center.schedule(task("a", 10));
    center.put_topic("t", feeds(&[("other", "all")]));
    center.pass(10);
    assert!(center.take(9).is_empty());
    assert_eq!(center.take_from("other", 9).len(), 1);
}

#[test]
fn patterns_decide_by_routing_key() {
    let mut center = Center::new();
    center.put_topic("t", feeds(&[("exact", "order.paid"), ("star", "order.*"), ("hash", "#.paid")]));
    for (id, key) in [("1", "order.paid"), ("2", "order.late"), ("3", "a.b.paid")] {
        center.schedule(Task { routing_key: Some(name(key)), ..task(id, 0) });
    }
    let mut ids = |queue: &str| {
        let deliveries = center.take_from(queue, 9);
        deliveries.into_iter().map(|delivery| delivery.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids("exact"), ["1"]);
    assert_eq!(ids("star"), ["1", "2"]);
    assert_eq!(ids("hash"), ["1", "3"]);
}

#[test]
fn a_task_that_no_queue_takes_is_a_dead_letter_of_its_topic() {
    let mut center = Center::new();
    center.put_topic("t", feeds(&[("paid", "order.paid")]));
    center.schedule(Task { routing_key: Some(name("order.lost")), ..task("a", 5) });
    center.pass(5);
    assert_eq!(center.standing("a"), Some(Standing::Dead { reason: Reason::Unrouted, at: at(5) }));
    center.put_topic("t", feeds(&[("lost", "order.lost")]));
    let selected = Selected { topic: name("t"), id: name("a"), queue: None };
    assert_eq!(center.ask(Command::Replay(selected)), Ok(Answer::Replayed(Standing::Ready { since: center.now() })));
    assert_eq!(center.take_from("lost", 9).len(), 1);
}

#[test]
fn a_broadcast_task_can_be_cancelled_until_one_of_its_deliveries_was_handed_out() {
    let mut center = Center::new();
    broadcast(&mut center);
    assert_eq!(center.cancel("a"), Ruling::Done(()));
    assert!(center.take_from("mail", 9).is_empty() && center.take_from("stock", 9).is_empty());
    center.schedule(task("b", 0));
    let delivery = center.take_from("mail", 1).remove(0);
    let leased = Standing::Leased { queue: name("mail"), holder: name("consumer"), until: delivery.until };
    assert_eq!(center.cancel("b"), Ruling::TooLate(leased));
}

#[test]
fn a_broadcast_task_that_is_cancelled_and_replaced_in_one_step_is_spread_anew() {
    let mut center = Center::new();
    broadcast(&mut center);
    let again = Task { body: "again".into(), replace: true, ..task("a", 0) };
    let again = Schedule { task: again, id: name("a"), id_is_new: false };
    let replies =
        center.begin_all(vec![Command::Cancel { topic: name("t"), id: name("a") }, Command::Schedule(Box::new(again))]);
    center.settle();
    assert_eq!(center.answer(replies[0]), Some(Ok(Answer::Cancelled(Ruling::Done(())))));
    center.restart();
    for queue in ["mail", "stock"] {
        let bodies: Vec<_> = center.take_from(queue, 9).into_iter().map(|delivery| delivery.body).collect();
        assert_eq!(bodies, ["again"], "once, and not what was cancelled");
    }
}

#[test]
fn a_broadcast_task_moves_with_all_of_its_deliveries() {
    let mut center = Center::new();
    broadcast(&mut center);
    let shift = Some(Shift::In(Millis(500)));
    let change =
        Reschedule { topic: name("t"), id: name("a"), shift, priority: None, body: Some((Form::Bytes, "new".into())) };
    center.ask(Command::Reschedule(Box::new(change))).unwrap();
    assert!(center.take_from("mail", 9).is_empty());
    center.pass(500);
    for queue in ["mail", "stock"] {
        assert_eq!(center.take_from(queue, 9)[0].body, "new");
    }
}

#[test]
fn a_restart_between_two_deliveries_keeps_both() {
    let mut center = Center::new();
    broadcast(&mut center);
    let mail = center.take_from("mail", 1).remove(0);
    center.restart();
    center.acknowledge(&mail.lease).unwrap();
    center.restart();
    let stock = center.take_from("stock", 1).remove(0);
    assert_eq!(stock.body, "a");
    center.acknowledge(&stock.lease).unwrap();
    assert!(matches!(center.standing("a"), Some(Standing::Finished { ending: Ending::Done, .. })));
}

#[test]
fn looking_at_a_broadcast_task_shows_each_open_delivery() {
    let mut center = Center::new();
    broadcast(&mut center);
    center.take_from("mail", 1);
    let task = view::get(&*center.store, SHARD, &name("t"), &name("a"), center.now()).unwrap().unwrap();
    let standings: Vec<&Standing> = task.parts.iter().map(|part| &part.standing).collect();
    assert!(matches!(standings[..], [Standing::Leased { .. }, Standing::Ready { .. }]));
}

#[test]
fn a_delivery_whose_queue_was_deleted_is_handed_out_once_from_another_also_after_a_restart() {
    let mut center = Center::with(ShardConfig { cache: 0, ..ShardConfig::default() });
    broadcast(&mut center);
    let lease = center.take_from("stock", 1)[0].lease.clone();
    center.ask(Command::Release { lease, back: Back::After(Millis(50)), priority: None, note: None }).unwrap();
    center.ask(Command::DeleteQueue { name: name("stock"), force: false }).unwrap();
    center.pass(50);
    center.restart();
    assert_eq!(center.take_from("mail", 9).len(), 2, "its own and the one without a queue");
    assert!(center.take_from("mail", 9).is_empty());
}
