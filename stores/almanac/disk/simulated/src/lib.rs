//! A disk in memory that tests can make fail: power loss, errors, lack of room, bit rot.
//!
//! It keeps only the promises that a real one keeps. Bytes survive a power loss for sure once
//! their file was synced, names once the directory was. Of all else, any part may survive: writes
//! without those before them, torn at a byte or into sectors; of what happened to names, a
//! prefix, because file systems keep a journal of it. All chance comes from seeds.

mod change;
mod fault;
mod file;
mod image;
mod medium;

use std::any::Any;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use punctual_disk::{Disk, File};

pub use fault::{Call, Fault};
use file::SimulatedFile;
use medium::Medium;

/// A disk in memory that tests can make fail. A clone is the same disk.
#[derive(Clone, Debug)]
pub struct SimulatedDisk {
    medium: Arc<Mutex<Medium>>,
}

impl Default for SimulatedDisk {
    fn default() -> SimulatedDisk {
        SimulatedDisk::new(0)
    }
}

impl SimulatedDisk {
    /// An empty disk. The seed decides what failing writes and syncs leave.
    pub fn new(seed: u64) -> SimulatedDisk {
        SimulatedDisk::with(Medium::new(seed))
    }

    /// Power loss: a disk with what survived. This one refuses every call from then on, but can be
    /// asked again, with another seed, for another way in which the same crash could have gone.
    pub fn crash(&self, seed: u64) -> SimulatedDisk {
        let mut medium = self.medium();
        medium.power_gone = true;
        SimulatedDisk::with(medium.after_power_loss(seed))
    }

    /// From this call on every call fails; they are counted from one, see [`SimulatedDisk::calls`].
    /// What that call itself was to change still counts among what was not synced.
    pub fn crash_at(&self, call: u64) {
        self.medium().power_until = call;
    }

    /// How many calls there were, as long as there was power.
    pub fn calls(&self) -> u64 {
        self.medium().calls
    }

    /// The call at which the power went by [`SimulatedDisk::crash_at`], and the name of its file: for a
    /// rename `from -> to`, and empty for what concerns the whole directory.
    pub fn last_call(&self) -> Option<(Call, String)> {
        self.medium().last_call.clone()
    }

    /// From now on calls fail as this fault says. A failing write may write some of its first
    /// bytes; a failing sync loses some of the unsynced changes for good, though reads still see
    /// them; any other call that fails does nothing.
    pub fn fail(&self, fault: Fault) {
        self.medium().faults.order(fault);
    }

    /// Takes all faults away.
    pub fn heal(&self) {
        self.medium().faults.heal();
    }

    /// How many calls have failed by faults, so that a test can see that its fault was met.
    pub fn failures(&self) -> usize {
        self.medium().faults.struck()
    }

    /// So many bytes are all that the disk has room for; what would need more gives
    /// [`io::ErrorKind::StorageFull`].
    pub fn limit(&self, bytes: u64) {
        self.medium().limit = bytes;
    }

    /// The bytes that are taken: the lengths of all files, without what was punched out of them in
    /// whole pages. A removed file takes its room until the last who has it open closes it.
    pub fn used(&self) -> u64 {
        self.medium().used()
    }

    /// The names of all files; no call, so it is not counted and never fails.
    pub fn names(&self) -> Vec<String> {
        self.medium().names.keys().map(|name| name.to_string()).collect()
    }

    /// What the process sees in a file; no call, so it is not counted and never fails.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        let medium = self.medium();
        let inode = medium.names.get(name)?;
        Some(medium.inodes[inode].visible.bytes())
    }

    /// Flips one of the eight bits of a byte, seen and durable.
    ///
    /// # Panics
    /// If there is no such byte.
    pub fn flip(&self, name: &str, offset: u64, bit: u8) {
        let mut medium = self.medium();
        let inode = medium.find(name).expect("a bit is flipped in a file that is there");
        let inode = medium.inode(inode);
        assert!(offset < inode.visible.length() && bit < 8, "there is no bit {bit} of byte {offset} in {name}");
        inode.flip(offset, bit);
    }

    /// Gives a file these bytes, durably; makes it if it is not there.
    pub fn overwrite(&self, name: &str, bytes: &[u8]) {
        self.medium().place(name, bytes);
    }

    /// A disk of its own with all that this one holds, as if the process had ended and the machine
    /// had not: what is not synced is seen, and a crash of the copy may still lose it. Faults, open files and
    /// locks are not copied. A disk without power can be copied, which is a process killed at that call.
    pub fn copy(&self) -> SimulatedDisk {
        SimulatedDisk::with(self.medium().without_process())
    }

    fn with(medium: Medium) -> SimulatedDisk {
        SimulatedDisk { medium: Arc::new(Mutex::new(medium)) }
    }

    /// A test that panics somewhere must not hide its message behind those of other threads.
    fn medium(&self) -> MutexGuard<'_, Medium> {
        self.medium.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for SimulatedDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        self.medium().enter(Call::List, "")?;
        Ok(self.names())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut medium = self.medium();
        medium.enter(Call::Open, name)?;
        let node = medium.find(name)?;
        Ok(SimulatedFile::open(self, &mut medium, node))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut medium = self.medium();
        let node = medium.perform(Call::Create, name, |medium| Ok(medium.create(name)))?;
        Ok(SimulatedFile::open(self, &mut medium, node))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.medium().perform(Call::Rename, &format!("{from} -> {to}"), |medium| medium.rename(from, to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.medium().perform(Call::Remove, name, |medium| medium.remove(name))
    }

    fn sync(&self) -> io::Result<()> {
        let mut medium = self.medium();
        medium.enter(Call::SyncDirectory, "")?;
        medium.sync_names();
        Ok(())
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Any + Send + Sync>> {
        let mut medium = self.medium();
        medium.enter(Call::Lock, name)?;
        if !medium.locks.insert(name.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if !medium.names.contains_key(name) {
            medium.create(name);
        }
        Ok(Box::new(Hold { disk: self.clone(), name: name.to_owned() }))
    }

    /// No call: it neither fails nor counts.
    fn room(&self) -> io::Result<u64> {
        let medium = self.medium();
        Ok(if medium.limit == u64::MAX { u64::MAX } else { medium.limit.saturating_sub(medium.used()) })
    }

    fn place(&self) -> String {
        "a simulated disk".to_owned()
    }
}

/// A lock that is held.
struct Hold {
    disk: SimulatedDisk,
    name: String,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.disk.medium().locks.remove(&self.name);
    }
}
