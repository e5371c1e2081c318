//! Facts about answers that are under way: how many bytes of them there may be.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::time::Duration;

use punctual_core::{Reserve, Task};
use punctual_node::{Error, NodeConfig};
use stage::{PATIENCE, Stage, config, eventually, task, wait_for};

fn long(id: &str) -> Task {
    Task { body: vec![b'x'; 100_000].into(), ..task("long", id) }
}

#[tokio::test]
async fn deliveries_that_nobody_has_read_hold_up_long_ones_and_no_short_ones() {
    let Stage { handle, node: _node, .. } = Stage::with(NodeConfig { answers_bytes: 150_000, ..config(1) });
    for id in ["1", "2", "3"] {
        handle.schedule(long(id)).await.unwrap();
        handle.schedule(task("short", id)).await.unwrap();
    }
    let all = |queue: &str, wait| Reserve { max: 9, ..wait_for(&handle, queue, wait) };
    let (first, held) = handle.reserve_held(all("long", PATIENCE)).await.unwrap();
    assert_eq!(first.len(), 2, "the second one finds some room left");
    assert!(handle.reserve(all("long", Duration::ZERO)).await.unwrap().is_empty());
    assert_eq!(handle.reserve(all("short", PATIENCE)).await.unwrap().len(), 1, "a short one for each");
    assert_eq!(handle.hold(1).unwrap_err(), Error::Overloaded);

    // Who waits gets it as soon as there is room again.
    let waiting = tokio::spawn({
        let (handle, reserve) = (handle.clone(), all("long", PATIENCE));
        async move { handle.reserve(reserve).await }
    });
    eventually("the consumer waits", async || handle.stats().waiting_consumers == 1).await;
    drop(held);
    assert_eq!(waiting.await.unwrap().unwrap().len(), 1);
    assert_eq!(handle.reserve(all("short", PATIENCE)).await.unwrap().len(), 2, "all that are left");
    assert!(handle.hold(1).is_ok());
}
