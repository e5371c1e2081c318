//! What a node has under way with others: requests passed on, links, and callers at other nodes.

use std::collections::{BTreeMap, BTreeSet};

use punctual_center::{LinkId, Passing, Places};
use punctual_core::store::{Incarnation, ShardId};

use crate::record::Tag;

/// What a node has under way with others.
#[derive(Debug)]
pub struct Exchange {
    /// Requests on their way to others.
    pub passing: Passing<Tag>,
    /// Those that nobody has answered yet.
    pub own: BTreeSet<Tag>,
    /// Where the shards are.
    pub places: Places,
    /// The links that this node has dialled.
    pub dialled: BTreeMap<LinkId, Incarnation>,
    /// Requests of others that are under way here.
    pub foreign: BTreeMap<Tag, Foreign>,
    /// Who is there and is to be linked to.
    pub kept: BTreeSet<Incarnation>,
    /// Whether it is about to look after what waits.
    pub is_looking: bool,
    /// For the links that others have dialled: by shard, the first round that was not told that the shard is not here.
    joined: BTreeMap<LinkId, BTreeMap<ShardId, u32>>,
}

/// A request of another node.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    /// The link that it came on.
    pub on: LinkId,
    /// Its id there.
    pub id: u64,
    /// Its shard.
    pub shard: ShardId,
    /// Its round.
    pub round: u32,
}

impl Exchange {
    /// For this life of a node, on a store of so many shards.
    pub fn new(me: Incarnation, shards: u16) -> Exchange {
        Exchange {
            passing: Passing::default(),
            own: BTreeSet::new(),
            places: Places::new(me, shards),
            dialled: BTreeMap::new(),
            foreign: BTreeMap::new(),
            kept: BTreeSet::new(),
            is_looking: false,
            joined: BTreeMap::new(),
        }
    }

    /// The link to a node.
    pub fn link_to(&self, who: &Incarnation) -> Option<LinkId> {
        self.dialled.iter().find(|(_, to)| *to == who).map(|(on, _)| *on)
    }

    /// Another node has dialled this one.
    pub fn joined(&mut self, on: LinkId) {
        self.joined.insert(on, BTreeMap::new());
    }

    /// That link is gone.
    pub fn left(&mut self, on: LinkId) {
        self.joined.remove(&on);
    }

    /// Notes that a caller is told that the shard is not here, and so are all of its round.
    pub fn deny(&mut self, caller: &Foreign) {
        if let Some(open) = self.joined.get_mut(&caller.on) {
            let first = open.entry(caller.shard).or_default();
            *first = (*first).max(caller.round + 1);
        }
    }

    /// Whether the round of a caller was told already that the shard is not here.
    pub fn is_denied(&self, caller: &Foreign) -> bool {
        let first = self.joined.get(&caller.on).and_then(|open| open.get(&caller.shard));
        first.is_some_and(|first| caller.round < *first)
    }
}
