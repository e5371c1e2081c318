//! Where the shards are, for all threads of the node: asked before every request, so it costs one look if it is here.

use std::sync::{Arc, PoisonError};

use punctual_center::{Asking, Place, Places};
use punctual_core::store::{Fence, Incarnation, Roll, ShardId};

use crate::shared::Shared;
use crate::sync::RwLock;
use crate::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct SharedPlaces {
    /// By the shards' numbers: whether a shard is here.
    here: Vec<AtomicBool>,
    places: RwLock<Places>,
    /// The latest roll.
    roll: RwLock<Arc<Roll>>,
}

impl SharedPlaces {
    pub fn new(me: Incarnation, shards: u16) -> SharedPlaces {
        SharedPlaces {
            here: (0..shards).map(|_| AtomicBool::new(false)).collect(),
            places: RwLock::new(Places::new(me, shards)),
            roll: RwLock::default(),
        }
    }

    /// Changes what is known of one shard.
    fn change<T>(&self, shard: ShardId, change: impl FnOnce(&mut Places) -> T) -> T {
        let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut places);
        if let Some(here) = self.here.get(usize::from(shard.0)) {
            here.store(places.place(shard) == Place::Here, Ordering::Release);
        }
        changed
    }
}

impl Shared {
    /// Where a shard is.
    pub fn place(&self, shard: ShardId) -> Place {
        if self.places.here[usize::from(shard.0)].load(Ordering::Acquire) {
            return Place::Here;
        }
        self.places.places.read().unwrap_or_else(PoisonError::into_inner).place(shard)
    }

    /// The latest fence of a shard that this node knows of, and who has the shard by it.
    pub fn known_place(&self, shard: ShardId) -> (Fence, Option<Incarnation>) {
        let places = self.places.places.read().unwrap_or_else(PoisonError::into_inner);
        let (fence, owner) = places.known(shard);
        (fence, owner.cloned())
    }

    /// Somebody says who has a shard by this fence. Says whether that was news.
    pub fn learn_place(&self, shard: ShardId, fence: Fence, owner: Option<&Incarnation>) -> bool {
        let is_news = self.places.change(shard, |places| places.learn(shard, fence, owner));
        if is_news {
            self.place_changed(shard);
        }
        is_news
    }

    /// The store is about to be asked where the shards are.
    pub fn ask_places(&self) -> Asking {
        self.places.places.write().unwrap_or_else(PoisonError::into_inner).ask()
    }

    /// The store has said who has a shard, and was asked so.
    pub fn told_place(&self, asking: Asking, shard: ShardId, fence: Fence, owner: Option<&Incarnation>) {
        if self.places.change(shard, |places| places.told(asking, shard, fence, owner)) {
            self.place_changed(shard);
        }
    }

    /// The store has just said who has a shard.
    pub fn correct_place(&self, shard: ShardId, fence: Fence, owner: Option<&Incarnation>) {
        self.places.change(shard, |places| places.correct(shard, fence, owner));
        self.place_changed(shard);
    }

    /// The latest roll.
    pub fn roll(&self) -> Arc<Roll> {
        Arc::clone(&self.places.roll.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Learns from a roll where the shards are.
    pub fn learn_roll(&self, asking: Asking, roll: Arc<Roll>) {
        self.keep_links(&roll);
        self.watch_for_a_beat();
        for held in &roll.shards {
            self.told_place(asking, held.shard, held.fence, held.by.as_ref());
        }
        *self.places.roll.write().unwrap_or_else(PoisonError::into_inner) = roll;
    }
}
