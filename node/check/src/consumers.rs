//! Consumers who wait: each gets a delivery or hears that its time is over, and nothing is lost between the two.

use std::time::Duration;

use punctual_core::store::Table;
use punctual_core::{Millis, Task, Timestamp};
use punctual_node::sync::checked::pass;
use punctual_node::{Handle, NodeConfig, block_on};

use crate::explore::always;
use crate::stage::{
    Awaited, CALLERS, NodeConfigOf, RUNNERS, SHARDS, Stage, give_up, name, next, schedule, task, until,
};

fn finish_next(handle: &Handle) -> String {
    let delivery = next(handle);
    block_on(handle.acknowledge(delivery.lease)).unwrap();
    delivery.id.to_string()
}

/// Two consumers wait, or come later; two tasks come, or are there: each gets one, once.
pub fn two_consumers(config: NodeConfigOf) {
    let stage = Stage::new(config);
    let consumers = [(); 2].map(|()| stage.actor(|handle| finish_next(&handle)));
    let producers = ["a", "b"].map(|id| stage.actor(move |handle| schedule(&handle, id).unwrap()));
    producers.into_iter().for_each(|producer| _ = producer.join().unwrap());
    let mut got = consumers.map(|consumer| consumer.join().unwrap());
    got.sort();
    assert_eq!(got, ["a", "b"]);
    let book = stage.book();
    assert_eq!([book.table("a"), book.table("b")], [Some(Table::History); 2]);
}

#[test]
fn each_consumer_gets_one_task_once() {
    always(|| two_consumers(RUNNERS));
    always(|| two_consumers(CALLERS));
}

#[test]
fn each_consumer_gets_one_task_once_from_two_shards() {
    always(|| two_consumers(SHARDS));
}

/// A consumer loses patience: another gets the task, at once and not when a lease is over.
fn one_leaves(config: NodeConfigOf) {
    let stage = Stage::new(config);
    let leaver = stage.actor(|handle| {
        let deliveries = give_up(handle.reserve(until(Timestamp::NEVER)), 2);
        deliveries.is_some_and(|deliveries| deliveries.unwrap().len() == 1)
    });
    let producer = stage.actor(|handle| schedule(&handle, "a").unwrap());
    let has_got = leaver.join().unwrap();
    producer.join().unwrap();
    if !has_got {
        assert_eq!(finish_next(&stage.handle), "a");
    }
}

#[test]
fn what_was_meant_for_a_consumer_who_left_goes_to_another() {
    always(|| one_leaves(RUNNERS));
    always(|| one_leaves(CALLERS));
}

/// A task comes due, or its consumer's time is over: it is with the consumer, or to be had.
fn time_is_over(config: NodeConfigOf) {
    let stage = Stage::new(config);
    block_on(stage.handle.schedule(task("a").after(Millis(10)))).unwrap();
    let consumer = stage.actor(|handle| {
        let deadline = handle.now().plus(Millis(10));
        block_on(handle.reserve(until(deadline))).unwrap().len()
    });
    pass(Duration::from_millis(10));
    pass(Duration::from_millis(10));
    if consumer.join().unwrap() == 0 {
        assert_eq!(finish_next(&stage.handle), "a");
    }
}

#[test]
fn a_task_that_comes_due_when_its_consumer_gives_up_is_not_lost() {
    always(|| time_is_over(RUNNERS));
    always(|| time_is_over(CALLERS));
}

#[test]
fn a_consumer_whose_time_is_over_hears_so_although_no_shard_has_anything_to_do() {
    always(|| {
        let stage = Stage::new(CALLERS);
        let consumer = Awaited::new(&stage, |handle| {
            let deadline = handle.now().plus(Millis(10));
            block_on(handle.reserve(until(deadline))).unwrap().len()
        });
        assert_eq!(consumer.end(), 0);
    });
}

/// Of two who do not wait one gets the task, and the other hears that there is nothing.
fn at_once(config: NodeConfigOf) {
    let stage = Stage::new(config);
    schedule(&stage.handle, "a").unwrap();
    let consumers =
        [(); 2].map(|()| stage.actor(|handle| block_on(handle.reserve(until(handle.now()))).unwrap().len()));
    let got: usize = consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum();
    assert_eq!(got, 1);
}

#[test]
fn those_who_do_not_wait_hear_at_once() {
    always(|| at_once(RUNNERS));
    always(|| at_once(CALLERS));
}

#[test]
fn a_task_wakes_its_shard_when_it_is_due() {
    always(|| {
        let stage = Stage::new(CALLERS);
        block_on(stage.handle.schedule(task("a").after(Millis(10)))).unwrap();
        let consumer = stage.actor(|handle| finish_next(&handle));
        let other = stage.actor(|handle| schedule(&handle, "b").unwrap());
        pass(Duration::from_millis(10));
        other.join().unwrap();
        let first = consumer.join().unwrap();
        let second = finish_next(&stage.handle);
        assert!([("a", "b"), ("b", "a")].contains(&(&*first, &*second)), "{first} {second}");
    });
}

#[test]
fn room_for_answers_that_comes_back_wakes_those_who_wait_for_it() {
    always(|| {
        let stage = Stage::with(NodeConfig { answers_bytes: 1, ..CALLERS() });
        for id in ["a", "b"] {
            let long = Task::new(name("orders"), "x".repeat(20_000)).id(name(id));
            block_on(stage.handle.schedule(long)).unwrap();
        }
        let consumers = [(); 2].map(|()| {
            stage.actor(|handle| {
                let (mut deliveries, hold) = block_on(handle.reserve_held(until(Timestamp::NEVER))).unwrap();
                drop(hold);
                deliveries.pop().unwrap().id.to_string()
            })
        });
        let mut got = consumers.map(|consumer| consumer.join().unwrap());
        got.sort();
        assert_eq!(got, ["a", "b"]);
    });
}
