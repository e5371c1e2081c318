//! Several nodes of one process on one store in memory, with links between them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use punctual_core::store::{Beat, Incarnation, ShardId, Store};
use punctual_core::{Millis, Name};
use punctual_memory::MemoryStore;
use punctual_node::{Card, Handle, Node, NodeConfig, shard_of};

use super::wires::{Network, Shared};
use super::{Gate, MovedClock, config, eventually, finish, name, next, task};

pub const SHARDS: u16 = 4;

/// Several nodes on one store, with links between them.
pub struct Nodes {
    pub store: Arc<MemoryStore>,
    pub network: Arc<Network>,
    pub nodes: VecDeque<Node>,
    pub handles: Vec<Handle>,
}

impl Nodes {
    /// So many nodes, of which each has its share of the shards.
    pub async fn start(count: usize) -> Nodes {
        let clock = Arc::new(MovedClock::default());
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let network = Arc::new(Network::default());
        let mut nodes = VecDeque::new();
        for number in 0..count {
            let address = number.to_string();
            let config = NodeConfig {
                name: name(&address),
                links: Some(Arc::new(Shared(network.join(&address)))),
                card: Card { link: Some(address), ..Card::default() },
                ..config(SHARDS)
            };
            let (store, clock) = (store.clone(), clock.clone());
            nodes.push_back(tokio::task::block_in_place(|| Node::start(config, store, clock).unwrap()));
        }
        let handles = nodes.iter().map(Node::handle).collect();
        let nodes = Nodes { store, network, nodes, handles };
        for number in 0..count {
            eventually("each node has a shard", async || nodes.shards_of(number).len() == usize::from(SHARDS) / count)
                .await;
        }
        nodes.are_linked().await;
        nodes
    }

    /// Waits until each node hears of what is on the others.
    pub async fn are_linked(&self) {
        for (from, to) in (0..self.handles.len()).flat_map(|from| (0..self.handles.len()).map(move |to| (from, to))) {
            let queue = format!("link-{from}-{to}");
            self.schedule_at(to, &queue, 1).await;
            finish(&self.handles[from], next(&self.handles[from], &queue).await.lease).await;
        }
    }

    pub fn shards_of(&self, number: usize) -> Vec<ShardId> {
        let who = Incarnation { node: name("onlooker"), number: 1 };
        let roll = self.store.beat(&Beat { who, address: String::new(), lease: Millis::ZERO }).unwrap();
        let is_its = |by: &Incarnation| *by.node == *number.to_string();
        roll.shards.iter().filter(|held| held.by.as_ref().is_some_and(is_its)).map(|held| held.shard).collect()
    }

    /// Schedules so many tasks whose shards are at a node; says their ids.
    pub async fn schedule_at(&self, number: usize, topic: &str, count: usize) -> BTreeSet<Name> {
        let shards = self.shards_of(number);
        let names = (0..).map(|number| name(&format!("task-{number}")));
        let ids: BTreeSet<Name> =
            names.filter(|id| shards.contains(&shard_of(topic, id, SHARDS))).take(count).collect();
        for id in &ids {
            self.handles[number].schedule(task(topic, id)).await.unwrap();
        }
        ids
    }

    /// Holds every commit from now on until the gate is opened.
    pub fn close_gate(&self) -> Gate {
        let gate = Gate::default();
        self.store.faults().slow_down(gate.pass());
        gate
    }

    /// Waits until somebody waits at a node.
    pub async fn is_waiting(&self, number: usize) {
        eventually("somebody waits", async || self.handles[number].stats().waiting_consumers > 0).await;
    }
}
