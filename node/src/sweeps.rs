//! When this node looks after the sweeps of the center: what is written down and not all shards know, and what is over and not
//! written down. The owner of the first shard does, whoever began them. How that is done is in `handle/sweeps.rs`.

use std::sync::Arc;

use punctual_center::Sweeps;
use punctual_core::store::{Roll, ShardId};

use crate::error::Error;
use crate::handle::Handle;
use crate::shared::Shared;
use crate::sync::{Mutex, lock};

/// The entry, as it was seen.
#[derive(Clone, Debug)]
pub(crate) struct SeenSweeps {
    pub revision: u64,
    pub sweeps: Sweeps,
}

#[derive(Default)]
pub(crate) struct SweepCare(Mutex<Care>);

#[derive(Default)]
struct Care {
    /// The revision at which nothing is left to be done.
    settled: Option<u64>,
    /// Whether the administrator is at it, or soon will be.
    is_under_way: bool,
}

impl Shared {
    /// The sweeps as the store has them.
    pub fn read_sweeps(&self) -> Result<SeenSweeps, Error> {
        let entry = self.store.cluster_get(Sweeps::KEY).map_err(|error| self.read_failed(&error))?;
        let Some(entry) = entry else { return Ok(SeenSweeps { revision: 0, sweeps: Sweeps::default() }) };
        let sweeps = Sweeps::read(&entry.value).map_err(|error| Error::nothing_done(error.to_string()))?;
        Ok(SeenSweeps { revision: entry.revision, sweeps })
    }

    /// Writes sweeps down in place of those that were seen; `None` if somebody else was quicker.
    pub fn write_sweeps(&self, seen: &SeenSweeps, sweeps: Sweeps) -> Result<Option<SeenSweeps>, Error> {
        match self.store.cluster_put(Sweeps::KEY, seen.revision, &sweeps.lay()) {
            Ok(Ok(revision)) => Ok(Some(SeenSweeps { revision, sweeps })),
            Ok(Err(_)) => Ok(None),
            Err(error) => {
                self.heed(&error);
                Err(Error::unknown_outcome(error.to_string()))
            }
        }
    }

    /// After a beat: sees to the sweeps, if that is for this node to do and something is left to be done.
    pub fn look_after_sweeps(self: &Arc<Shared>, roll: &Roll) {
        let revision = roll.revision(Sweeps::KEY);
        let is_ours = roll.keeper(ShardId(0)).is_some_and(|keeper| keeper.who == self.who);
        let mut care = lock(&self.sweep_care.0);
        if revision == 0 || !is_ours || care.is_under_way || care.settled == Some(revision) {
            return;
        }
        care.is_under_way = true;
        drop(care);
        let handle = Handle::new(Arc::clone(self));
        self.administrator.follow_up(move || {
            let settled = handle.tend_sweeps().ok().filter(|seen| seen.sweeps.running().next().is_none());
            let shared = handle.shared();
            *lock(&shared.sweep_care.0) = Care { settled: settled.map(|seen| seen.revision), is_under_way: false };
        });
    }
}
