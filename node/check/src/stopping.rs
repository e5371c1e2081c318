//! A node that stops while callers are under way: whatever it confirmed is there, and what it refused is not.

use punctual_core::{Timestamp, TopicSettings};
use punctual_node::{Error, block_on};

use crate::explore::always;
use crate::stage::{CALLERS, NodeConfigOf, RUNNERS, SHARDS, Stage, is_undone, name, schedule, until};

/// Callers, a consumer, somebody who looks and somebody who administers, while the node stops.
pub fn stop_under_way(config: NodeConfigOf) {
    let stage = Stage::new(config);
    let callers = ["a", "b"].map(|id| (id, stage.actor(move |handle| schedule(&handle, id))));
    let consumer = stage.actor(|handle| block_on(handle.reserve(until(Timestamp::NEVER))));
    let book = stage.book();
    stage.node.stop();
    for (id, caller) in callers {
        let answer = caller.join().unwrap();
        assert!(matches!(answer, Ok(_) | Err(Error::Stopping)), "{answer:?}");
        book.confirms(id, &answer);
    }
    match consumer.join().unwrap() {
        Ok(deliveries) => {
            for delivery in deliveries {
                assert!(book.is_leased(&delivery.id), "it was handed out");
            }
        }
        Err(error) => assert_eq!(error, Error::Stopping),
    }
}

#[test]
fn what_was_confirmed_is_there_and_what_was_refused_is_not() {
    always(|| stop_under_way(RUNNERS));
    always(|| stop_under_way(CALLERS));
}

#[test]
fn two_shards_stop_together() {
    always(|| stop_under_way(SHARDS));
}

#[test]
fn those_who_look_or_administer_hear_of_the_end() {
    always(|| {
        let stage = Stage::new(CALLERS);
        let reader = stage.actor(|handle| block_on(handle.get(&name("orders"), &name("a"))));
        let administrator = stage.actor(|handle| block_on(handle.put_topic(&name("orders"), TopicSettings::default())));
        let book = stage.book();
        stage.node.stop();
        let read = reader.join().unwrap();
        assert!(matches!(read, Ok(None) | Err(Error::Stopping)), "{read:?}");
        match administrator.join().unwrap() {
            Ok(_) => assert!(book.has_topic(), "it was confirmed"),
            Err(error) => assert!(!is_undone(&error) || !book.has_topic(), "{error}"),
        }
    });
}
