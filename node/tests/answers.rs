//! Facts about answers that are under way: how many bytes of them there may be.

use std::time::Duration;

use crate::stage::{PATIENCE, Stage, config, eventually, name, task, wait_for};
use punctual_core::store::Bodies;
use punctual_core::view::{Listing, PAGE_BYTES};
use punctual_core::{Form, Reserve, Task, TimeRange};
use punctual_node::{Error, NodeConfig};

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

#[tokio::test]
async fn a_long_task_is_shown_if_there_is_room_for_it_as_it_is_written() {
    let Stage { handle, node: _node, .. } = Stage::with(NodeConfig { answers_bytes: 1_000_000, ..config(1) });
    let controls = Task { body: vec![1; 100_000].into(), form: Form::Text, ..task("long", "1") };
    let row = handle.schedule(controls).await.unwrap().number;
    handle.schedule(task("short", "1")).await.unwrap();
    let (topic, id) = (name("long"), name("1"));
    let (_, held) = handle.get_held(&topic, &id).await.unwrap().unwrap();
    assert_eq!(held.bytes(), 600_000);
    let number = handle.number(&topic, &id, row);
    assert_eq!(handle.get_held(&topic, &id).await.unwrap_err(), Error::Overloaded);
    assert_eq!(handle.numbered_held(number).await.unwrap_err(), Error::Overloaded);
    assert!(handle.get_held(&name("short"), &id).await.unwrap().is_some(), "a short one is always shown");
    assert!(handle.get_held(&topic, &name("2")).await.unwrap().is_none());
    drop(held);
    assert_eq!(handle.numbered_held(number).await.unwrap().unwrap().1.bytes(), 600_000);
}

#[tokio::test]
async fn a_page_of_many_shards_is_no_longer_than_one_of_a_single_one() {
    let Stage { handle, node: _node, .. } = Stage::new(4);
    for id in 0..24 {
        handle.schedule(Task { body: vec![b'x'; 600_000].into(), ..task("long", &id.to_string()) }).await.unwrap();
    }
    let listing = Listing::Live { topic: None, state: None, wakes: TimeRange::ALL, latest_first: false };
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let page = handle.list(listing.clone(), cursor, 100, Bodies::With).await.unwrap();
        let bytes: usize = page.tasks.iter().map(|task| task.written()).sum();
        assert!((1..=PAGE_BYTES).contains(&bytes), "{bytes}");
        seen.extend(page.tasks.iter().map(|task| task.id.parse::<u64>().unwrap()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..24).collect::<Vec<_>>());
}
