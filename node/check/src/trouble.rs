//! A store that fails and code that panics while callers are under way: everybody hears of it, and what was confirmed stays.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use punctual_core::Timestamp;
use punctual_memory::Fate;
use punctual_node::sync::checked::pass;
use punctual_node::{Error, Handle, block_on};
use shuttle::thread;

use crate::explore::always;
use crate::stage::{Awaited, CALLERS, NodeConfigOf, RUNNERS, SHARDS, Stage, is_undone, schedule, switch, until};

/// Longer than a lost shard stays away.
const AWAY: Duration = Duration::from_millis(100);

/// Asks again until the shard is back; time passes meanwhile.
fn schedule_until_back(handle: &Handle, id: &str) {
    while let Err(error) = schedule(handle, id) {
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        pass(AWAY);
        thread::yield_now();
    }
}

/// Waits for a delivery. If what it was to get is lost on its way, it comes again.
fn consume(handle: &Handle) -> String {
    loop {
        match block_on(handle.reserve(until(Timestamp::NEVER))) {
            Ok(mut deliveries) => return deliveries.pop().unwrap().id.to_string(),
            Err(error) => assert!(!is_undone(&error), "it is still on the board: {error}"),
        }
    }
}

/// A commit fails under two callers and a consumer; the shard comes back, and the consumer has stayed on the board.
fn a_commit_fails(config: NodeConfigOf, fate: Fate) {
    let stage = Stage::new(config);
    let consumer = stage.actor(|handle| consume(&handle));
    let callers = ["a", "b"].map(|id| {
        let book = stage.book();
        stage.actor(move |handle| book.confirms(id, &schedule(&handle, id)))
    });
    stage.store.faults().fail_next_commit(fate);
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    schedule_until_back(&stage.handle, "c");
    let book = stage.book();
    assert!(book.row("c").is_some());
    let got = consumer.join().unwrap();
    assert!(["a", "b", "c"].contains(&&*got), "{got}");
    stage.node.stop();
}

#[test]
fn a_lost_commit_is_told_and_the_shard_comes_back() {
    always(|| a_commit_fails(RUNNERS, Fate::Lost));
    always(|| a_commit_fails(CALLERS, Fate::Lost));
}

#[test]
fn a_commit_whose_answer_is_lost_is_told_and_the_shard_comes_back() {
    always(|| a_commit_fails(RUNNERS, Fate::Kept));
    always(|| a_commit_fails(CALLERS, Fate::Kept));
}

#[test]
fn a_shard_that_is_lost_does_not_take_the_other_along() {
    always(|| a_commit_fails(SHARDS, Fate::Partly(1)));
}

/// What a consumer waits for cannot be read for a while: it stays on the board, and gets it when the shard is back.
fn a_read_fails(config: NodeConfigOf) {
    let stage = Stage::new(config);
    schedule(&stage.handle, "a").unwrap();
    let stage = stage.restart(config);
    let consumer = Awaited::new(&stage, |handle| consume(&handle));
    stage.store.faults().cut();
    switch();
    stage.store.faults().heal();
    assert_eq!(consumer.end(), "a");
}

#[test]
fn a_read_that_fails_keeps_a_consumer_waiting_and_no_longer() {
    always(|| a_read_fails(RUNNERS));
    always(|| a_read_fails(CALLERS));
}

/// The next commit, or the next scan of a step, panics, once.
fn panic_in(config: NodeConfigOf, where_: fn(&Stage, Box<dyn Fn() + Send + Sync>)) {
    let stage = Stage::new(config);
    let has_panicked = Arc::new(AtomicBool::new(false));
    let once = has_panicked.clone();
    where_(
        &stage,
        Box::new(move || {
            switch();
            if !once.swap(true, Ordering::SeqCst) {
                panic!("the scene wants this");
            }
        }),
    );
    let consumer = stage.actor(|handle| block_on(handle.reserve(until(Timestamp::NEVER))));
    let callers = ["a", "b"].map(|id| {
        let book = stage.book();
        stage.actor(move |handle| {
            let answer = schedule(&handle, id);
            book.confirms(id, &answer);
            answer
        })
    });
    for caller in callers {
        let answer = caller.join().unwrap();
        assert!(matches!(answer, Ok(_) | Err(Error::Unavailable { .. })), "{answer:?}");
    }
    let book = stage.book();
    if has_panicked.load(Ordering::SeqCst) {
        let late = schedule(&stage.handle, "late");
        assert!(matches!(&late, Err(error) if error.to_string().contains("panicked")), "{late:?}");
        book.confirms("late", &late);
    }
    stage.node.stop();
    let heard = consumer.join().unwrap();
    assert!(matches!(heard, Ok(_) | Err(Error::Unavailable { .. } | Error::Stopping)), "{heard:?}");
}

#[test]
fn a_commit_that_panics_stops_the_node_and_everybody_hears_of_it() {
    always(|| panic_in(RUNNERS, |stage, panics| stage.store.faults().slow_down(panics)));
    always(|| panic_in(CALLERS, |stage, panics| stage.store.faults().slow_down(panics)));
}

#[test]
fn a_step_that_panics_stops_the_node_and_everybody_hears_of_it() {
    always(|| panic_in(RUNNERS, |stage, panics| stage.store.faults().slow_down_scans(move |_| panics())));
    always(|| panic_in(CALLERS, |stage, panics| stage.store.faults().slow_down_scans(move |_| panics())));
}
