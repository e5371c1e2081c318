//! A node that works on a store while it is moved into another one, both at the end of a line.

use std::sync::Arc;

use punctual_core::store::{ShardId, Store};
use punctual_core::{Clock, Millis, Name};
use punctual_moving::live::{Transit, under_way};
use punctual_node::{Node, NodeConfig, block_on};

use super::line::{Life, Line};

pub const SHARDS: u16 = 4;

/// A server on its way from one store into another.
pub struct Server {
    pub transit: Arc<Transit>,
    pub to: Arc<dyn Store>,
    pub node: Node,
}

impl Server {
    /// Starts, and goes on with a move that was under way.
    pub fn start((from, to): (&Arc<dyn Store>, &Arc<dyn Store>), clock: Arc<dyn Clock>, life: &Arc<Life>) -> Server {
        let line = |store: &Arc<dyn Store>| {
            Arc::new(Line { last_counts: true, batch_changes: 300, ..Line::to(Arc::clone(store), life) })
                as Arc<dyn Store>
        };
        let (home, to) = (line(from), line(to));
        let transit = Arc::new(Transit::new(Arc::clone(&home), "the old store"));
        if under_way(&*home).unwrap().is_some() {
            transit.resume(Arc::clone(&to), "the new store").unwrap();
        }
        let mut config = NodeConfig::new(Name::stored("server")).shards(SHARDS);
        config.ownership = Millis(600);
        let node = Node::start(config, Arc::clone(&transit) as _, clock).unwrap();
        Server { transit, to, node }
    }

    /// Moves all shards, as far as it gets.
    pub fn drive(&self) -> Result<(), String> {
        if self.transit.crossed().is_none() {
            self.transit.begin(Arc::clone(&self.to), "the new store", false).map_err(|error| error.to_string())?;
        }
        for shard in (0..SHARDS).map(ShardId) {
            if self.transit.crossed().unwrap().contains(&shard) {
                continue;
            }
            let ahead = self.transit.copy_ahead(shard, &|_| {}).map_err(|error| error.to_string())?;
            let transit = Arc::clone(&self.transit);
            let handle = self.node.handle();
            let handed = handle.set_aside(shard, move |tenure| transit.hand_over(ahead, tenure));
            block_on(handed).map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        }
        self.transit.finish(&[]).map(drop).map_err(|error| error.to_string())
    }
}
