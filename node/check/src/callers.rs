//! Callers who come at the same time: each is answered once, when what it asked for is durable, and in its order.

use punctual_core::store::Table;
use punctual_core::{Millis, Ruling};
use punctual_node::NodeConfig;

use crate::explore::always;
use crate::stage::{CALLERS, NodeConfigOf, RUNNERS, SHARDS, Stage, both, name, schedule, task};

/// Two callers with two tasks each, one after the other.
pub fn two_callers(config: NodeConfigOf) {
    let stage = Stage::new(config);
    let callers = ["a", "b"].map(|caller| {
        let book = stage.book();
        stage.actor(move |handle| {
            for id in ["1", "2"].map(|number| format!("{caller}{number}")) {
                let answer = schedule(&handle, &id);
                assert!(answer.is_ok(), "{answer:?}");
                book.confirms(&id, &answer);
            }
        })
    });
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    let book = stage.book();
    stage.node.stop();
    assert!(["a1", "a2", "b1", "b2"].iter().all(|id| book.row(id).is_some()));
}

#[test]
fn each_is_answered_once_it_is_durable_by_the_runner() {
    always(|| two_callers(RUNNERS));
}

#[test]
fn each_is_answered_once_it_is_durable_by_a_caller() {
    always(|| two_callers(CALLERS));
}

#[test]
fn each_is_answered_once_it_is_durable_in_two_shards() {
    always(|| two_callers(SHARDS));
}

/// What is sent without waiting for answers happens in the order in which it was sent.
fn in_order(config: NodeConfigOf) {
    let stage = Stage::new(config);
    let callers = ["a", "b"].map(|id| {
        let book = stage.book();
        stage.actor(move |handle| {
            let (topic, name) = (name("orders"), name(id));
            let later = task(id).after(Millis::from_hours(1));
            let (made, taken_back) = both(handle.schedule(later), handle.cancel(&topic, &name));
            assert!(made.is_ok(), "{made:?}");
            assert!(matches!(taken_back, Ok(Ruling::Done(()))), "{taken_back:?}");
            assert_eq!(book.table(id), Some(Table::History));
        })
    });
    callers.into_iter().for_each(|caller| caller.join().unwrap());
}

#[test]
fn what_one_caller_sends_is_done_in_its_order() {
    always(|| in_order(RUNNERS));
    always(|| in_order(CALLERS));
}

#[test]
fn one_step_under_way_at_a_time_is_enough() {
    always(|| {
        let stage = Stage::with(NodeConfig { in_flight: 1, step: 1, ..CALLERS() });
        let callers = ["a", "b", "c"].map(|id| stage.actor(move |handle| schedule(&handle, id)));
        callers.into_iter().for_each(|caller| assert!(caller.join().unwrap().is_ok()));
    });
}
