//! An almanac in use: opening and closing it, and what its owner asks of it. `store.rs` has what shards ask.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use punctual_core::Clock;
use punctual_core::store::StoreError;
use punctual_disk::Disk;

use crate::config::{Config, SyncPolicy, Tending};
use crate::error::OpenError;
use crate::lock::lock;
use crate::open;
use crate::shared::{Shared, Vigil};

/// The embedded store. It belongs to one process at a time.
pub struct Almanac {
    pub(crate) shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What an almanac takes of memory and disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Memory of rows that no run holds.
    pub recent_bytes: usize,
    /// Memory of the index by which rows in runs are found.
    pub key_bytes: usize,
    /// Memory of blocks of runs that were read.
    pub block_bytes: usize,
    /// How many living rows the runs have.
    pub rows_in_runs: u64,
    /// How many runs there are.
    pub runs: usize,
    /// How long their files are, room that was given back included.
    pub run_bytes: u64,
    /// How much of the journal is needed.
    pub journal_bytes: u64,
    /// How many segments of the journal are ready to be written over.
    pub free_segments: usize,
}

impl Almanac {
    /// Opens the almanac in a directory, or begins one there. The clock tells when
    /// leases of nodes end, and new fences follow it.
    pub fn open(disk: Arc<dyn Disk>, config: Config, clock: Arc<dyn Clock>) -> Result<Almanac, OpenError> {
        let shared = Arc::new(open::open(disk, config, clock)?);
        shared.look_for_room();
        shared.clear_the_way();
        if !shared.losses.is_empty() {
            // What cannot be read any more is not to be met again.
            let cleared = shared.tend(true).map_err(io::Error::other);
            cleared.map_err(OpenError::io("the remaining data could not be written"))?;
            shared.forget_lost();
        }
        // From here on, what has been started is stopped if something goes wrong.
        let mut almanac = Almanac { shared: Arc::clone(&shared), threads: Vec::new() };
        if shared.config.tending == Tending::Thread {
            almanac.threads.push(start(&shared, "keeper", Shared::keep)?);
            if let SyncPolicy::Every(time) = shared.config.sync {
                almanac.threads.push(start(&shared, "syncer", move |shared| shared.sync_every(time))?);
            }
        }
        Ok(almanac)
    }

    /// Does now what the keeper would do; for [`Tending::Manual`].
    pub fn tend(&self) -> Result<(), StoreError> {
        self.shared.tend(false)
    }

    /// What the almanac takes of memory and disk.
    pub fn usage(&self) -> Usage {
        let (segments, free_segments) = {
            let journal = lock(&self.shared.journal);
            (journal.bytes(), journal.free())
        };
        let holdings = lock(&self.shared.holdings);
        Usage {
            recent_bytes: holdings.active.bytes() + holdings.frozen.as_ref().map_or(0, |frozen| frozen.layer().bytes()),
            key_bytes: holdings.shelf.keys().bytes(),
            block_bytes: self.shared.blocks.bytes() as usize,
            rows_in_runs: holdings.shelf.keys().len() as u64,
            runs: holdings.shelf.runs().count(),
            run_bytes: holdings.shelf.runs().map(|(_, shelved)| shelved.run.file_bytes()).sum(),
            journal_bytes: segments,
            free_segments,
        }
    }

    /// What was lost when it was opened and is done without, if [`Config::accepts_loss`] says so.
    pub fn losses(&self) -> &[String] {
        &self.shared.losses
    }

    /// Moves all recent rows into a run now, though it is not due yet.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        self.shared.tend(true)
    }
}

/// Starts a thread; if it panics, the almanac stops.
fn start(
    shared: &Arc<Shared>,
    name: &str,
    work: impl FnOnce(&Shared) + Send + 'static,
) -> Result<JoinHandle<()>, OpenError> {
    let shared = Arc::clone(shared);
    let run = move || {
        let _vigil = Vigil(&shared);
        work(&shared);
    };
    let thread = std::thread::Builder::new().name(format!("punctual-{name}")).spawn(run);
    thread.map_err(OpenError::io(format!("the {name}'s thread could not be started")))
}

impl fmt::Debug for Almanac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Almanac({})", self.shared.disk.place())
    }
}

impl fmt::Display for Almanac {
    /// What an operator should see at the start: where it is, and what a confirmation is worth.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "almanac in {}, {}", self.shared.disk.place(), self.shared.config.sync)
    }
}

impl Drop for Almanac {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        lock(&self.shared.signals).stop = true;
        self.shared.bell.notify_all();
        self.shared.tick.notify_all();
        for thread in self.threads.drain(..) {
            // One that panicked has said so.
            _ = thread.join();
        }
        if self.shared.poison.get().is_none() {
            // With this, damage to the last record would be noticed at the next opening. If it cannot
            // be written, nothing is lost.
            let mut journal = lock(&self.shared.journal);
            _ = journal.mark();
            self.shared.note_reach(journal.reached());
        }
    }
}
