//! What stands in a queue, and who holds what of it, over several shards and nodes.

use crate::stage::nodes::Nodes;
use crate::stage::{Stage, eventually, finish, name, next, task};
use punctual_core::{Name, Scope, Stage as Far};
use punctual_node::{Handle, LinePage};

/// All ids of a line, page by page.
async fn ids(handle: &Handle, queue: &str, stage: Far, limit: usize) -> Vec<Name> {
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let LinePage { deliveries, next, .. } = handle.line(&name(queue), stage, after, limit).await.unwrap();
        assert!(deliveries.len() <= limit);
        ids.extend(deliveries.into_iter().map(|delivery| delivery.id));
        after = next;
        if after.is_none() {
            return ids;
        }
    }
}

#[tokio::test]
async fn a_line_of_several_shards_is_one_line() {
    let Stage { handle, node: _node, .. } = Stage::new(4);
    let expected: Vec<Name> = (0..25).map(|number| name(&format!("task-{number:02}"))).collect();
    for (number, id) in expected.iter().enumerate().rev() {
        handle.schedule(task("q", id).priority(number as u32)).await.unwrap();
    }
    eventually("all are ready", async || {
        handle.queue(&name("q")).await.unwrap().is_some_and(|queue| queue.counts.ready == 25)
    })
    .await;
    for limit in [1, 7, 25, 100] {
        assert_eq!(ids(&handle, "q", Far::Ready, limit).await, expected, "{limit} at once");
    }
    assert_eq!(ids(&handle, "nobody", Far::Ready, 9).await, [] as [Name; 0]);
    let held = next(&handle, "q").await;
    assert_eq!(ids(&handle, "q", Far::Leased, 9).await, std::slice::from_ref(&held.id));
    assert_eq!(ids(&handle, "q", Far::Ready, 9).await.len(), 24);
    finish(&handle, held.lease).await;
    assert_eq!(ids(&handle, "q", Far::Leased, 9).await, [] as [Name; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_asked_tells_of_the_queues_of_all_nodes() {
    let nodes = Nodes::start(2).await;
    for number in 0..2 {
        nodes.schedule_at(number, "orders", 5).await;
    }
    for handle in &nodes.handles {
        eventually("all are in line", async || ids(handle, "orders", Far::Ready, 3).await.len() == 10).await;
    }
    let held = [next(&nodes.handles[0], "orders").await, next(&nodes.handles[0], "orders").await];
    let all = nodes.handles[1].holders(&Scope::ALL, None).await.unwrap();
    assert_eq!((all.holders.iter().map(|holder| holder.leases).sum::<u64>(), all.unknown), (2, 0), "{all:?}");
    assert!(all.holders.iter().all(|holder| holder.queue == name("orders") && holder.oldest.is_some()), "{all:?}");
    assert_eq!(ids(&nodes.handles[1], "orders", Far::Leased, 1).await.len(), 2);
    for delivery in held {
        finish(&nodes.handles[0], delivery.lease).await;
    }
    assert_eq!(nodes.handles[1].holders(&Scope::ALL, Some(&name("orders"))).await.unwrap().holders, []);
}
