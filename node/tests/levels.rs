//! Nodes of several versions on one store: what is written is what all of them can read.

use std::sync::Arc;

use crate::stage::wires::{Network, Shared};
use crate::stage::{MovedClock, config, eventually, name};
use punctual_core::Millis;
use punctual_core::store::Store;
use punctual_memory::MemoryStore;
use punctual_node::{Card, Node, NodeConfig, StartError};

/// Starts a node that knows levels up to this one.
fn start(
    address: &str,
    highest: u32,
    store: &Arc<MemoryStore>,
    clock: &Arc<MovedClock>,
    network: &Arc<Network>,
) -> Result<Node, StartError> {
    let config = NodeConfig {
        name: name(address),
        links: Some(Arc::new(Shared(network.join(address)))),
        levels: 1..=highest,
        ownership: Millis(300),
        card: Card { link: Some(address.into()), ..Card::default() },
        ..config(4)
    };
    tokio::task::block_in_place(|| Node::start(config, store.clone(), clock.clone()))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_level_rises_when_the_last_old_node_is_gone_and_then_none_comes_back() {
    let clock = Arc::new(MovedClock::default());
    let (store, network) = (Arc::new(MemoryStore::new(clock.clone())), Arc::new(Network::default()));
    let old = start("old", 1, &store, &clock, &network).unwrap();
    let new = start("new", 2, &store, &clock, &network).unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    assert_eq!((old.handle().level(), new.handle().level()), (1, 1), "the old one could not read more");
    tokio::task::block_in_place(|| old.stop());
    eventually("the new one writes what it can", async || new.handle().level() == 2).await;
    let refused = start("old", 1, &store, &clock, &network).unwrap_err();
    assert_eq!(refused, StartError::Level { in_force: 2, highest: 1 });
    assert!(refused.to_string().contains("start a newer version"), "{refused}");
    let newer = start("newer", 3, &store, &clock, &network).unwrap();
    assert_eq!(newer.handle().level(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_finds_the_store_beyond_it_stops_answering() {
    let clock = Arc::new(MovedClock::default());
    let (store, network) = (Arc::new(MemoryStore::new(clock.clone())), Arc::new(Network::default()));
    let old = start("old", 1, &store, &clock, &network).unwrap();
    store.cluster_put("level", 0, b"2").unwrap().unwrap();
    let why = old.handle().until_broken().await;
    assert!(why.contains("level 2"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_level_that_a_store_lost_when_it_went_back_is_put_in_force_again() {
    let clock = Arc::new(MovedClock::default());
    let (store, network) = (Arc::new(MemoryStore::new(clock.clone())), Arc::new(Network::default()));
    let node = start("new", 2, &store, &clock, &network).unwrap();
    store.hold();
    let in_force = |store: &MemoryStore| store.cluster_get("level").unwrap().map(|entry| entry.value);
    eventually("the level rises", async || node.handle().level() == 2).await;
    store.fail_over();
    eventually("it is there again", async || in_force(&store).is_some_and(|value| &*value == b"2")).await;
    assert_eq!(node.handle().level(), 2, "the node never wrote less meanwhile");
    let refused = start("old", 1, &store, &clock, &network).unwrap_err();
    assert_eq!(refused, StartError::Level { in_force: 2, highest: 1 });
}
