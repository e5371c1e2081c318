//! Requests that come while their shard is handed over to another node: each is carried out here or asked of the other one,
//! never both, and nobody is forgotten.

use std::sync::Arc;
use std::time::Duration;

use punctual_center::Message;
use punctual_core::Millis;
use punctual_core::store::{Fence, ShardId};
use punctual_node::sync::checked::pass;
use punctual_node::{Error, shard_of};
use shuttle::thread;

use crate::explore::always;
use crate::other::Other;
use crate::stage::{Awaited, CALLERS, NodeConfigOf, RUNNERS, Stage, is_undone, new_store, schedule};

/// How long a node rests between two beats.
const BEAT: Duration = Duration::from_millis(500);

/// An id of a task whose home is this shard.
fn id_in(shard: ShardId) -> String {
    (0..).map(|number| format!("late-{number}")).find(|id| shard_of("orders", id, 2) == shard).unwrap()
}

/// The other one says of the first request that the shard is not there yet, and does none of those that follow.
fn decline() -> impl FnMut(Message) -> Option<Message> {
    let mut is_there = false;
    move |message| {
        let Message::Ask { id, shard, .. } = message else { return None };
        let said = match is_there {
            false => Message::NotHere { id, shard, fence: Fence(0), owner: None },
            true => Message::Answered { id, outcome: Err(Error::nothing_done("the other one declines")) },
        };
        is_there = true;
        Some(said)
    }
}

/// Callers while another node comes, and gets one of two shards.
pub fn under_way(config: NodeConfigOf, other: &Arc<Other>) {
    let store = new_store();
    let stage = Stage::on(store.clone(), other.beside(config()));
    let playing = other.play(decline());
    other.beat(&store, Millis::from_hours(1));
    other.link_up();
    let callers = ["a", "b", "c"].map(|id| {
        let book = stage.book();
        Awaited::new(&stage, move |handle| {
            let answer = schedule(&handle, id);
            assert!(answer.is_ok() || answer.as_ref().is_err_and(is_undone), "{answer:?}");
            book.confirms(id, &answer);
        })
    });
    // The first beat hears of the other one.
    pass(BEAT);
    callers.into_iter().for_each(Awaited::end);
    for _ in 0..20 {
        if other.handed().is_some() {
            break;
        }
        pass(BEAT);
        thread::yield_now();
    }
    let gone = other.handed().expect("a shard is handed over");
    let (there, here) = (id_in(gone), id_in(ShardId(1 - gone.0)));
    let asked = other.asked();
    let declined = Awaited::new(&stage, move |handle| schedule(&handle, &there)).end();
    assert!(declined.as_ref().is_err_and(is_undone) && other.asked() > asked, "{declined:?}");
    assert!(Awaited::new(&stage, move |handle| schedule(&handle, &here)).end().is_ok());
    other.beat(&store, Millis::ZERO);
    stage.node.stop();
    other.end(playing);
}

#[test]
fn a_request_is_carried_out_here_or_asked_of_the_node_that_gets_its_shard() {
    always(|| under_way(RUNNERS, &Other::new()));
    always(|| under_way(CALLERS, &Other::new()));
}
