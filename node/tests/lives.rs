//! Lives of a node on a shared store: who bears a name, who waits for whom, and a store that went back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::stage::{Stage, config, eventually, is_created, name, next, schedule_until_back, task};
use punctual_core::Millis;
use punctual_core::store::{Beat, Incarnation, Store};
use punctual_memory::MemoryStore;
use punctual_node::{Error, Node, NodeConfig, StartError, SystemClock};

#[tokio::test]
async fn a_second_server_of_the_same_name_is_refused_and_does_the_first_no_harm() {
    let short = || NodeConfig { ownership: Millis(600), ..config(2) };
    let stage = Stage::with(short());
    let bearer = stage.handle.clone();
    let refused = Node::start(short(), stage.store.clone(), stage.clock.clone()).map(drop).unwrap_err();
    assert_eq!(refused, StartError::NameTaken { name: short().name });
    assert!(refused.to_string().contains("give this one another `name`"), "{refused}");
    assert!(is_created(&bearer.schedule(task("orders", "1")).await.unwrap()));
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(is_created(&bearer.schedule(task("orders", "2")).await.unwrap()), "its claims last");
    assert_eq!(bearer.stats().failed_commits, 0);
}

#[test]
fn a_node_waits_for_the_end_of_its_former_life_and_no_longer() {
    let clock = Arc::new(SystemClock);
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let lease = Millis(400);
    let who = Incarnation { node: config(1).name, number: 7 };
    store.beat(&Beat { who, address: String::new(), lease }).unwrap();
    let begun = Instant::now();
    let node = Node::start(config(1), store.clone(), clock.clone()).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
    node.stop();
    let begun = Instant::now();
    Node::start(config(1), store, clock).unwrap().stop();
    assert!(begun.elapsed() < Duration::from_millis(400), "who said goodbye is not waited for: {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_store_that_lost_what_it_confirmed_is_noticed_and_counted() {
    let stage = Stage::new(1);
    let handle = &stage.handle;
    assert!(is_created(&handle.schedule(task("orders", "kept")).await.unwrap()));
    stage.store.hold();
    assert!(is_created(&handle.schedule(task("orders", "lost")).await.unwrap()));
    stage.store.fail_over();
    let answer = handle.schedule(task("orders", "after")).await;
    assert!(matches!(answer, Err(Error::Unavailable { .. })), "{answer:?}");
    eventually("it is counted", async || handle.stats().lost_commits > 0).await;
    schedule_until_back(handle, task("orders", "after")).await;
    assert_eq!(handle.get(&name("orders"), &name("lost")).await.unwrap(), None);
    let mut seen = [next(handle, "orders").await.id, next(handle, "orders").await.id];
    seen.sort();
    assert_eq!(seen, [name("after"), name("kept")]);
}
