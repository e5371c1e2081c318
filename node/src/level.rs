//! The level of what is stored: looked at before the node starts, and raised when all nodes can.

use punctual_center::Levels;
use punctual_core::store::{Entry, Roll, Store, StoreError};

use crate::config::NodeConfig;
use crate::error::StartError;
use crate::shared::Shared;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{Mutex, lock};

/// What a node knows of the level in force.
pub(crate) struct Level {
    levels: Mutex<Levels>,
    in_force: AtomicU32,
    /// The revision of the entry that said so.
    revision: AtomicU64,
}

impl Level {
    pub fn new(config: &NodeConfig, in_force: u32) -> Level {
        let levels = Mutex::new(Levels::new(config.levels.clone(), config.ownership));
        Level { levels, in_force: AtomicU32::new(in_force), revision: AtomicU64::new(0) }
    }

    /// The level in force, as far as it is known.
    pub fn in_force(&self) -> u32 {
        self.in_force.load(Ordering::Acquire)
    }
}

/// The level in force, if a node of this configuration can work at it.
pub(crate) fn check(store: &dyn Store, config: &NodeConfig) -> Result<u32, StartError> {
    let entry = store.cluster_get(Levels::KEY)?;
    let level = Levels::read(entry.as_ref()).ok_or_else(|| unreadable(entry.as_ref()))?;
    if config.levels.contains(&level) {
        return Ok(level);
    }
    Err(StartError::Level { in_force: level, highest: *config.levels.end() })
}

fn unreadable(entry: Option<&Entry>) -> StoreError {
    let value = entry.map(|entry| String::from_utf8_lossy(&entry.value).into_owned()).unwrap_or_default();
    StoreError::Unavailable(format!("the entry `{}` of the store says {value:?}, which is no number", Levels::KEY))
}

impl Shared {
    /// Looks at the level after a beat: one that this node cannot work at ends it, one that all can have is put in force.
    pub fn mind_level(&self, roll: &Roll) {
        let revision = roll.revision(Levels::KEY);
        if let Err(error) = self.look_at_level(revision).and_then(|()| self.raise_level(revision, roll)) {
            // The next beat does it again.
            self.heed(&error);
        }
    }

    fn look_at_level(&self, revision: u64) -> Result<(), StoreError> {
        if self.level.revision.load(Ordering::Acquire) == revision {
            return Ok(());
        }
        let entry = self.store.cluster_get(Levels::KEY)?;
        let level = Levels::read(entry.as_ref()).ok_or_else(|| unreadable(entry.as_ref()))?;
        if !self.can_work_at(level) {
            return Ok(());
        }
        let revision = entry.map_or(0, |entry| entry.revision);
        if let Some(known) = Levels::restore(self.level.in_force(), level) {
            // Whoever is quicker puts the same in force; the next beat tells.
            _ = self.store.cluster_put(Levels::KEY, revision, known.to_string().as_bytes())?;
            return Ok(());
        }
        self.level.in_force.store(level, Ordering::Release);
        self.level.revision.store(revision, Ordering::Release);
        Ok(())
    }

    /// Looks whether this node can read what others have written in a shard that it has just claimed. They wrote at levels
    /// that were in force before.
    pub fn check_level(&self) -> Result<(), StoreError> {
        let entry = self.store.cluster_get(Levels::KEY)?;
        let level = Levels::read(entry.as_ref()).ok_or_else(|| unreadable(entry.as_ref()))?;
        match self.can_work_at(level) {
            true => Ok(()),
            false => Err(StoreError::Unavailable(self.poisoned().unwrap_or_default().to_owned())),
        }
    }

    /// Whether this node can work at a level; if not, it stops answering.
    fn can_work_at(&self, level: u32) -> bool {
        let (can, highest) = {
            let levels = lock(&self.level.levels);
            (levels.can(level), *levels.own().end())
        };
        if !can {
            self.poison(&StartError::Level { in_force: level, highest }.to_string());
        }
        can
    }

    fn raise_level(&self, revision: u64, roll: &Roll) -> Result<(), StoreError> {
        let Some(level) = lock(&self.level.levels).rise(self.level.in_force(), roll) else { return Ok(()) };
        // Whoever was quicker has raised it to the same.
        if self.store.cluster_put(Levels::KEY, revision, level.to_string().as_bytes())?.is_ok() {
            tracing::info!(level, "all nodes can read and write this level: it is in force from now on");
        }
        Ok(())
    }
}
