//! A consumer that is lent to another node and leaves: what it was to get there is got, or goes back.

use std::sync::Arc;

use punctual_center::Message;
use punctual_core::store::{Key, ShardId};
use punctual_core::{Delivery, Form, Headers, Lease, Millis, Timestamp};
use punctual_node::shard_of;
use shuttle::sync::atomic::{AtomicUsize, Ordering};

use crate::explore::always;
use crate::other::Other;
use crate::stage::{CALLERS, NodeConfigOf, RUNNERS, Stage, give_up, name, new_store, until};

/// The shard that the other node has.
const THEIRS: ShardId = ShardId(1);

/// What the other node hands to whoever is lent to it.
fn delivery() -> Delivery {
    let id = (0..).map(|number| number.to_string()).find(|id| shard_of("orders", id, 2) == THEIRS).unwrap();
    let (topic, id, at) = (name("orders"), name(&id), Timestamp::from_millis(1));
    let lease = Lease { key: Key::task(&topic, &id), token: 7 };
    Delivery {
        queue: topic.clone(),
        topic,
        id,
        number: 1,
        body: "x".to_owned().into(),
        form: Form::Text,
        headers: Headers::new(),
        routing_key: None,
        key: None,
        priority: 0,
        attempt: 1,
        scheduled_at: at,
        due: at,
        fired_at: at,
        lease,
        until: Timestamp::NEVER,
        lease_time: Millis::from_hours(1),
    }
}

/// The other one has something for every consumer that comes; says how many it has served.
fn serve(served: Arc<AtomicUsize>) -> impl FnMut(Message) -> Option<Message> {
    move |message| match message {
        Message::Want { queues } => Some(Message::Stocked { queues, is_stocked: true }),
        Message::Lend { id, .. } => {
            served.fetch_add(1, Ordering::SeqCst);
            Some(Message::Served { id, deliveries: vec![delivery()], empty: vec![name("orders")] })
        }
        _ => None,
    }
}

/// A consumer waits and leaves, while the other node has something for it.
pub fn one_leaves(config: NodeConfigOf, other: &Arc<Other>) {
    let store = new_store();
    other.claim(&store, THEIRS);
    let stage = Stage::on(store.clone(), other.beside(config()));
    let served = Arc::new(AtomicUsize::new(0));
    let playing = other.play(serve(Arc::clone(&served)));
    other.link_up();
    let consumer = stage.actor(|handle| {
        let deliveries = give_up(handle.reserve(until(Timestamp::NEVER)), 4);
        deliveries.map_or(0, |deliveries| deliveries.unwrap().len())
    });
    let got = consumer.join().unwrap();
    other.end(playing);
    other.beat(&store, Millis::ZERO);
    stage.node.stop();
    let (served, back) = (served.load(Ordering::SeqCst), other.asked());
    assert!(served == got + back, "of {served}, {got} and {back}: one has neither been got nor gone back");
}

#[test]
fn what_a_consumer_was_to_get_at_another_node_goes_back_if_it_has_left() {
    always(|| one_leaves(RUNNERS, &Other::new()));
    always(|| one_leaves(CALLERS, &Other::new()));
}
