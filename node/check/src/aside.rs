//! A shard that is set aside under load, as when it is handed over to another store: what is done with it meets nothing
//! that is under way, nobody is refused or forgotten, and everything goes on afterwards.

use std::sync::Arc;

use punctual_core::Timestamp;
use punctual_core::store::ShardId;
use punctual_memory::Fate;
use punctual_node::{Error, Handle, block_on};
use shuttle::sync::atomic::{AtomicUsize, Ordering};

use crate::explore::always;
use crate::stage::{Book, CALLERS, NodeConfigOf, RUNNERS, SHARDS, Stage, is_undone, next, schedule, switch, until};

const SHARD: ShardId = ShardId(0);
const IDS: [&str; 3] = ["a", "b", "c"];

/// Sets the shard aside, and looks on for a while: nothing of it may change meanwhile. Says whether it was done.
fn set_aside(handle: &Handle, book: Book, times: Arc<AtomicUsize>) -> Result<(), Error> {
    let seen = move |book: &Book| IDS.map(|id| (book.table(id), book.is_leased(id)));
    let work = move |_| {
        let before = seen(&book);
        (0..3).for_each(|_| switch());
        assert_eq!(seen(&book), before, "something was under way");
        times.fetch_add(1, Ordering::SeqCst);
    };
    block_on(handle.set_aside(SHARD, work))
}

/// Callers and a consumer while the shard is set aside: it is as if nothing had happened.
pub fn under_load(config: NodeConfigOf) {
    let stage = Stage::new(config);
    let times = Arc::new(AtomicUsize::new(0));
    let consumer = stage.actor(|handle| next(&handle).id.to_string());
    let (book, count) = (stage.book(), Arc::clone(&times));
    let mover = stage.actor(move |handle| set_aside(&handle, book, count));
    let callers = ["a", "b"].map(|id| {
        let book = stage.book();
        stage.actor(move |handle| {
            let answer = schedule(&handle, id);
            assert!(answer.is_ok(), "{answer:?}");
            book.confirms(id, &answer);
        })
    });
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    assert_eq!(mover.join().unwrap(), Ok(()));
    assert_eq!(times.load(Ordering::SeqCst), 1);
    let got = consumer.join().unwrap();
    assert!(["a", "b"].contains(&&*got), "{got}");
    assert_ne!(next(&stage.handle).id.to_string(), got, "the other one is still to be had");
    assert!(schedule(&stage.handle, "c").is_ok());
}

#[test]
fn a_shard_is_set_aside_under_load_and_goes_on() {
    always(|| under_load(RUNNERS));
    always(|| under_load(CALLERS));
}

#[test]
fn a_shard_is_set_aside_and_the_other_one_is_not_held_up() {
    always(|| under_load(SHARDS));
}

#[test]
fn two_who_set_a_shard_aside_do_so_one_after_the_other_or_hear_that_it_is() {
    always(|| {
        let stage = Stage::new(CALLERS);
        let times = Arc::new(AtomicUsize::new(0));
        let movers = [(); 2].map(|()| {
            let (book, times) = (stage.book(), Arc::clone(&times));
            stage.actor(move |handle| set_aside(&handle, book, times))
        });
        let caller = stage.actor(|handle| schedule(&handle, "a"));
        let done = movers.map(|mover| mover.join().unwrap());
        let count = done.iter().filter(|done| done.is_ok()).count();
        assert!(count > 0 && done.iter().all(|done| matches!(done, Ok(()) | Err(Error::Overloaded))), "{done:?}");
        assert_eq!(times.load(Ordering::SeqCst), count);
        assert!(caller.join().unwrap().is_ok());
    });
}

/// The node stops meanwhile: it was done, or it was not and the mover hears so.
fn stopped_meanwhile(config: NodeConfigOf) {
    let stage = Stage::new(config);
    let times = Arc::new(AtomicUsize::new(0));
    let (book, count) = (stage.book(), Arc::clone(&times));
    let mover = stage.actor(move |handle| set_aside(&handle, book, count));
    let caller = stage.actor(|handle| schedule(&handle, "a"));
    let consumer = stage.actor(|handle| block_on(handle.reserve(until(Timestamp::NEVER))));
    let book = stage.book();
    stage.node.stop();
    book.confirms("a", &caller.join().unwrap());
    let done = mover.join().unwrap();
    assert!(matches!(done, Ok(()) | Err(Error::Stopping)), "{done:?}");
    assert_eq!(times.load(Ordering::SeqCst), usize::from(done.is_ok()));
    let heard = consumer.join().unwrap();
    assert!(matches!(heard, Ok(_) | Err(Error::Stopping)), "{heard:?}");
}

#[test]
fn a_node_that_stops_while_a_shard_is_set_aside_keeps_nobody_waiting() {
    always(|| stopped_meanwhile(RUNNERS));
    always(|| stopped_meanwhile(CALLERS));
}

/// A commit fails under a shard that is to be set aside: it is lost, and comes back, and the mover hears which.
fn a_commit_fails(config: NodeConfigOf) {
    let stage = Stage::new(config);
    let times = Arc::new(AtomicUsize::new(0));
    let (book, count) = (stage.book(), Arc::clone(&times));
    let callers = ["a", "b"].map(|id| {
        let book = stage.book();
        stage.actor(move |handle| book.confirms(id, &schedule(&handle, id)))
    });
    stage.store.faults().fail_next_commit(Fate::Lost);
    let mover = stage.actor(move |handle| set_aside(&handle, book, count));
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    let done = mover.join().unwrap();
    assert!(done.is_ok() || done.as_ref().is_err_and(is_undone), "{done:?}");
    assert_eq!(times.load(Ordering::SeqCst), usize::from(done.is_ok()));
    stage.node.stop();
}

#[test]
fn a_shard_that_is_lost_while_it_is_to_be_set_aside_is_told() {
    always(|| a_commit_fails(RUNNERS));
    always(|| a_commit_fails(CALLERS));
}
