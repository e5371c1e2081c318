//! Consumers that wait on one node, and deliveries that are on another.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::stage::nodes::Nodes;
use crate::stage::{PATIENCE, finish, next, wait_for};
use punctual_core::Reserve;

#[tokio::test(flavor = "multi_thread")]
async fn what_fires_on_one_node_reaches_who_waits_on_another_at_once() {
    let nodes = Nodes::start(2).await;
    let mut took = Vec::new();
    for round in 0..20 {
        let topic = format!("t{round}");
        let waiting = tokio::spawn({
            let (handle, topic) = (nodes.handles[0].clone(), topic.clone());
            async move { (next(&handle, &topic).await, Instant::now()) }
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        let ids = nodes.schedule_at(1, &topic, 1).await;
        let scheduled_at = Instant::now();
        let (delivery, at) = waiting.await.unwrap();
        assert!(ids.contains(&delivery.id));
        took.push(at.saturating_duration_since(scheduled_at));
        finish(&nodes.handles[0], delivery.lease).await;
    }
    took.sort_unstable();
    // It was handed over because a word came, and not because something was looked at again and again.
    assert!(took[took.len() / 2] < Duration::from_millis(50), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_wait_gets_what_any_node_has() {
    let nodes = Nodes::start(2).await;
    nodes.schedule_at(1, "t", 3).await;
    for left in (0..3).rev() {
        let mut got = nodes.handles[0].reserve(wait_for(&nodes.handles[0], "t", Duration::ZERO)).await.unwrap();
        finish(&nodes.handles[0], got.pop().unwrap_or_else(|| panic!("{left} more were there")).lease).await;
    }
    let begun = Instant::now();
    let got = nodes.handles[0].reserve(wait_for(&nodes.handles[0], "t", Duration::ZERO)).await.unwrap();
    assert!(got.is_empty() && begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_herd_on_all_nodes_is_worked_off_by_consumers_of_one_and_nothing_comes_twice() {
    let nodes = Nodes::start(2).await;
    let mut ids = nodes.schedule_at(0, "t", 200).await;
    ids.append(&mut nodes.schedule_at(1, "t", 200).await);
    let consumers: Vec<_> = (0..20)
        .map(|_| {
            let handle = nodes.handles[0].clone();
            tokio::spawn(async move {
                let mut got = Vec::new();
                loop {
                    let reserve = Reserve { max: 4, ..wait_for(&handle, "t", Duration::from_millis(500)) };
                    let deliveries = handle.reserve(reserve).await.unwrap();
                    if deliveries.is_empty() {
                        return got;
                    }
                    for delivery in deliveries {
                        got.push(delivery.id.clone());
                        finish(&handle, delivery.lease).await;
                    }
                }
            })
        })
        .collect();
    let mut got = Vec::new();
    for consumer in consumers {
        got.extend(consumer.await.unwrap());
    }
    assert_eq!((got.len(), got.into_iter().collect::<BTreeSet<_>>()), (ids.len(), ids));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_lent_is_back_when_the_link_breaks_and_what_was_leased_to_it_is_given_to_others() {
    let nodes = Nodes::start(2).await;
    let waiting = tokio::spawn({
        let handle = nodes.handles[0].clone();
        async move { next(&handle, "t").await }
    });
    nodes.is_waiting(0).await;
    // It is leased, and the answer cannot leave.
    let gate = nodes.close_gate();
    let scheduling = nodes.schedule_at(1, "t", 1);
    let cutting = async {
        tokio::task::block_in_place(|| gate.wait_for_somebody());
        nodes.network.cut("0", "1");
        tokio::time::sleep(Duration::from_millis(50)).await;
        gate.open();
    };
    let (ids, ()) = tokio::join!(scheduling, cutting);
    nodes.network.mend();
    // Its lease is an hour: it came because the other node had taken it back.
    let delivery = waiting.await.unwrap();
    assert!(ids.contains(&delivery.id));
    finish(&nodes.handles[0], delivery.lease).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_for_somebody_who_has_left_goes_back_at_once() {
    let nodes = Nodes::start(2).await;
    for round in 0..20 {
        let topic = format!("t{round}");
        let reserve = wait_for(&nodes.handles[0], &topic, PATIENCE);
        let leaving = tokio::spawn({
            let handle = nodes.handles[0].clone();
            let patience = Duration::from_millis(20 + round % 5);
            async move { tokio::time::timeout(patience, handle.reserve(reserve)).await.is_err() }
        });
        tokio::time::sleep(Duration::from_millis(19)).await;
        let ids = nodes.schedule_at(1, &topic, 1).await;
        if leaving.await.unwrap() {
            // Whatever was leased to it was leased for an hour.
            assert!(ids.contains(&next(&nodes.handles[1], &topic).await.id));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn consumers_go_on_when_the_node_that_had_the_deliveries_stops() {
    let mut nodes = Nodes::start(2).await;
    let mut ids = nodes.schedule_at(1, "t", 50).await;
    let other = nodes.nodes.pop_back().unwrap();
    let consuming = tokio::spawn({
        let handle = nodes.handles[0].clone();
        async move {
            let mut got = BTreeSet::new();
            while got.len() < 50 {
                for delivery in handle.reserve(wait_for(&handle, "t", PATIENCE)).await.unwrap() {
                    got.insert(delivery.id.clone());
                    if handle.acknowledge(delivery.lease).await.is_err() {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                }
            }
            got
        }
    });
    tokio::task::block_in_place(|| other.stop());
    let got = tokio::time::timeout(PATIENCE, consuming).await.unwrap().unwrap();
    ids.retain(|id| !got.contains(id));
    assert!(ids.is_empty(), "{ids:?}");
}
