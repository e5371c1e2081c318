//! Callers who take a shard's turn themselves.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use crate::stage::{PATIENCE, Stage, config, eventually, finish, is_created, name, next, task};
use punctual_core::{Certainty, Millis, Task};
use punctual_memory::Fate;
use punctual_node::{Error, NodeConfig, block_on};

fn stage() -> Stage {
    Stage::with(NodeConfig { callers_step: true, ..config(1) })
}

/// The names of the threads that have committed since this was called.
fn committing(stage: &Stage) -> Arc<Mutex<BTreeSet<String>>> {
    let names: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let noted = names.clone();
    stage.store.faults().slow_down(move || {
        noted.lock().unwrap().insert(thread::current().name().unwrap_or_default().to_owned());
    });
    names
}

#[test]
fn a_lone_caller_commits_in_its_own_thread() {
    let stage = stage();
    let names = committing(&stage);
    let handle = stage.handle.clone();
    let live = move || {
        let begun = Instant::now();
        // The runner is awake at first, and may be for a while.
        while !names.lock().unwrap().contains("caller") {
            assert!(begun.elapsed() < PATIENCE, "{names:?}");
            assert!(is_created(&block_on(handle.schedule(Task::new(name("orders"), ""))).unwrap()));
            let delivery = block_on(next(&handle, "orders"));
            block_on(finish(&handle, delivery.lease));
        }
    };
    thread::Builder::new().name("caller".into()).spawn(live).unwrap().join().unwrap();
}

#[test]
fn with_several_shards_or_unless_told_to_no_caller_does() {
    for config in [config(1), NodeConfig { callers_step: true, ..config(2) }] {
        let stage = Stage::with(config);
        let names = committing(&stage);
        for number in 0..50 {
            block_on(stage.handle.schedule(task("orders", &number.to_string()))).unwrap();
        }
        let names = names.lock().unwrap();
        assert!(names.iter().all(|name| name.starts_with("punctual-")), "{names:?}");
    }
}

#[test]
fn who_comes_while_a_caller_commits_is_answered_too() {
    let stage = stage();
    let gate = stage.close_gate();
    let call = |id: &str| {
        let (handle, task) = (stage.handle.clone(), task("orders", id));
        thread::spawn(move || block_on(handle.schedule(task)))
    };
    let mut calls = vec![call("first")];
    gate.wait_for_somebody();
    calls.extend((0..20).map(|number| call(&number.to_string())));
    gate.open();
    for call in calls {
        assert!(is_created(&call.join().unwrap().unwrap()));
    }
}

#[test]
fn a_task_that_comes_due_while_a_caller_commits_is_handed_over_afterwards() {
    let stage = stage();
    block_on(stage.handle.schedule(task("orders", "soon").after(Millis(30)))).unwrap();
    let gate = stage.close_gate();
    let waiting = thread::spawn({
        let handle = stage.handle.clone();
        move || block_on(next(&handle, "orders"))
    });
    let call = thread::spawn({
        let handle = stage.handle.clone();
        move || block_on(handle.schedule(task("others", "7")))
    });
    gate.wait_for_somebody();
    thread::sleep(Duration::from_millis(60));
    gate.open();
    assert!(call.join().unwrap().is_ok());
    assert_eq!(waiting.join().unwrap().id, name("soon"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promise_that_is_dropped_is_kept_by_the_runner() {
    let stage = stage();
    for round in 0..30 {
        // Company makes the next caller let others in first, and there it is dropped.
        let many = (0..8).map(|number| task("orders", &format!("{round}-{number}"))).collect();
        stage.handle.schedule_many(many).await;
        let dropped = format!("{round}-dropped");
        let mut call = Box::pin(stage.handle.schedule(task("orders", &dropped)));
        poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_pending())).await;
        drop(call);
        eventually("the task is there", async || {
            stage.handle.get(&name("orders"), &name(&dropped)).await.unwrap().is_some()
        })
        .await;
    }
}

#[test]
fn a_commit_that_fails_under_a_caller_is_answered_as_unknown_and_the_shard_comes_back() {
    let stage = stage();
    block_on(stage.handle.schedule(task("orders", "before"))).unwrap();
    stage.store.faults().fail_next_commit(Fate::Lost);
    let answer = block_on(stage.handle.schedule(task("orders", "7")));
    assert!(matches!(&answer, Err(error) if error.certainty() == Certainty::Unknown), "{answer:?}");
    let begun = Instant::now();
    while block_on(stage.handle.schedule(task("orders", "7"))).is_err() {
        assert!(begun.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(5));
    }
    let ids: BTreeSet<_> = (0..2).map(|_| block_on(next(&stage.handle, "orders")).id).collect();
    assert_eq!(ids, BTreeSet::from([name("7"), name("before")]));
}

#[test]
fn a_panic_under_a_caller_stops_the_node_from_answering_and_from_writing() {
    let stage = stage();
    stage.store.faults().slow_down(|| panic!("the test wants this"));
    let answer = block_on(stage.handle.schedule(task("orders", "7")));
    assert!(matches!(&answer, Err(error) if error.certainty() == Certainty::Unknown), "{answer:?}");
    stage.store.faults().slow_down(|| {});
    let refused = block_on(stage.handle.schedule(task("orders", "8")));
    assert!(matches!(&refused, Err(Error::Unavailable { why, .. }) if why.contains("panicked")), "{refused:?}");
    stage.node.stop();
}

#[test]
fn a_node_that_stops_waits_for_the_caller_who_has_a_shard() {
    let stage = stage();
    let gate = stage.close_gate();
    let call = thread::spawn({
        let handle = stage.handle.clone();
        move || block_on(handle.schedule(task("orders", "7")))
    });
    gate.wait_for_somebody();
    let stopping = thread::spawn(move || stage.node.stop());
    thread::sleep(Duration::from_millis(20));
    assert!(!stopping.is_finished());
    gate.open();
    assert!(is_created(&call.join().unwrap().unwrap()));
    stopping.join().unwrap();
}
