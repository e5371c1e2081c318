//! How an almanac works.

use std::fmt;
use std::time::Duration;

use crate::retell::Telling;

/// When a commit is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Before it is confirmed.
    Always,
    /// Within this time after it was confirmed: faster, and a power loss takes the last commits with
    /// it. A process that is killed loses nothing.
    Every(Duration),
}

impl fmt::Display for SyncPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SyncPolicy::Always => f.write_str("every commit is on disk before it is confirmed"),
            SyncPolicy::Every(time) => {
                let millis = time.as_millis();
                write!(f, "synced every {millis} ms: a power loss can lose what was confirmed in the last {millis} ms")
            }
        }
    }
}

/// Who moves rows from the journal into runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tending {
    /// A thread of the almanac's own.
    Thread,
    /// The caller, through [`Almanac::tend`](crate::Almanac::tend): for tests that want the same run twice.
    Manual,
}

/// How an almanac works. [`Config::default`] fits most.
#[derive(Clone, Debug)]
pub struct Config {
    /// How much memory recent rows and blocks of runs may take, in bytes. Beyond it, a pending task
    /// costs at most 16 bytes.
    pub memory: usize,
    /// The size of the journal's segments.
    pub segment: u64,
    /// How long the journal grows before its rows move to a run.
    pub journal: u64,
    /// How much room is kept for acknowledging and cancelling when the disk is full.
    pub reserve: u64,
    /// When a commit is on disk.
    pub sync: SyncPolicy,
    /// Who moves rows from the journal into runs.
    pub tending: Tending,
    /// Whether there was an almanac in this directory before, so that an empty one has lost it.
    pub must_exist: bool,
    /// Whether it is opened although records of the journal are lost that were confirmed, without these and all
    /// that came after them; also if it must exist and does not, or if how far its journal went is not known any more.
    /// [`Almanac::losses`](crate::Almanac::losses) says what that was.
    pub accepts_loss: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            memory: 192 << 20,
            segment: 16 << 20,
            journal: 128 << 20,
            reserve: 32 << 20,
            sync: SyncPolicy::Always,
            tending: Tending::Thread,
            must_exist: false,
            accepts_loss: false,
        }
    }
}

impl Config {
    /// How much recent rows may take before they are merged into a run; twice, while one is being written.
    pub(crate) fn recent(&self) -> usize {
        self.memory / 7 * 2
    }

    /// How much the blocks of runs may take that are kept in memory.
    pub(crate) fn blocks(&self) -> usize {
        self.memory / 8
    }

    /// What telling rows again takes.
    pub(crate) fn telling(&self) -> Telling {
        Telling { large: self.segment / 16 }
    }

    /// How many segments are kept for hard times.
    pub(crate) fn reserve_segments(&self) -> usize {
        usize::try_from(self.reserve.div_ceil(self.segment)).unwrap_or(usize::MAX)
    }

    /// What contradicts itself, if anything does.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.segment < 4_096 || self.segment > 1 << 32 {
            return Err(format!("`segment` is {}: it must be between 4 KiB and 4 GiB", self.segment));
        }
        if self.journal < self.segment {
            return Err("`journal` is smaller than `segment`: it must hold at least one".into());
        }
        if self.memory < 1 << 16 {
            return Err(format!("`memory` is {}: it must be at least 64 KiB", self.memory));
        }
        if self.sync == SyncPolicy::Every(Duration::ZERO) {
            return Err("`sync` is every 0 ms: use a millisecond or more, or sync always".into());
        }
        Ok(())
    }
}
