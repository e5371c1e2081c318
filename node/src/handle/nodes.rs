//! The nodes of the center and where its shards are: looking, and what operators say about it.

use std::sync::Arc;

use punctual_center::{Assignment, Card};
use punctual_core::store::{Entry, Fence, Incarnation, Present, ShardId, StoreError};
use punctual_core::{Name, Refused, Timestamp};

use super::Handle;
use crate::error::Error;
use crate::ownership::read_assignment;
use crate::shared::Shared;

/// A node of the center.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// Its latest life.
    pub who: Incarnation,
    /// What it says of itself.
    pub card: Card,
    /// Until when its word counts, by the store's clock.
    pub until: Timestamp,
    /// Whether its word still counts.
    pub is_there: bool,
    /// Whether it is the node that is asked.
    pub is_this: bool,
    /// Whether it gives its shards to others, as operators want or because it is about to stop.
    pub is_draining: bool,
    /// How many shards it has.
    pub shards: u16,
}

/// Where a shard is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardView {
    /// The shard.
    pub shard: ShardId,
    /// The fence in force.
    pub fence: Fence,
    /// Who has it, or is about to.
    pub owner: Option<Name>,
    /// Where operators want it to be.
    pub pinned_to: Option<Name>,
}

impl Handle {
    /// The other nodes that work on the same store now.
    pub fn others(&self) -> Vec<Name> {
        let roll = self.shared.roll();
        let others = roll.there().filter(|present| present.who != self.shared.who);
        others.map(|present| present.who.node.clone()).collect()
    }

    /// The nodes that are there, and those that have shards all the same, by their names.
    pub async fn nodes(&self) -> Result<Vec<NodeView>, Error> {
        let (assignment, roll) = (self.assignment().await?, self.shared.roll());
        let owners: Vec<Option<Incarnation>> =
            self.shared.shards().map(|(shard, _)| self.shared.known_place(shard).1).collect();
        let view = |present: &Present| {
            let shards = owners.iter().filter(|owner| owner.as_ref() == Some(&present.who)).count() as u16;
            let card = Card::read(&present.address);
            NodeView {
                is_there: roll.now() < present.until,
                is_this: present.who == self.shared.who,
                is_draining: card.is_leaving || assignment.drains.contains(&present.who.node),
                who: present.who.clone(),
                until: present.until,
                card,
                shards,
            }
        };
        let nodes = roll.nodes.iter().map(view);
        Ok(nodes.filter(|node| node.is_there || node.is_this || node.shards > 0).collect())
    }

    /// All shards, in their order.
    pub async fn shards(&self) -> Result<Vec<ShardView>, Error> {
        let assignment = self.assignment().await?;
        let view = |shard| {
            let (fence, owner) = self.shared.known_place(shard);
            let pinned_to = assignment.pins.get(&shard).cloned();
            ShardView { shard, fence, owner: owner.map(|owner| owner.node), pinned_to }
        };
        Ok(self.shared.shards().map(|(shard, _)| view(shard)).collect())
    }

    /// Has a node give its shards to others, one after the other, and get none until this is taken back.
    pub async fn drain(&self, node: &Name) -> Result<(), Error> {
        self.check_node(node)?;
        let node = node.clone();
        self.assign(move |assignment| _ = assignment.drains.insert(node.clone())).await
    }

    /// Takes that back.
    pub async fn undrain(&self, node: &Name) -> Result<(), Error> {
        let node = node.clone();
        self.assign(move |assignment| _ = assignment.drains.remove(&node)).await
    }

    /// Has a shard be at a node, whenever that is there and not drained.
    pub async fn pin(&self, shard: ShardId, node: &Name) -> Result<(), Error> {
        self.check_shard(shard)?;
        self.check_node(node)?;
        let node = node.clone();
        self.assign(move |assignment| _ = assignment.pins.insert(shard, node.clone())).await
    }

    /// Lets a shard be anywhere.
    pub async fn unpin(&self, shard: ShardId) -> Result<(), Error> {
        self.check_shard(shard)?;
        self.assign(move |assignment| _ = assignment.pins.remove(&shard)).await
    }

    fn check_node(&self, node: &Name) -> Result<(), Error> {
        if self.shared.roll().node(node).is_some() {
            return Ok(());
        }
        let why = format!("there is no node {node} on this store");
        self.counted(Err(Refused::Invalid { field: "node", why }.into()))
    }

    fn check_shard(&self, shard: ShardId) -> Result<(), Error> {
        let shards = self.shared.config.shards;
        if shard.0 < shards {
            return Ok(());
        }
        let why = format!("the shards of this store have the numbers 0 to {}", shards - 1);
        self.counted(Err(Refused::Invalid { field: "shard", why }.into()))
    }

    async fn assignment(&self) -> Result<Assignment, Error> {
        let entry = self.read(|store| store.cluster_get(Assignment::KEY)).await;
        Ok(self.counted(entry)?.as_ref().map(read_assignment).unwrap_or_default())
    }

    async fn assign(&self, change: impl Fn(&mut Assignment) + Send + 'static) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        let turn = move || assign(&shared, change).map_err(|error| assign_failed(&shared, &error))?;
        self.counted(self.shared.administrator.turn(turn).await)
    }
}

/// Changes what operators have said, also if others do so at the same time.
fn assign(shared: &Shared, change: impl Fn(&mut Assignment)) -> Result<Result<(), Error>, StoreError> {
    loop {
        let (revision, before) = match shared.store.cluster_get(Assignment::KEY)? {
            Some(Entry { revision, value }) => match Assignment::read(&value) {
                Ok(before) => (revision, before),
                Err(error) => return Ok(Err(Error::nothing_done(error.to_string()))),
            },
            None => (0, Assignment::default()),
        };
        let mut assignment = before.clone();
        change(&mut assignment);
        if assignment == before {
            return Ok(Ok(()));
        }
        if shared.store.cluster_put(Assignment::KEY, revision, assignment.write().as_bytes())?.is_ok() {
            return Ok(Ok(()));
        }
    }
}

/// A change may have been made all the same.
fn assign_failed(shared: &Shared, error: &StoreError) -> Error {
    shared.heed(error);
    Error::unknown_outcome(error.to_string())
}
