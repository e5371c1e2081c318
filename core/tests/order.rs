//! Facts about what comes first: in one queue, among several, and how it is looked at.

use crate::center::{Center, at, name, task};
use punctual_core::store::Position;
use punctual_core::{Answer, Chosen, Command, First, Order, QueueSettings, ShardConfig, Task, Timestamp};

fn with_priority(id: &str, priority: u32) -> Task {
    task(id, 0).priority(priority)
}

fn first(center: &mut Center, queue: &str) -> Option<First> {
    match center.ask(Command::First { queue: name(queue) }) {
        Ok(Answer::First(first)) => first,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_first_of_a_queue_is_what_it_hands_out_next_paused_or_not() {
    let mut center = Center::new();
    assert_eq!(first(&mut center, "t"), None, "there is no such queue");
    center.schedule(task("later", 5));
    assert_eq!(first(&mut center, "t"), None, "its time has not come");
    center.schedule(with_priority("second", 2));
    let number = center.schedule(with_priority("first", 1)).number;
    let expected = First { priority: 1, position: Position { at: at(0), seq: number } };
    assert_eq!(first(&mut center, "t"), Some(expected));
    center.ask(Command::PauseQueue { name: name("t"), until: Some(Timestamp::NEVER) }).unwrap();
    assert_eq!(first(&mut center, "t"), Some(expected));
    center.ask(Command::PauseQueue { name: name("t"), until: None }).unwrap();
    assert_eq!(center.take_one().number, number);
}

#[test]
fn urgent_are_those_ready_with_a_priority_below_1024() {
    let mut center = Center::new();
    for (id, priority) in [("a", 0), ("b", 1_023), ("c", 1_024)] {
        center.schedule(with_priority(id, priority));
    }
    center.schedule(Task { topic: name("other"), ..with_priority("d", 0) });
    center.schedule(Task { priority: Some(0), ..task("e", 9) });
    let look = |center: &mut Center| match center.ask(Command::Queues(Chosen::Named(vec![name("nobody"), name("t")]))) {
        Ok(Answer::Queues(queues)) => queues,
        other => panic!("{other:?}"),
    };
    let queues = look(&mut center);
    assert_eq!(queues.len(), 1, "only what has this name is counted");
    assert_eq!((queues[0].counts.ready, queues[0].counts.urgent), (3, 2));
    assert_eq!(center.take_one().id, name("a"));
    assert_eq!(look(&mut center)[0].counts.urgent, 1);
}

#[test]
fn a_consumer_of_several_queues_may_take_the_foremost_of_all() {
    let mut center = Center::new();
    for (queue, id, priority) in [("a", "a1", 2), ("a", "a2", 2), ("b", "b1", 1), ("b", "b2", 2), ("c", "c1", 0)] {
        center.schedule(Task { topic: name(queue), ..with_priority(id, priority) });
    }
    center.ask(Command::PauseQueue { name: name("c"), until: Some(Timestamp::NEVER) }).unwrap();
    assert_eq!(center.take_foremost(&["c", "b", "a"], 9), ["b1", "a1", "a2", "b2"]);
}

#[test]
fn the_foremost_waits_for_what_has_to_be_read_first() {
    let config = punctual_core::ShardConfig { cache: 0, ..Default::default() };
    let mut center = Center::with(config);
    for (queue, id, delay) in [("b", "b1", 10), ("a", "a1", 20), ("b", "b2", 30), ("a", "a2", 40)] {
        center.schedule(Task { topic: name(queue), ..task(id, delay) });
    }
    center.pass(100);
    assert_eq!(center.take_foremost(&["a", "b"], 9), ["b1", "a1", "b2", "a2"]);
}

fn by_arrival() -> QueueSettings {
    QueueSettings { order: Order::Arrival, ..QueueSettings::default() }
}

#[test]
fn by_arrival_a_delayed_task_overtakes_a_younger_one() {
    let mut center = Center::new();
    center.put_queue("t", by_arrival());
    center.schedule(task("delayed", 50));
    center.pass(20);
    center.schedule(task("younger", 0));
    center.schedule(with_priority("urgent", 1));
    center.pass(30);
    assert_eq!(center.take_ids(), ["urgent", "delayed", "younger"]);
}

#[test]
fn another_order_holds_for_what_waits_already_and_outlives_a_restart() {
    let mut center = Center::new();
    for (id, delay) in [("a", 30), ("b", 20), ("c", 10)] {
        center.schedule(task(id, delay));
    }
    center.pass(40);
    center.ask(Command::PauseQueue { name: name("t"), until: Some(Timestamp::NEVER) }).unwrap();
    let number = first(&mut center, "t").unwrap().position.seq;
    center.put_queue("t", by_arrival());
    assert!(first(&mut center, "t").unwrap().position.seq < number, "it is another one");
    center.restart();
    assert_eq!(center.take_ids(), ["a", "b", "c"]);
}

#[test]
fn the_foremost_of_queues_ordered_by_arrival_is_the_one_that_was_taken_in_first() {
    let take = |orders: [Order; 2]| {
        let mut center = Center::new();
        for (queue, order) in ["a", "b"].into_iter().zip(orders) {
            center.put_queue(queue, QueueSettings { order, ..QueueSettings::default() });
        }
        center.schedule(Task { topic: name("a"), ..task("late", 20) });
        center.schedule(Task { topic: name("b"), ..task("soon", 10) });
        center.pass(30);
        center.take_foremost(&["a", "b"], 9)
    };
    assert_eq!(take([Order::Arrival, Order::Arrival]), ["late", "soon"]);
    assert_eq!(take([Order::Arrival, Order::Due]), ["soon", "late"]);
    assert_eq!(take([Order::Due, Order::Due]), ["soon", "late"]);
}

#[test]
fn the_foremost_of_several_queues_is_at_hand_however_much_the_others_have() {
    let mut center = Center::with(ShardConfig { hand_outs: 1, cache: 0, ..ShardConfig::default() });
    for (topic, id) in [("b", "first"), ("a", "second"), ("a", "third")] {
        center.schedule(Task { topic: name(topic), ..task(id, 0) });
        center.pass(1);
    }
    assert_eq!(center.take_foremost(&["a", "b"], 1), ["first"]);
}
